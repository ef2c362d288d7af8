"""Captures larger than memory: the same results in bands, no seam, no half-written output."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import photostereo as ps
from photostereo.capture import load, write_diligent
from photostereo.core.control import SILENT
from photostereo.core.errors import ParameterError
from photostereo.io.memory import available_memory, parse_memory
from photostereo.priors.entry import Setting
from photostereo.runtime.arrays import CPU
from photostereo.solver import tiles
from photostereo.solver.methods import find_method
from photostereo.solver.prepared import prepare
from photostereo.solver.problem import Problem
from photostereo.solver.tiles import CROPS, bands_of, choose_sample, plan_bands
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import render_scene


@pytest.fixture(scope="module")
def noisy() -> ps.Capture:
    scene = render_scene("relief", size=200)
    return add_poisson(scene.take(12, rng=0), 15, rng=0)


def budget_for(rows: int, capture: ps.Capture, *, prior: bool = True) -> int:
    """Just enough memory for bands of so many rows of their own."""
    height, width = capture.frame
    row = tiles.bytes_of_row(width, len(capture), 1, prior=260 * prior)
    halo = 24 if prior else 0
    return tiles.OF_THE_PROGRAM + height * width * tiles.OF_A_RESULT + row * (rows + 2 * halo)


in_tiles = partial(ps.solve, crops=CROPS)


def angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.degrees(2 * np.arcsin(np.clip(np.linalg.norm(a - b, axis=-1) / 2, 0, 1)))


@pytest.mark.parametrize("method", ["ls", "pls", "l1", "sbl"])
def test_pixelwise_methods_are_the_same_in_bands(noisy: ps.Capture, method: str) -> None:
    whole = ps.solve(noisy, method)
    memory = budget_for(64, noisy, prior=False)
    found = in_tiles(noisy, method, memory=memory)
    assert np.abs(found.normals - whole.normals).max() < 1e-4
    assert np.abs(found.albedo - whole.albedo).max() < 1e-4 * whole.albedo.max()
    assert found.digest == whole.digest
    assert found.angular_error is not None and whole.angular_error is not None
    assert abs(found.angular_error.mean - whole.angular_error.mean) < 1e-3


@pytest.mark.parametrize(("method", "color"), [("net", True), ("dlnet", False)])
def test_the_learned_model_in_bands(method: str, color: bool) -> None:
    """It looks at neighbors and at colors: bands have a halo, and their memory counts the colors."""
    scene = render_scene("relief", size=(176, 40), color=color)
    scene = add_poisson(scene.take(6, rng=0), 20, rng=0)
    channels = 3 if color else 1
    entry = find_method(method)
    demands = {"prior": 260 * entry.has_prior, "colors": color, "workspace": entry.model.workspace}
    row = tiles.bytes_of_row(40, 6, channels, **demands)
    assert row > 40 * 6 * 4 * (1 + channels * color)
    memory = tiles.OF_THE_PROGRAM + 176 * 40 * tiles.OF_A_RESULT + row * (88 + 48)
    assert len(plan_bands((176, 40), 6, row, memory, halo=True)) == 2
    options = {"max_iter": 2} if entry.has_prior else {}
    whole = in_tiles(scene, method, memory=10**12, **options)
    parts = in_tiles(scene, method, memory=memory, **options)
    off = angle(whole.normals, parts.normals)[scene.mask]
    assert off.mean() < 0.05
    assert parts.albedo.shape == whole.albedo.shape


def test_colors_are_kept() -> None:
    scene = render_scene("vase", size=96, color=True)
    for method in ("ls", "sbl"):
        whole = ps.solve(scene, method)
        memory = (
            10**9
            if method == "ls"
            else budget_for(80, scene, prior=False) + 96 * 8 * 80 * len(scene)
        )
        found = in_tiles(scene, method, memory=memory)
        assert found.albedo.shape == whole.albedo.shape == (96, 96, 3)
        assert np.abs(found.albedo - whole.albedo).max() < 1e-3 * whole.albedo.max()


@pytest.mark.parametrize("method", ["dlnv", pytest.param("dlsr", marks=pytest.mark.slow)])
def test_bands_leave_no_seam(noisy: ps.Capture, method: str) -> None:
    """Two budgets, two sets of bands: the results agree to 0.05° and no better far from the borders than at them."""
    large = noisy
    one = in_tiles(large, method, memory=10**12, max_iter=8)
    two = in_tiles(large, method, memory=budget_for(64, noisy), max_iter=8)
    off = angle(one.normals, two.normals)
    assert off.max() > 0  # there were bands
    assert off[noisy.mask].mean() < 0.05
    borders = (64, 128, 192)
    near = np.zeros(noisy.frame, dtype=bool)
    for row in borders:
        near[row - 2 : row + 2] = True
    assert off[near & noisy.mask].mean() < 0.05
    # A seam would be a jump across the border that the other result does not have.
    step = np.abs(
        np.linalg.norm(np.diff(two.normals, axis=0) - np.diff(one.normals, axis=0), axis=-1)
    )
    assert step[[row - 1 for row in borders]].mean() < 2e-3


def test_a_dictionary_of_a_sample_serves_all(noisy: ps.Capture) -> None:
    """The error of learning on a third of the picture is that of learning on all of it, to 1 %."""
    whole = ps.solve(noisy, "dlnv")
    found = in_tiles(noisy, "dlnv")
    assert found.angular_error is not None and whole.angular_error is not None
    assert found.angular_error.mean < 1.01 * whole.angular_error.mean
    assert found.arrays["dictionary"].shape == (192, 192)


def test_one_function_for_every_size(noisy: ps.Capture, monkeypatch, tmp_path) -> None:
    """A small object is learned on as a whole, a large one on a sample, and either in bands if the memory is small."""
    small = ps.solve(noisy, "dlnv", max_iter=3)
    memory = budget_for(64, noisy)
    in_bands = ps.solve(noisy, "dlnv", max_iter=3, memory=memory)
    assert np.array_equal(
        in_bands.normals, in_tiles(noisy, "dlnv", max_iter=3, memory=memory).normals
    )
    assert not np.array_equal(in_bands.normals, small.normals)
    monkeypatch.setattr("photostereo.solver.tiles.SAMPLE_PIXELS", 1000)
    sampled = ps.solve(noisy, "dlnv", max_iter=3)
    assert np.array_equal(sampled.normals, in_tiles(noisy, "dlnv", max_iter=3).normals)
    # Errors of the iterations are those of the sample; the state of a sample cannot be saved, so all is solved.
    assert all(record.error is not None for record in sampled.history)
    checkpointed = ps.solve(noisy, "dlnv", max_iter=3, checkpoint=tmp_path / "state.npz")
    assert np.array_equal(checkpointed.normals, small.normals)


@pytest.mark.parametrize(
    ("method", "kept", "left_out"), [("net", "spread", None), ("sbl", None, "inliers")]
)
def test_maps_survive_in_bands(method: str, kept: str | None, left_out: str | None) -> None:
    """Maps of a few values per pixel are those of a solve in one go; those of every photograph are left out."""
    scene = add_poisson(render_scene("relief", size=160).take(10, rng=0), 15, rng=0)
    whole, one = ps.solve(scene, method), in_tiles(scene, method)
    assert whole.maps.keys() == one.maps.keys() and whole.status == one.status
    row = tiles.bytes_of_row(160, 10, 1, prior=0, workspace=find_method(method).model.workspace)
    memory = tiles.OF_THE_PROGRAM + 160 * 160 * tiles.OF_A_RESULT + row * (80 + 2 * tiles.HALO)
    assert len(bands_of(scene, find_method(method), {}, CPU, memory)) == 2
    bands = in_tiles(scene, method, memory=memory)
    if left_out is not None:
        assert left_out in whole.maps and left_out not in bands.maps
    if kept is not None:
        assert bands.maps[kept].shape == whole.maps[kept].shape
        # The learned model sees the surroundings of a band in small photographs, which have less noise.
        apart = np.abs(bands.maps[kept] - whole.maps[kept])[scene.mask].mean()
        assert apart < (0.3 if method == "net" else 0.1) * whole.maps[kept].mean(), apart


def test_following_itself_repeats_the_descent(noisy: ps.Capture) -> None:
    """A descent that follows its own history takes the same way, bit for bit but for rounding."""
    method, lights = find_method("dlnv"), noisy.lights.matrix
    values = method.resolve({"max_iter": 4, "lam": 2.0, "mu": 0.1})
    model = method.model.kind(noisy.pixels(noisy.intensity_scale()), lights)
    first, _ = method.prior.build(values, Setting(noisy.mask))
    expected = Problem(model, first).solve(max_iter=4, keep_lessons=True)
    again, _ = method.prior.build(values, Setting(noisy.mask, lessons=expected.lessons))
    found = Problem(model, again).solve(max_iter=4)
    assert np.abs(found.normals - expected.normals).max() < 1e-6
    assert found.history[-1].cost == pytest.approx(expected.history[-1].cost, rel=1e-6)


def test_survey_is_that_of_the_capture(noisy: ps.Capture) -> None:
    sample = choose_sample(noisy.mask)
    prepared = prepare(noisy, "dlsr", sample=sample, strengths="given")
    assert prepared.measured.scale == pytest.approx(noisy.intensity_scale())
    assert prepared.digest() == noisy.digest
    flat = noisy.images.reshape(len(noisy), -1)
    assert np.allclose(prepared.noise[0].pixels, flat[:, sample.index].T / prepared.measured.scale)
    learned, _ = prepared.learn(find_method("dlsr").resolve({"max_iter": 2}), SILENT)
    whole = ps.solve(noisy, "dlsr", max_iter=1)
    assert learned.values["lam"] == pytest.approx(whole.parameters["lam"], rel=0.1)
    assert learned.values["mu"] == pytest.approx(whole.parameters["mu"], rel=0.1)


def test_sample_is_spread() -> None:
    mask = np.zeros((640, 640), dtype=bool)
    mask[:, 100:] = True
    sample = choose_sample(mask, side=32, crops=64)
    rows, cols = np.divmod(sample.index, 640)
    assert mask.ravel()[sample.index].all()
    counts = np.histogram2d(rows, cols, bins=4, range=[[0, 640], [100, 640]])[0]
    assert counts.min() > 0.3 * counts.mean()
    tiny = np.zeros((50, 50), dtype=bool)
    tiny[45:48, 44:49] = True
    assert len(choose_sample(tiny).index) == 15


def test_files_are_read_in_bands(noisy: ps.Capture, tmp_path) -> None:
    write_diligent(noisy, tmp_path / "reliefPNG")
    whole, lazy = load(tmp_path / "reliefPNG"), load(tmp_path / "reliefPNG", lazy=True)
    assert np.array_equal(lazy.photographs.rows(30, 77), whole.images[:, 30:77])
    assert np.array_equal(np.stack(list(lazy.photographs.frames())), whole.images)
    assert np.array_equal(lazy.mask, whole.mask)
    assert lazy.origin == whole.origin
    assert not lazy.in_memory and "on disk" in repr(lazy)
    assert lazy.digest == whole.digest
    held = lazy.loaded()
    assert held.in_memory and held.origin == whole.origin and held.loaded() is held
    assert np.array_equal(held.images, whole.images) and not held.images.flags.writeable
    few, same = lazy.take(5, rng=3), whole.take(5, rng=3)
    assert np.array_equal(few.photographs.rows(0, 200), same.images)
    assert few.origin.files == same.origin.files


def test_crop_and_scale(noisy: ps.Capture, tmp_path) -> None:
    write_diligent(noisy, tmp_path / "reliefPNG")
    whole = load(tmp_path / "reliefPNG")
    part = load(tmp_path / "reliefPNG", crop=(20, 40, 60, 50))
    assert np.array_equal(part.images, whole.images[:, 40:90, 20:80])
    assert np.array_equal(part.truth, whole.truth[40:90, 20:80])
    half = load(tmp_path / "reliefPNG", scale=0.5)
    assert half.frame == (100, 100)
    means = whole.images.reshape(len(whole), 100, 2, 100, 2).mean(axis=(2, 4))
    assert np.abs(half.images - means).max() < 1e-5
    lazy = load(tmp_path / "reliefPNG", crop=(20, 40, 60, 50), scale=0.5, lazy=True)
    assert np.array_equal(
        lazy.photographs.rows(3, 9),
        load(tmp_path / "reliefPNG", crop=(20, 40, 60, 50), scale=0.5).images[:, 3:9],
    )
    with pytest.raises(ParameterError) as caught:
        load(tmp_path / "reliefPNG", crop=(150, 0, 100, 10))
    assert caught.value.code == "crop-outside"
    with pytest.raises(ParameterError) as caught:
        load(tmp_path / "reliefPNG", scale=2.0)
    assert caught.value.code == "bad-scale"


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("height", [100, 997, 4000])
def test_bands_cover_every_row_once(height: int, prior: bool) -> None:
    row = tiles.bytes_of_row(300, 20, 1, prior=260 * prior)
    memory = tiles.OF_THE_PROGRAM + height * 300 * tiles.OF_A_RESULT + row * 250
    bands = plan_bands((height, 300), 20, row, memory, halo=prior)
    kept = [r for band in bands for r in range(band.own_first, band.own_last)]
    assert kept == list(range(height))
    for band in bands:
        assert band.last - band.first <= 250
        has_halo = band.first < band.own_first or band.last > band.own_last
        assert has_halo == (prior and len(bands) > 1)
        assert band.first % 4 == 0
    assert len(bands) == {100: 1, 997: 5, 4000: 20 if prior else 17}[height]


def test_too_little_memory_is_said(noisy: ps.Capture) -> None:
    for method in ("dlsr", "ls"):
        with pytest.raises(ParameterError) as caught:
            ps.solve(noisy, method, memory=10**8)
        assert caught.value.code == "memory-too-small" and caught.value.values["needed"] > 10**8
        assert "--" not in str(caught.value) and "--memory" in caught.value.rendered("terminal")
    with pytest.raises(ParameterError) as caught:
        bands_of(noisy, find_method("rpca"), {}, CPU)
    assert caught.value.code == "method-not-divisible"


def test_black_photographs_are_refused_in_tiles_too(noisy: ps.Capture, monkeypatch) -> None:
    monkeypatch.setattr("photostereo.solver.tiles.SAMPLE_PIXELS", 100)
    with pytest.raises(ps.CaptureError) as caught:
        ps.solve(noisy.with_images(np.zeros_like(noisy.images)), "dlnv")
    assert caught.value.code == "black-photographs"


def test_amounts_of_memory() -> None:
    assert parse_memory("4GB") == 4 * 10**9
    assert parse_memory(" 1.5 GiB ") == 3 * 2**29
    for wrong in ("4 parsecs", "GB", "-1GB", "0"):
        with pytest.raises(ParameterError) as caught:
            parse_memory(wrong)
        assert caught.value.code == "invalid-memory"
    assert available_memory() > 10**6


LIMITED = """
import resource, sys
import psutil
import photostereo.pipeline.budget  # what it needs is loaded before the limit is set
import photostereo.pipeline.write_results
from photostereo.cli import main

allowed = psutil.Process().memory_info().vms + 400_000_000
resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
main()
"""


def test_a_limit_of_the_system_is_respected(tmp_path) -> None:
    """Under ``ulimit -v`` even the smallest band does not fit: one sentence, code 2, and nothing is written."""
    pytest.importorskip("resource")
    write_diligent(render_scene("sphere", size=48), tmp_path / "spherePNG")
    command = [
        sys.executable,
        "-c",
        LIMITED,
        "solve",
        str(tmp_path / "spherePNG"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--memory" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["spherePNG"]


def test_progress_is_counted_through_the_bands(noisy: ps.Capture) -> None:
    class Counter(ps.Control):
        def __init__(self) -> None:
            self.stages: list[list] = []

        def on_stage(self, name: str, total: int | None = None) -> None:
            self.stages.append([name, total, 0])

        def on_advance(self, steps: int = 1) -> None:
            self.stages[-1][2] += steps

    counter = Counter()
    in_tiles(noisy, "dlnv", memory=budget_for(64, noisy), max_iter=3, control=counter)
    assert ["survey", 12, 12] in counter.stages
    assert counter.stages[-1] == ["bands", 12, 12]  # four bands


def test_photographs_are_decoded_once(noisy: ps.Capture, tmp_path, monkeypatch) -> None:
    """However many bands there are; and what was kept on disk is what the files hold."""
    from photostereo.photographs import developed
    from photostereo.photographs import protocol as photographs

    write_diligent(noisy, tmp_path / "reliefPNG")
    asked: list[str] = []
    decode = photographs.decode_image
    monkeypatch.setattr(
        photographs,
        "decode_image",
        lambda path, **how: (asked.append(path.name), decode(path, **how))[1],
    )
    capture = load(tmp_path / "reliefPNG", lazy=True)
    expected = in_tiles(load(tmp_path / "reliefPNG"), "pls")
    asked.clear()
    found = in_tiles(capture, "pls", memory=budget_for(64, noisy, prior=False))
    assert len(asked) <= len(capture) and len(set(asked)) == len(asked)
    assert np.array_equal(found.normals, expected.normals)
    assert found.digest == expected.digest
    # A disk without room: decoded again for every band, with the same result.
    monkeypatch.setattr(developed, "open_spool", lambda size: None)
    again = in_tiles(
        load(tmp_path / "reliefPNG", lazy=True), "pls", memory=budget_for(64, noisy, prior=False)
    )
    assert np.array_equal(again.normals, expected.normals)
    assert len(asked) > 3 * len(capture)


def test_a_small_object_in_a_large_frame_is_one_tile() -> None:
    """The limit of a band counts the pixels of the object; a whole frame of that size is divided."""
    images, lights = (
        np.broadcast_to(np.float32(0.5), (4, 1500, 4000)),
        np.eye(4, 3) + np.array([0, 0, 2]),
    )
    mask = np.zeros((1500, 4000), dtype=bool)
    mask[:1200, :50] = True
    entry = find_method("dlnv")
    assert len(bands_of(ps.Capture(images, lights, mask), entry, {"stride": 4}, CPU, 10**11)) == 1
    whole = bands_of(ps.Capture(images, lights), entry, {"stride": 4}, CPU, 10**11)
    assert (
        len(whole) > 1
        and max(band.own_last - band.own_first for band in whole) * 4000 <= tiles.MOST_PIXELS
    )
