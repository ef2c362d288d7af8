"""Textured meshes: geometry, scale and shading survive decimation, GLB and OBJ."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import cv2
import numpy as np
import pytest
import trimesh

from photostereo.core.conventions import linear_from_srgb
from photostereo.core.units import PixelSize
from photostereo.results.formats.glb import encode_glb
from photostereo.results.formats.obj import encode_obj
from photostereo.results.textured import interpolate, texture_mesh
from photostereo.surface import integrate


def interpolate_readable(points, faces, values, shape):
    """What the compiled loop does, triangle by triangle."""
    result = np.full((*shape, values.shape[1]), np.nan)
    rows, cols = np.mgrid[: shape[0], : shape[1]]
    for face in faces:
        (ax, ay), (bx, by), (cx, cy) = points[face]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0:
            continue
        b = ((cols - ax) * (cy - ay) - (rows - ay) * (cx - ax)) / area
        c = ((bx - ax) * (rows - ay) - (by - ay) * (cols - ax)) / area
        a = 1.0 - b - c
        inside = (a >= -1e-9) & (b >= -1e-9) & (c >= -1e-9)
        weights = np.stack([a, b, c], axis=-1)[inside]
        result[inside] = weights @ values[face]
    return result


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12)


@pytest.fixture(scope="module")
def light(bumps):
    surface = integrate(bumps.normals, bumps.mask)
    return surface, texture_mesh(surface, bumps.normals, bumps.albedo, triangles=2000)


def read_glb(data: bytes) -> tuple[dict, dict[str, np.ndarray], list[np.ndarray]]:
    """An independent reader of the container, written from the specification."""
    magic, version, total = struct.unpack("<4sII", data[:12])
    assert (magic, version, total) == (b"glTF", 2, len(data))
    length, kind = struct.unpack("<I4s", data[12:20])
    assert kind == b"JSON"
    tree = json.loads(data[20 : 20 + length])
    size, kind = struct.unpack("<I4s", data[20 + length : 28 + length])
    assert kind == b"BIN\0"
    binary = data[28 + length : 28 + length + size]

    def view(number: int) -> bytes:
        entry = tree["bufferViews"][number]
        return binary[entry["byteOffset"] : entry["byteOffset"] + entry["byteLength"]]

    def accessor(number: int) -> np.ndarray:
        entry = tree["accessors"][number]
        dtype = {5126: "<f4", 5123: "<u2", 5125: "<u4"}[entry["componentType"]]
        columns = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}[entry["type"]]
        return np.frombuffer(view(entry["bufferView"]), dtype)[: entry["count"] * columns].reshape(
            -1, columns
        )

    (primitive,) = tree["meshes"][0]["primitives"]
    arrays = {name: accessor(number) for name, number in primitive["attributes"].items()}
    arrays["faces"] = accessor(primitive["indices"]).reshape(-1, 3)
    pictures = [
        cv2.imdecode(np.frombuffer(view(image["bufferView"]), np.uint8), cv2.IMREAD_UNCHANGED)[
            ..., ::-1
        ]
        for image in tree["images"]
    ]
    return tree, arrays, pictures


def shaded_normals(arrays: dict[str, np.ndarray], picture: np.ndarray) -> np.ndarray:
    """The normal that a renderer shades every texel center with, by the rules of glTF."""
    height, width = picture.shape[:2]
    points = arrays["TEXCOORD_0"].astype(float) * [width, height] - 0.5
    frame = interpolate_readable(
        points,
        arrays["faces"],
        np.hstack([arrays["NORMAL"], arrays["TANGENT"]]).astype(float),
        (height, width),
    )
    n, t = unit(frame[..., :3]), unit(frame[..., 3:6])
    b = np.cross(n, t) * frame[..., 6:]
    local = picture / 127.5 - 1.0
    return unit(local[..., :1] * t + local[..., 1:2] * b + local[..., 2:] * n)


def test_raster_equals_its_readable_twin() -> None:
    rng = np.random.default_rng(0)
    points, values = rng.uniform(-2, 22, (30, 2)), rng.normal(size=(30, 3))
    faces = rng.integers(0, 30, (40, 3))
    one, two = np.full((20, 21, 3), np.nan), interpolate_readable(points, faces, values, (20, 21))
    interpolate(points, faces, values, one)
    assert np.array_equal(np.isnan(one), np.isnan(two))
    assert np.nanmax(np.abs(one - two)) < 1e-9


def test_a_light_mesh_is_shaded_by_the_normals_of_the_map(bumps, light) -> None:
    mesh = light[1]
    assert 1500 < len(mesh.faces) <= 2100 < len(np.argwhere(bumps.mask))
    _, arrays, (albedo, normal) = read_glb(encode_glb(mesh, PixelSize.of("0.1mm")))
    rows, cols = np.nonzero(bumps.mask)
    crop = np.s_[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]
    shaded = shaded_normals(arrays, normal)
    covered = bumps.mask[crop] & np.isfinite(shaded[..., 0])
    assert covered.sum() > 0.97 * bumps.mask.sum()
    angle = np.degrees(np.arccos(np.clip(np.sum(shaded * bumps.normals[crop], axis=-1), -1, 1)))[
        covered
    ]
    assert np.percentile(angle, 99) < 0.6, "8 bits hold a normal to about half a degree"
    # Without the map, the light mesh alone would be far off.
    flat = np.broadcast_to(np.array([127.5, 127.5, 255.0]), normal.shape)
    plain = np.sum(shaded_normals(arrays, flat) * bumps.normals[crop], axis=-1)[covered]
    assert np.degrees(np.arccos(np.clip(plain, -1, 1))).mean() > 10 * angle.mean()
    white = np.percentile(bumps.albedo[bumps.mask], 99)
    linear = linear_from_srgb(albedo[bumps.mask[crop]] / 255.0)
    assert np.abs(linear - np.minimum(bumps.albedo[bumps.mask] / white, 1)).max() < 0.006


def test_glb_is_in_meters_and_y_up(bumps, light) -> None:
    mesh = light[1]
    tree, arrays, _ = read_glb(encode_glb(mesh, PixelSize.of("0.1mm")))
    extent = np.ptp(arrays["POSITION"], axis=0)
    rows, cols = np.nonzero(bumps.mask)
    assert np.allclose(extent[:2], np.array([np.ptp(cols), np.ptp(rows)]) * 1e-4, rtol=0.02)
    assert tree["asset"]["extras"]["pixel_size_in_meters"] == pytest.approx(1e-4)
    # Upper rows of the picture are higher in y and smaller in v; z grows as the depth does.
    position, uv = arrays["POSITION"], arrays["TEXCOORD_0"]
    assert np.corrcoef(position[:, 1], uv[:, 1])[0, 1] < -0.999
    assert np.corrcoef(position[:, 0], uv[:, 0])[0, 1] > 0.999
    where = np.rint(position[:, :2] / 1e-4 * [1, -1] + [59.5, 44.5]).astype(int)
    truth = bumps.depth[where[:, 1], where[:, 0]]
    assert np.corrcoef(position[:, 2], truth)[0, 1] > 0.99
    assert (arrays["NORMAL"][:, 2] > 0).all()


def test_glb_and_obj_come_back_through_trimesh(light, tmp_path: Path) -> None:
    _, mesh = light
    size = PixelSize.of("0.1mm")
    scene = trimesh.load(io.BytesIO(encode_glb(mesh, size)), file_type="glb", process=False)
    (again,) = scene.geometry.values()
    assert np.abs(again.vertices - mesh.vertices * 1e-4).max() < 1e-8
    assert again.visual.material.normalTexture.size == mesh.normal_map.shape[1::-1]
    for name, content in encode_obj(mesh, size).items():
        (tmp_path / name).write_bytes(content)
    other = trimesh.load(tmp_path / "mesh.obj", process=False)
    assert np.abs(other.vertices - mesh.vertices * 0.1).max() < 1e-6
    assert np.array_equal(other.faces, mesh.faces)
    assert np.abs(other.visual.uv - [0, 1] - mesh.uv * [1, -1]).max() < 1e-6
    assert other.visual.material.image.size == mesh.albedo.shape[1::-1]


def test_texture_side_is_kept(bumps, light) -> None:
    small = texture_mesh(light[0], bumps.normals, bumps.albedo, triangles=500, texture_side=64)
    assert max(small.normal_map.shape) == 64


@pytest.mark.parametrize(
    ("text", "millimeters"),
    [("0.1mm", 0.1), ("50 µm", 0.05), ("0.002in", 0.0508), ("2", 2.0), ("1e-5m", 0.01)],
)
def test_pixel_sizes_are_understood(text: str, millimeters: float) -> None:
    assert PixelSize.of(text).millimeters == pytest.approx(millimeters, rel=1e-12)


@pytest.mark.parametrize("text", ["", "mm", "0mm", "-1mm", "1 parsec", "nan", "1,5mm", "--1"])
def test_other_pixel_sizes_are_refused(text: str) -> None:
    from photostereo.core.errors import ParameterError

    with pytest.raises(ParameterError) as caught:
        PixelSize.of(text)
    assert caught.value.code == "bad-pixel-size"
