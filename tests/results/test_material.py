"""Materials: flat, wrapping, and lit as a brute-force reckoning says."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import replace

import cv2
import numpy as np
import pytest

from photostereo.core.errors import ParameterError, PhotostereoWarning
from photostereo.core.units import PixelSize
from photostereo.results import tiling
from photostereo.results.formats.material import encode_material, flatten, make_material
from photostereo.results.occlusion import ambient_occlusion
from photostereo.results.roughness import estimate_roughness
from photostereo.results.tiling import integrate_periodic, largest_rectangle, seam_ratio
from photostereo.solver.solve import solve
from photostereo_lab.scenes import Ggx, dome_lights, render_scene, render_surface
from photostereo_lab.scenes.shapes import sphere


def normals_of(z: np.ndarray) -> np.ndarray:
    d_row, d_col = np.gradient(z)
    n = np.stack([-d_col, d_row, np.ones_like(z)], axis=-1)
    return n / np.linalg.norm(n, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def plaster() -> tuple[np.ndarray, np.ndarray]:
    """A rough, tilted, bowed sample that does not wrap: normals and albedo."""
    rng = np.random.default_rng(3)
    noise = cv2.GaussianBlur(rng.normal(size=(200, 240)), (0, 0), 3.0) * 8
    row, col = np.mgrid[:200, :240]
    z = noise + 0.2 * col - 0.1 * row + 0.0008 * (col - 120) ** 2
    grain = (
        0.5
        + 0.1 * cv2.GaussianBlur(rng.normal(size=(200, 240, 3)), (0, 0), 2.0) * 5
        + 0.001 * col[..., None]
    )
    return normals_of(z), np.clip(grain, 0.05, None)


def read(files: dict[str, bytes], kind: str) -> np.ndarray:
    data = files[f"plaster_{kind}.png"]
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


SHARP = ["BaseColor", "Normal_OpenGL", "Normal_DirectX", "Height", "AmbientOcclusion"]


@pytest.mark.parametrize("width", [9.0, 18.0])
def test_every_map_of_a_tileable_material_wraps(plaster, width: float) -> None:
    """The roughness too, whose steps are a fraction of a gray level and differ from region to region."""
    normals, albedo = plaster
    rough = cv2.GaussianBlur(np.random.default_rng(5).normal(size=normals.shape[:2]), (0, 0), width)
    rough = np.clip(0.6 + 0.08 * rough / rough.std(), 0, 1)
    everywhere = np.ones(normals.shape[:2], bool)
    material = make_material(normals, albedo, everywhere, roughness=rough, tileable=True)
    files, _ = encode_material(material, PixelSize(), "plaster")
    pictures = [name for name in files if name.endswith(".png")]
    assert len(pictures) == 7
    for name in pictures:
        for axis in (0, 1):
            ratio = seam_ratio(read(files, name[len("plaster_") : -len(".png")]), axis)
            assert ratio < 1.2, (name, axis, ratio)  # a step like any other


def test_a_tileable_material_has_no_seam(plaster) -> None:
    normals, albedo = plaster
    everywhere = np.ones(normals.shape[:2], bool)
    plain, _ = encode_material(make_material(normals, albedo, everywhere), PixelSize(), "plaster")
    wraps, _ = encode_material(
        make_material(normals, albedo, everywhere, tileable=True), PixelSize.of("0.1mm"), "plaster"
    )
    for kind in SHARP:
        for axis in (0, 1):
            assert seam_ratio(read(plain, kind), axis) > 2, "the sample itself does not wrap"
            assert seam_ratio(read(wraps, kind), axis) < 1.2, kind
            # Nor is there a hidden one inside, where the two ends were joined.
            picture = read(wraps, kind).astype(float)
            others = tuple(a for a in range(picture.ndim) if a != axis)
            steps = np.abs(np.diff(picture, axis=axis)).mean(axis=others)
            assert steps.max() < 2.0 * steps.mean(), kind
    facts = json.loads(wraps["plaster.json"])
    height, width = read(wraps, "Height").shape
    assert facts["size"] == pytest.approx([width / 10, height / 10])
    # The blended strip, wherever it lies now, is as lively as the rest.
    lively = read(wraps, "BaseColor").astype(float).std(axis=(0, 2))
    strips = np.convolve(np.tile(lively, 2), np.ones(24) / 24, mode="valid")
    assert strips.min() > 0.7 * strips.mean()


@pytest.mark.parametrize(("size", "tileable"), [(256, True), (64, True), (128, False)])
def test_a_size_gives_a_square_of_that_many_texels(plaster, size: int, tileable: bool) -> None:
    """It still wraps, is square on the ground too, and its heights are in millimeters."""
    normals, albedo = plaster
    everywhere = np.ones(normals.shape[:2], bool)
    square = make_material(
        normals[:, 20:220], albedo[:, 20:220], everywhere[:, 20:220], tileable=tileable
    )
    material = make_material(normals, albedo, everywhere, tileable=tileable, size=size)
    made, plain = (
        encode_material(m, PixelSize.of("0.1mm"), "plaster")[0] for m in (material, square)
    )
    for kind in SHARP:
        assert read(made, kind).shape[:2] == (size, size)
        for axis in (0, 1):
            assert not tileable or seam_ratio(read(made, kind), axis) < 1.5, kind
    facts, before = (json.loads(files["plaster.json"]) for files in (made, plain))
    assert facts["pixels"] == [size, size] and facts["size"][0] == facts["size"][1]
    if tileable:  # the best square may be another than the best rectangle
        assert 12.0 <= facts["size"][0] <= 17.3
    else:
        assert facts["size"] == pytest.approx(before["size"])
    span, span_before = (np.ptp(found["height_range"]) for found in (facts, before))
    assert span == pytest.approx(span_before, rel=0.2)  # shrunk, the finest relief is gone
    assert material.albedo.mean() == pytest.approx(square.albedo.mean(), rel=0.03)


def weave(size: int, period: float) -> np.ndarray:
    """Heights of a plain weave on a broad hump: threads over and under each other in turn."""
    row, col = np.mgrid[:size, :size] * (2 * np.pi / period)
    over = np.cos(0.5 * col) * np.cos(0.5 * row)
    threads = np.cos(col) * (1 + 0.6 * over) + np.cos(row) * (1 - 0.6 * over)
    hump = 8.0 * np.sin(np.arange(size) / size * 4.0)[:, None]
    return 0.05 * period * threads + hump


@pytest.mark.parametrize("period", [13.0, 17.3])
def test_a_weave_goes_on_in_step(period: float) -> None:
    """The tile holds a whole number of pairs of threads, so that every thread continues."""
    rng = np.random.default_rng(0)
    normals = normals_of(weave(260, period))
    normals += rng.normal(0, 0.01, normals.shape)
    albedo = np.clip(0.5 + 0.02 * rng.normal(size=normals.shape[:2]), 0, 1)
    material = make_material(normals, albedo, np.ones(albedo.shape, bool), tileable=True)
    for length in material.height.shape:
        pairs = length / (2 * period)
        assert abs(pairs - round(pairs)) * 2 * period < 0.75
    # No band of another texture, and no hump that repeats.
    assert material.seam_visibility < 1.3
    spectrum = np.abs(np.fft.fft2(material.height))
    assert spectrum[:2, :2].max() < 0.1 * spectrum.max()
    energy = (material.normals[..., :2] ** 2).sum(axis=-1)
    side = round(2 * period)
    local = cv2.blur(np.tile(energy, (2, 2)), (side, side))
    assert np.ptp(local[side:-side, side:-side]) < 0.25 * energy.mean()


def test_visibility_sees_what_the_step_at_the_edge_does_not() -> None:
    """Blending a weave out of step leaves a band that wraps perfectly, and that anyone sees."""
    period = 16.0
    slopes = np.gradient(weave(256, period) - weave(256, 1e6))
    maps = np.dstack([slopes[1], slopes[0], np.full((256, 256, 4), 0.5)])
    tile, good = tiling.make_tileable(maps)
    length, overlap = 200, 56  # 12.5 threads
    share = np.linspace(0, 1, overlap)[None, :, None]
    blended = maps[:, :length].copy()
    blended[:, :overlap] = share * maps[:, :overlap] + (1 - share) * maps[:, length:]
    assert seam_ratio(blended[..., 0], 1) < 1.8
    middle = np.stack([np.arange(256), np.full(256, overlap // 2)], axis=1)
    assert tiling.seam_visibility(maps, blended, middle) > 2.0 > 1.3 > good
    assert min(tile.shape[:2]) >= 0.6 * 256


def test_paths() -> None:
    """The cheapest path through a maze is found by brute force too; a closed one ends where it begins."""
    rng = np.random.default_rng(1)
    cost = rng.random((6, 5))
    path = tiling.least_path(cost)
    least = min(
        sum(cost[row, col] for row, col in enumerate(columns))
        for columns in itertools.product(range(5), repeat=6)
        if all(abs(a - b) <= 1 for a, b in itertools.pairwise(columns))
    )
    assert cost[np.arange(6), path].sum() == pytest.approx(least)
    large = rng.random((80, 30))
    closed = tiling.least_path(large, closed=True)
    assert abs(closed[0] - closed[-1]) <= 1 and np.abs(np.diff(closed)).max() <= 1


@pytest.mark.parametrize("size", [0, 31, 9000])
def test_other_sizes_are_refused(plaster, size: int) -> None:
    normals, albedo = plaster
    with pytest.raises(ParameterError) as caught:
        make_material(normals, albedo, np.ones(normals.shape[:2], bool), size=size)
    assert caught.value.code == "material-size"


def test_an_object_that_is_not_flat_is_warned_of(plaster) -> None:
    ball = sphere(128)
    with pytest.warns(PhotostereoWarning):
        make_material(ball.normals, np.ones((128, 128)), ball.mask)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_material(*plaster, np.ones(plaster[0].shape[:2], bool))


def test_maps_of_a_material_agree(plaster) -> None:
    normals, albedo = plaster
    material = make_material(normals, albedo, np.ones(normals.shape[:2], bool), tileable=True)
    files, _ = encode_material(material, PixelSize(), "plaster")
    gl, dx = (
        read(files, f"Normal_{name}")[..., ::-1] / 65535 * 2 - 1 for name in ("OpenGL", "DirectX")
    )
    assert np.abs(gl * [1, -1, 1] - dx).max() < 1e-4
    facts = json.loads(files["plaster.json"])
    low, high = facts["height_range"]
    z = low + read(files, "Height") / 65535.0 * (high - low)
    wrapped = np.pad(z, 1, mode="wrap")
    made = normals_of(wrapped)[1:-1, 1:-1]
    angle = np.degrees(np.arccos(np.clip(np.sum(made * gl, axis=-1), -1, 1)))
    assert np.median(angle) < 3, "heights and normals are of one surface"
    packed = read(files, "OcclusionRoughnessMetallic")[..., ::-1]
    assert np.array_equal(packed[..., 0], read(files, "AmbientOcclusion"))
    assert np.array_equal(packed[..., 1], read(files, "Roughness"))


def test_tilt_and_bow_are_taken_out(plaster) -> None:
    row, col = np.mgrid[:50, :70].astype(float)
    assert np.abs(flatten(0.3 + 0.01 * col - 0.02 * row)).max() < 1e-12
    normals, albedo = plaster
    n = make_material(normals, albedo, np.ones(normals.shape[:2], bool)).normals
    assert np.abs((n[..., :2] / n[..., 2:]).mean(axis=(0, 1))).max() < 1e-9


def test_the_largest_rectangle(plaster) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        mask = cv2.GaussianBlur(rng.normal(size=(9, 11)), (0, 0), 1.0) > -0.15
        best = max(
            (
                (b - t) * (r - l)
                for t in range(9)
                for b in range(t, 10)
                for l in range(11)  # noqa: E741
                for r in range(l, 12)
                if mask[t:b, l:r].all()
            ),
            default=0,
        )
        big = np.kron(mask, np.ones((40, 40), bool))
        rows, cols = largest_rectangle(big)
        assert big[rows, cols].all()
        assert (rows.stop - rows.start) * (cols.stop - cols.start) == best * 1600
    with pytest.raises(ParameterError) as caught:
        largest_rectangle(np.ones((100, 20), bool))
    assert caught.value.code == "sample-too-small"


def test_periodic_heights_come_back() -> None:
    row, col = np.mgrid[:32, :48]
    z = np.sin(2 * np.pi * (2 * col / 48 + row / 32)) + np.cos(2 * np.pi * 3 * row / 32)
    step_col, step_row = np.roll(z, -1, 1) - z, np.roll(z, -1, 0) - z
    # Slopes whose neighboring means are the steps.
    slope = [np.fft.ifft(np.fft.fft(s, axis=a) / (0.5 + 0.5 * np.exp(2j * np.pi * np.fft.fftfreq(s.shape[a])).reshape(
        (-1, 1) if a == 0 else (1, -1))), axis=a).real for s, a in ((step_col, 1), (step_row, 0))]  # fmt: skip
    found = integrate_periodic(*slope)
    assert np.abs(found - (z - z.mean())).max() < 1e-9


def test_occlusion_of_planes_walls_and_pits() -> None:
    row, col = np.mgrid[:64, :64].astype(float)
    for slope in ((0.0, 0.0), (0.7, -0.4)):
        z = slope[0] * col + slope[1] * row
        assert np.abs(ambient_occlusion(z, normals_of(z)) - 1).max() < 0.02
    up = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (64, 64, 3))
    wall = np.where(col >= 32, 1e4, 0.0)
    assert abs(ambient_occlusion(wall, up)[32, 31] - 0.5) < 0.01, "half of the sky"
    # In the middle of a round pit of radius 5 and depth 5 the horizon is at 45 degrees: cos² 45° = ½.
    pit = np.where(np.hypot(row - 32, col - 32) >= 5, 5.0, 0.0)
    assert abs(ambient_occlusion(pit, up)[32, 32] - 0.5) < 0.06


@pytest.mark.parametrize("rough", [0.3, 0.5, 0.7])
def test_roughness_of_a_shiny_ball(rough: float) -> None:
    surface = sphere(64)
    shiny = Ggx(roughness=rough**2, reflectance=0.1)
    capture = render_surface(
        surface, dome_lights(40), albedo=np.full((64, 64), 0.4), reflectance=shiny
    )
    found = estimate_roughness(capture, capture.truth)
    middle = np.hypot(*(np.mgrid[:64, :64] - 31.5)) < 20
    assert abs(np.median(found[middle]) - rough) < 0.06


def test_roughness_of_a_matte_ball() -> None:
    capture = render_surface(sphere(48), dome_lights(20), albedo=np.full((48, 48), 0.4))
    found = estimate_roughness(capture, capture.truth)
    assert np.median(found[capture.mask]) > 0.95


@pytest.mark.parametrize(
    ("shape", "texture", "alphas"),
    [("relief", "stone", (0.2,)), ("fabric", "marble", (0.1, 0.3))],
)
def test_roughness_follows_the_material_and_not_its_color(
    shape: str, texture: str, alphas: tuple[float, ...]
) -> None:
    """Relief and stains are no change of the roughness; another material on the right half is."""
    parts = [
        render_scene(
            shape, size=160, lights=dome_lights(10), reflectance=Ggx(alpha), texture=texture
        )
        for alpha in alphas
    ]
    images = np.array(parts[0].images)
    images[:, :, 80:] = np.array(parts[-1].images)[:, :, 80:]
    capture = replace(parts[0], images=images)
    rough = estimate_roughness(capture, solve(capture, "net").normals)
    left, right = rough[:, :66], rough[:, 94:]
    assert abs(np.median(left) - np.sqrt(alphas[0])) < 0.06
    assert abs(np.median(right) - np.sqrt(alphas[-1])) < 0.06
    if len(alphas) == 1:
        assert rough.std() < 0.004  # one level of eight bits
