"""Where circles may be: every edge pixel votes for the centers of circles that it could lie on (Hough)."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.lights.ball.circle import Circle
from photostereo.lights.ball.outlines import Outlines


def vote_for_circles(outlines: Outlines, smallest: float, largest: float) -> list[tuple[float, Circle]]:
    """Peaks of the vote for (center, radius), with the share of the visible outline that voted."""
    rows, cols = _thin_edges(outlines)
    if len(rows) < 12:
        return []
    ux, uy = (part[rows, cols] for part in outlines.normals)
    height, width = outlines.frame
    radii = [smallest]
    while radii[-1] < largest:
        radii.append(radii[-1] * 1.06 + 0.25)
    layers: list[tuple[float, int, NDArray[np.float32]]] = []
    for radius in radii:
        pad = int(0.5 * radius)
        shape = (height + 2 * pad, width + 2 * pad)
        votes = np.zeros(shape[0] * shape[1], np.float32)
        for sign in (-1.0, 1.0):
            x = np.rint(cols + sign * radius * ux).astype(np.intp) + pad
            y = np.rint(rows + sign * radius * uy).astype(np.intp) + pad
            ok = (x >= 0) & (x < shape[1]) & (y >= 0) & (y < shape[0])
            votes += np.bincount(y[ok] * shape[1] + x[ok], minlength=len(votes)).astype(np.float32)
        # Votes scatter with the error of the edge's direction, which grows with the radius.
        spread = 2 * int(np.ceil(0.05 * radius + 0.5)) + 1
        gathered = cv2.boxFilter(votes.reshape(shape), -1, (spread, spread), normalize=False)
        share = gathered / np.maximum(_visible_outline(radius, pad, outlines.frame), 0.3 * 2 * np.pi * radius)
        layers.append((radius, pad, share))
    return _peaks(layers)


def _thin_edges(outlines: Outlines) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of edge pixels: stronger than chance, and than their neighbors across the edge."""
    strength = outlines.strength
    rows, cols = np.mgrid[: strength.shape[0], : strength.shape[1]].astype(np.float32)
    ridge = np.ones(strength.shape, dtype=bool)
    ux, uy = outlines.normals
    for sign in (-1.0, 1.0):
        beside = cv2.remap(strength, cols + sign * ux, rows + sign * uy, cv2.INTER_LINEAR)
        ridge &= strength >= beside
    ridge[:2] = ridge[-2:] = False
    ridge[:, :2] = ridge[:, -2:] = False
    # A frame full of texture has edges everywhere; the strongest eighth is enough for any ball to show.
    floor = np.maximum(np.minimum(3.0 * outlines.noise, float(np.percentile(strength, 87.5))), 0.004)
    rows_of, cols_of = np.nonzero(ridge & (strength > floor))
    return rows_of, cols_of


def _visible_outline(radius: float, pad: int, frame: tuple[int, int]) -> NDArray[np.float32]:
    """For every center the length of the circle's outline inside the frame, coarsely."""
    height, width = frame
    shape = (height + 2 * pad, width + 2 * pad)
    coarse = (max(shape[0] // 4, 2), max(shape[1] // 4, 2))
    y = np.linspace(-pad, height + pad - 1, coarse[0])[:, None]
    x = np.linspace(-pad, width + pad - 1, coarse[1])[None, :]
    count = np.zeros(coarse, np.float32)
    for angle in np.linspace(0, 2 * np.pi, 32, endpoint=False):
        px, py = x + radius * np.cos(angle), y + radius * np.sin(angle)
        count += (px >= 0) & (px <= width - 1) & (py >= 0) & (py <= height - 1)
    length = cv2.resize(count, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
    return np.asarray(length * np.float32(2 * np.pi * radius / 32))


def _peaks(layers: Sequence[tuple[float, int, NDArray[np.float32]]]) -> list[tuple[float, Circle]]:
    found: list[tuple[float, Circle]] = []
    for radius, pad, share in layers:
        size = 2 * int(0.25 * radius) + 1
        highest = cv2.dilate(share, np.ones((size, size), np.uint8))
        y, x = np.nonzero((share >= highest) & (share > 0.25))
        order = np.argsort(-share[y, x])[:12]
        found += [
            (float(share[y[i], x[i]]), Circle(float(x[i] - pad), float(y[i] - pad), radius)) for i in order
        ]
    found.sort(key=lambda pair: -pair[0])
    kept: list[tuple[float, Circle]] = []
    for score, circle in found:
        if len(kept) == 24:
            break
        if not any(same_circle(circle, other) for _, other in kept):
            kept.append((score, circle))
    return kept


def same_circle(a: Circle, b: Circle) -> bool:
    """Whether two circles are the same but for a tenth of the radius."""
    return float(np.hypot(a.x - b.x, a.y - b.y)) + abs(a.radius - b.radius) < 0.1 * min(a.radius, b.radius)
