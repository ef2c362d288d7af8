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
    return (
        np.where(mask, radius * z, np.nan),
        np.stack([x, y, z], axis=-1) * mask[..., None],
        mask,
        radius,
    )


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


def exact_heights(
    normals: np.ndarray, mask: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """The least squares over the links of a mask by a sparse factorization, each part with the mean zero."""
    from scipy.ndimage import label
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import splu

    trust = np.ones(mask.shape) if weights is None else weights / weights[mask].max()
    unit = normals / np.linalg.norm(normals, axis=-1, keepdims=True).clip(1e-12)
    unit[..., 2] = np.maximum(unit[..., 2], 0.05)
    number = np.cumsum(mask).reshape(mask.shape) - 1
    size, parts = int(mask.sum()), label(mask)[0]
    rows, cols, entries, goals, count = [], [], [], [], 0
    for near, far, component, sign in (
        (np.s_[:, :-1], np.s_[:, 1:], 0, -1.0),
        (np.s_[:-1], np.s_[1:], 1, 1.0),
    ):
        both = mask[near] & mask[far]
        a, b = trust[near][both], trust[far][both]
        mean = (a[:, None] * unit[near][both] + b[:, None] * unit[far][both]) / (a + b)[:, None]
        root = np.sqrt(0.5 * (a + b))
        line = count + np.arange(root.size)
        count += root.size
        rows += [line, line]
        cols += [number[far][both], number[near][both]]
        entries += [root * mean[:, 2], -root * mean[:, 2]]
        goals.append(root * sign * mean[:, component])
    design = coo_array(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(cols))), shape=(count, size)
    ).tocsr()
    held = np.zeros(size)
    held[np.unique(parts[mask], return_index=True)[1]] = 1.0
    matrix = (design.T @ design + diags_array(held)).tocsc()
    factor, side = splu(matrix), design.T @ np.concatenate(goals)
    heights = factor.solve(side)
    heights += factor.solve(side - matrix @ heights)
    sums = np.bincount(parts[mask], heights) / np.bincount(parts[mask]).clip(1)
    picture = np.full(mask.shape, np.nan)
    picture[mask] = heights - sums[parts[mask]]
    return picture


@pytest.fixture(scope="session")
def shapes() -> SimpleNamespace:
    return SimpleNamespace(
        normals_of=normals_of,
        sphere=sphere,
        flap=flap,
        aligned=aligned,
        exact_heights=exact_heights,
    )


class Heard(Control):
    """Remembers the progress that was reported."""

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
