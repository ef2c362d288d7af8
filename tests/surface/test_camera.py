"""Perspective: a plane and a ball seen by a pinhole camera, from exact normals."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo.surface import build_mesh, integrate
from photostereo.surface.integrated import Camera

K = np.array([[150.0, 0.0, 47.0], [0.0, 160.0, 41.0], [0.0, 0.0, 1.0]])


def rays(shape: tuple[int, int]) -> np.ndarray:
    row, col = np.mgrid[: shape[0], : shape[1]]
    return Camera.from_matrix(K).rays(row, col)


@pytest.mark.parametrize("method", ["poisson", "robust", "simchony"])
def test_tilted_plane(method: str) -> None:
    """n·X = −d has Z = −d / (n·ray); only the scale is free. Second order in the pixel."""
    n = np.array([0.3, -0.2, 0.93])
    n /= np.linalg.norm(n)
    shape = (80, 90)
    distance = -1.0 / (rays(shape) @ n)
    normals = np.zeros((*shape, 3)) + n
    surface = integrate(normals, camera=K, method=method)
    scale = surface.depth / -distance
    assert scale.min() > 0
    assert scale.max() / scale.min() - 1 < 2e-5
    focal = Camera.from_matrix(K).focal
    assert abs(np.exp(np.log(-surface.depth).mean()) / focal - 1) < 1e-9


def test_ball_and_its_mesh() -> None:
    """The points of the mesh lie on the ball, once scaled, and face the camera."""
    shape, center, radius = (84, 96), np.array([0.05, 0.02, -4.0]), 0.9
    ray = rays(shape)
    a = (ray**2).sum(-1)
    b = ray @ center
    root = b**2 - a * (center @ center - radius**2)
    mask = root > 0.25 * root.max()
    t = (b - np.sqrt(np.maximum(root, 0))) / a
    points = ray * t[..., None]
    normals = (points - center) / radius * mask[..., None]
    anchors = np.full(shape, np.nan)
    anchors[41, 47] = points[41, 47, 2]
    surface = integrate(normals, mask, camera=K, anchors=anchors)
    mesh = build_mesh(surface, normals).to_trimesh()
    away = np.linalg.norm(mesh.vertices - center, axis=1)
    assert np.abs(away - radius).max() < 0.01 * radius
    outward = np.einsum("ij,ij->i", mesh.face_normals, mesh.triangles_center - center)
    assert (outward > 0).all()
    flat = np.abs(integrate(normals, mask).depth[mask] + 4.0)
    assert flat.max() > 1.0  # orthography is a different thing


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(2),
        np.diag([0.0, 1.0, 1.0]),
        [[100, 5, 50], [0, 100, 50], [0, 0, 1]],
        np.full((3, 3), np.nan),
    ],
)
def test_bad_matrix_is_named(matrix) -> None:
    with pytest.raises(ParameterError) as caught:
        integrate(np.broadcast_to([0.0, 0.0, 1.0], (4, 4, 3)), camera=matrix)
    assert caught.value.code == "bad-camera"


def test_anchors_must_lie_in_front() -> None:
    with pytest.raises(ParameterError) as caught:
        integrate(
            np.broadcast_to([0.0, 0.0, 1.0], (4, 4, 3)), camera=K, anchors=np.full((4, 4), 3.0)
        )
    assert caught.value.code == "anchors-not-negative"
