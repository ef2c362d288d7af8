"""Frames that show no ball: the search ends, finds none, and no fit runs away."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from photostereo.core.conventions import Float32
from photostereo.lights.ball import circle_search
from photostereo.lights.ball.circle_search import fit_circle, shared_outlines
from photostereo.lights.ball.geometry import Circle
from photostereo.lights.ball.search import find_balls
from photostereo_lab.scenes import dome_lights, ring_lights

from ..ball_scenes.reliefs import photograph_relief, round_relief


def smooth_relief(
    frame: tuple[int, int], *, rng: int, scale: float = 6.0, slope: float = 0.4
) -> Float32:
    """Photographs (12, H, W) of a matte relief that fills the frame, without shadows.

    Parameters
    ----------
    frame : tuple of int
        Height and width.
    rng : int
        Seed of the relief and the noise.
    scale : float
        Size of its bumps in pixels.
    slope : float
        Mean slope.
    """
    generator = np.random.default_rng(rng)
    height = cv2.GaussianBlur(generator.normal(size=frame).astype(np.float32), (0, 0), scale)
    down, right = np.gradient(height)
    gain = slope / np.hypot(down, right).mean()
    normals = np.stack([-gain * right, gain * down, np.ones(frame, np.float32)])
    normals /= np.linalg.norm(normals, axis=0)
    images = np.maximum(np.tensordot(dome_lights(12, max_angle=55), normals, axes=1), 0)
    images += 0.002 * generator.normal(size=images.shape)
    return np.clip(0.7 * images, 0, 1).astype(np.float32)


@pytest.mark.parametrize("rng", [0, 7, 8, 9])
def test_no_fit_runs_away(rng: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A radius of a million pixels makes rays that OpenCV cannot sample (more than 32,767 pixels)."""
    fits = []
    tukey_fit = circle_search._tukey_fit

    def watched(*arguments: Any) -> Circle | None:
        fits.append(tukey_fit(*arguments))
        return fits[-1]

    monkeypatch.setattr(circle_search, "_tukey_fit", watched)
    assert find_balls(smooth_relief((200, 300), rng=rng)) == []
    radii = [fit.radius for fit in fits if fit is not None]
    assert radii and max(radii) < 900  # three times the width of the frame


def test_a_straight_edge_is_no_circle() -> None:
    image = np.zeros((200, 300), np.float32)
    image[100:] = 1.0
    outlines = shared_outlines(image[None], black=1e-3)
    assert fit_circle(outlines, Circle(150.0, 160.0, 60.0), slack=0.12) is None


@pytest.mark.parametrize("shape", ["rings", "domes", "scrolls", "coins"])
@pytest.mark.parametrize(("gloss", "matte"), [(0.6, 0.05), (0.05, 0.03), (0.0, 0.5)])
def test_round_parts_of_a_relief_are_no_balls(shape: str, gloss: float, matte: float) -> None:
    """Metal, black lacquer and plaster: before, two in three of these frames had up to four balls."""
    lights = np.concatenate([ring_lights(4, elevation=25), ring_lights(4, elevation=60)])
    images = photograph_relief(round_relief(shape, rng=4), lights, gloss=gloss, matte=matte)
    assert find_balls(images) == []
