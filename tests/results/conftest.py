"""A relief with texture whose heights and normals are known, and helpers that read files in other ways."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from photostereo.solver.reconstruction import Reconstruction


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


@pytest.fixture(scope="session")
def bumps() -> SimpleNamespace:
    """Waves in an ellipse: heights in pixels, their exact normals, a colored albedo."""
    row, col = np.mgrid[:90, :120].astype(float)
    z = 6.0 * np.sin(col / 9.0) * np.cos(row / 7.0) + 0.05 * col
    dz_dcol = 6.0 / 9.0 * np.cos(col / 9.0) * np.cos(row / 7.0) + 0.05
    dz_drow = -6.0 / 7.0 * np.sin(col / 9.0) * np.sin(row / 7.0)
    normals = unit(np.stack([-dz_dcol, dz_drow, np.ones_like(z)], axis=-1))
    mask = ((row - 45) / 43) ** 2 + ((col - 60) / 57) ** 2 < 1
    albedo = np.stack([0.2 + 0.6 * (col > 60), 0.5 + 0 * col, 0.2 + 0.6 * row / 90], axis=-1)
    normals, albedo = normals * mask[..., None], albedo * mask[..., None]
    return SimpleNamespace(
        depth=z, normals=normals.astype(np.float32), mask=mask, albedo=albedo.astype(np.float32)
    )


def as_result(normals: np.ndarray, mask: np.ndarray, albedo: np.ndarray) -> Reconstruction:
    return Reconstruction(
        normals=normals, albedo=albedo, mask=mask, method="test", parameters={}, capture="surface"
    )
