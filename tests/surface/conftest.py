"""Shapes with known heights and normals, and small tools that several tests of the surface need."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from photostereo.core.control import Control


def normals_of(slope_col: np.ndarray, slope_row: np.ndarray) -> np.ndarray:
    """Unit normals of slopes dz/dcol, dz/drow."""
    n = np.stack([-slope_col, slope_row, np.ones_like(slope_col)], axis=-1)
    return n / np.linalg.norm(n, axis=-1, keepdims=True)


def sphere(size: int, share: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Heights, normals and mask of a ball of which ``share`` of the radius is seen; and the radius."""
    middle = (size - 1) / 2
    radius = middle / share * 0.98
    row, col = np.mgrid[:size, :size]
    x, y = (col - middle) / radius, -(row - middle) / radius
    mask = x**2 + y**2 < share**2
    z = np.sqrt(np.maximum(1 - x**2 - y**2, 1e-9))
    return np.where(mask, radius * z, np.nan), np.stack([x, y, z], axis=-1) * mask[..., None], mask, radius


def flap(size: int, slope: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """A flat sheet, cut along the middle row from a quarter on, whose upper part bends up: a step that grows."""
    row, col = np.mgrid[:size, :size]
    upper = (row < size // 2) & (col > size // 4)
    z = np.where(upper, slope * (col - size // 4), 0.0)
    return z, normals_of(np.where(upper, slope, 0.0), np.zeros(z.shape))


def aligned(depth: np.ndarray, truth: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The error inside the mask once the free constant is taken out."""
    error = depth[mask] - truth[mask]
    return error - error.mean()


@pytest.fixture(scope="session")
def shapes() -> SimpleNamespace:
    return SimpleNamespace(normals_of=normals_of, sphere=sphere, flap=flap, aligned=aligned)


class Heard(Control):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.steps: list[int] = []

    def on_stage(self, name: str, total: int | None = None) -> None:
        self.stages.append((name, total))

    def on_advance(self, steps: int = 1) -> None:
        self.steps.append(steps)


@pytest.fixture
def heard() -> Heard:
    return Heard()
