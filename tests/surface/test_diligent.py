"""Real shapes: from the true normals of the DiLiGenT objects, the surface gives the normals back."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.io import loadmat

from photostereo.surface import integrate

from .recompute import normals_from_depth, recomputed_error

pytestmark = pytest.mark.data


def true_normals(data_dir: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    folder = data_dir / "diligent" / "pmsData" / f"{name}PNG"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent")
    mask = cv2.imread(str(folder / "mask.png"), cv2.IMREAD_GRAYSCALE) > 0
    return loadmat(folder / "Normal_gt.mat")["Normal_gt"].astype(np.float64), mask


@pytest.mark.parametrize("name", ["ball", "bear", "cat", "cow", "pot2", "reading"])
def test_masked_is_closer_than_the_rectangle(data_dir: Path, name: str) -> None:
    normals, mask = true_normals(data_dir, name)
    error = {
        method: recomputed_error(integrate(normals, mask, method=method), normals).mean()
        for method in ("simchony", "poisson")
    }
    assert error["poisson"] < 0.6 * error["simchony"], error


def test_robust_on_reading(data_dir: Path) -> None:
    """At least 40 % below poisson, even when the slope across its tears is counted."""
    normals, mask = true_normals(data_dir, "reading")
    plain = recomputed_error(integrate(normals, mask), normals).mean()
    surface = integrate(normals, mask, method="robust")
    blind = recomputed_error(surface, normals, keep_tears=False).mean()
    assert blind < 0.6 * plain
    assert blind < 3.0
    assert recomputed_error(surface, normals).mean() < blind


def test_unknown_truth_is_filled(data_dir: Path) -> None:
    """pot2 has 73 mask pixels without a normal."""
    normals, mask = true_normals(data_dir, "pot2")
    surface = integrate(normals, mask)
    assert surface.unknown == 73
    assert np.isfinite(surface.depth[mask]).all()
    assert np.isfinite(normals_from_depth(surface.depth, mask)).all()
