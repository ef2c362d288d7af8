"""Files: every format is read again to the same geometry, heights and normals to the same numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
import trimesh

from photostereo.core.control import Control
from photostereo.core.conventions import decode_normals
from photostereo.core.errors import MissingDependencyError, OutputError, ParameterError
from photostereo.results import Job, SurfaceChoice, read_normal_map, write_mesh, write_surface
from photostereo.results.maps import write_exr, write_normal_png
from photostereo.surface import build_mesh, integrate

from .conftest import as_result


@pytest.fixture(scope="module")
def ball():
    row, col = np.mgrid[:41, :41]
    x, y = (col - 20) / 24.5, (20 - row) / 24.5
    mask = x**2 + y**2 < 0.64
    normals = np.stack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 0))], axis=-1) * mask[..., None]
    albedo = np.where(mask, 0.2 + 0.8 * np.linspace(0, 1, 41), 0.0)
    surface = integrate(normals, mask)
    return normals, mask, albedo, surface, build_mesh(surface, normals, albedo, pixel_size=0.05)


def sorted_triangles(mesh: trimesh.Trimesh) -> np.ndarray:
    """Triangles in an order that does not depend on the file, each starting with its least corner."""
    corners = np.round(mesh.triangles, 4) + 0.0
    least = np.lexsort((corners[..., 2], corners[..., 1], corners[..., 0]), axis=1)[:, 0]
    turned = np.take_along_axis(corners, ((least[:, None] + np.arange(3)) % 3)[..., None], axis=1)
    flat = turned.reshape(len(corners), 9)
    return flat[np.lexsort(flat.T[::-1])]


@pytest.mark.parametrize("kind", ["ply", "obj", "stl", "glb"])
def test_formats_come_back(ball, tmp_path: Path, kind: str) -> None:
    path = write_mesh(ball[-1], tmp_path / f"mesh.{kind}")
    mesh = ball[-1].to_trimesh()
    if kind == "glb":  # in meters, the mesh in millimeters
        mesh = trimesh.Trimesh(
            mesh.vertices / 1000, mesh.faces, vertex_normals=mesh.vertex_normals, process=False
        )
    assert b"z toward the camera" in path.read_bytes()
    again = trimesh.load(path, process=False)  # force="mesh" would make new normals
    if isinstance(again, trimesh.Scene):
        (again,) = again.geometry.values()
    assert len(again.faces) == len(mesh.faces)
    if kind != "glb":
        assert np.abs(sorted_triangles(again) - sorted_triangles(mesh)).max() <= 1.1e-4
    assert abs(again.area - mesh.area) < 1e-5 * mesh.area
    if kind != "stl":
        assert np.abs(again.vertices - mesh.vertices).max() < 1e-6
        assert np.abs(again.vertex_normals - mesh.vertex_normals).max() < 1e-5
    if kind in ("ply", "obj"):
        assert np.abs(again.visual.vertex_colors.astype(int) - mesh.visual.vertex_colors).max() <= 1


def test_unknown_format(ball, tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        write_mesh(ball[-1], tmp_path / "mesh.fbx")
    assert caught.value.code == "unknown-format" and set(caught.value.values["known"]) == {
        "ply",
        "glb",
        "obj",
        "stl",
    }
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as refused:
        write_mesh(ball[-1], tmp_path / "file" / "mesh.ply")
    assert refused.value.code == "cannot-write"


class Listener(Control):
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.steps = 0

    def on_stage(self, name: str, total: int | None = None) -> None:
        self.stages.append(name)

    def on_advance(self, steps: int = 1) -> None:
        self.steps += steps


def test_write_surface_leaves_everything(ball, tmp_path: Path) -> None:
    normals, mask, albedo, _, _ = ball
    listener = Listener()
    choice = SurfaceChoice(
        "robust", ("ply", "glb", "obj", "stl"), 0.05, watertight=True, decimate=800
    )
    result = as_result(normals, mask, albedo)
    facts = write_surface(Job(tmp_path, result, choice, control=listener))
    json.dumps(facts)
    assert sorted(facts["files"]) == sorted(p.name for p in tmp_path.iterdir())
    assert facts["watertight"]
    assert abs(facts["triangles"] - 800) < 20
    assert facts["parts"] == 1
    assert facts["tears"] == 0
    assert set(facts["seconds"]) == {"integrate", "depth", "mesh", "files"}
    assert listener.stages == ["integrate (robust)", "depth and meshes"]
    assert listener.steps >= 5 + 3

    depth = np.load(tmp_path / "depth.npy")
    assert depth.dtype == np.float32
    assert np.isnan(depth[~mask]).all()
    low, high = facts["depth"]["range"]
    assert abs(np.nanmax(depth) * 0.05 - high) < 1e-6
    tiff = tifffile.imread(tmp_path / "depth.tiff")
    assert tiff.dtype == np.float32
    assert np.nanmax(np.abs(tiff - depth * np.float32(0.05))) < 1e-6
    png = cv2.imread(str(tmp_path / "depth.png"), cv2.IMREAD_UNCHANGED)
    assert png.dtype == np.uint16
    assert (png[~mask] == 0).all()
    back = np.where(png > 0, low + (png - 1.0) / 65534 * (high - low), np.nan)
    assert np.nanmax(np.abs(back - depth * 0.05)) <= (high - low) / 65534
    mesh = trimesh.load(tmp_path / "mesh.ply", process=False)
    assert np.abs(mesh.bounds[:, 0] - [-0.95, 0.95]).max() < 0.06


@pytest.mark.parametrize("flip_y", [False, True])
def test_normal_map_conventions(ball, tmp_path: Path, flip_y: bool) -> None:
    """Both conventions come back, and they differ in the sign of green only."""
    normals, mask, _, _, _ = ball
    path = write_normal_png(tmp_path / "normals.png", normals, mask, flip_y=flip_y)
    again, inside = read_normal_map(path, flip_y=flip_y)
    assert (inside == mask).all()
    assert np.abs(again - normals).max() < 1e-4
    raw = decode_normals(cv2.imread(str(path), cv2.IMREAD_UNCHANGED)[..., ::-1])
    assert np.abs(raw[mask][:, 1] - (-1 if flip_y else 1) * normals[mask][:, 1]).max() < 1e-4


def test_exr(ball, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    OpenEXR = pytest.importorskip("OpenEXR", reason="the extra exr is not installed")
    normals, mask, albedo, surface, _ = ball
    result = as_result(normals, mask, albedo)
    write_surface(Job(tmp_path, result, SurfaceChoice(formats=(), exr=True), flip_y=True))
    with OpenEXR.File(str(tmp_path / "normals.exr"), separate_channels=True) as file:
        planes = {name: np.array(channel.pixels) for name, channel in file.channels().items()}
    assert np.abs(planes["R"] - normals[..., 0]).max() < 1e-6
    assert np.abs(planes["G"] + normals[..., 1]).max() < 1e-6
    with OpenEXR.File(str(tmp_path / "depth.exr"), separate_channels=True) as file:
        z = np.array(file.channels()["Z"].pixels)
    assert np.nanmax(np.abs(z - surface.depth)) < 1e-4
    assert (np.isnan(z) == ~mask).all()
    monkeypatch.setitem(sys.modules, "OpenEXR", None)
    with pytest.raises(MissingDependencyError) as caught:
        write_exr(tmp_path / "x.exr", {"Z": z})
    assert caught.value.code == "needs-openexr"
