"""Photographs that cannot be used are left out, each with its reason, if enough remain; good ones never are."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.capture import Capture, load
from photostereo.cli.root import app
from photostereo.core.control import SILENT
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.expected_error import expected_error
from photostereo.io.png import write_png
from photostereo.lights.ambient import EVEN, estimate_room_light
from photostereo.photographs.alignment.alignment import decide
from photostereo.photographs.alignment.edges import TURNED, compare_edges
from photostereo.photographs.faults import find_blurred
from photostereo.pipeline.pipeline import Pipeline
from photostereo.solver.solve import solve
from photostereo_lab.scenes import dome_lights, random_lights, render_scene

COUNT = 10
LIGHTS = dome_lights(COUNT, max_angle=55)


@cache
def scene(shape: str = "relief") -> Capture:
    return render_scene(shape, size=128, lights=LIGHTS, texture="marble", reflectance="ggx")


def write(folder: Path, images: np.ndarray, lights: np.ndarray | None = None) -> Path:
    """Sixteen-bit photographs with a little noise, and their light file."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for number, image in enumerate(images):
        noisy = image + rng.normal(0, 0.002, image.shape)
        write_png(
            folder / f"{number:02d}.png",
            np.rint(np.clip(0.6 * noisy, 0, 1) * 65535).astype(np.uint16),
        )
    rows = LIGHTS[: len(images)] if lights is None else lights
    (folder / "lights.csv").write_text(
        "x,y,z\n" + "\n".join(",".join(map(str, row)) for row in rows)
    )
    return folder


def truncate(folder: Path) -> None:
    file = folder / "03.png"
    file.write_bytes(file.read_bytes()[:-400])


def other_size(folder: Path) -> None:
    write_png(folder / "03.png", np.zeros((100, 128), np.uint16))


def first_truncated(folder: Path) -> None:
    file = folder / "00.png"
    file.write_bytes(file.read_bytes()[:-400])


def first_of_other_size(folder: Path) -> None:
    write_png(folder / "00.png", np.zeros((100, 128), np.uint16))


def copy(folder: Path) -> None:
    shutil.copy(folder / "02.png", folder / "03.png")


def blur(folder: Path) -> None:
    stored = cv2.imread(str(folder / "03.png"), cv2.IMREAD_UNCHANGED)
    write_png(folder / "03.png", cv2.GaussianBlur(stored, (0, 0), 4))


def darken(folder: Path) -> None:
    stored = cv2.imread(str(folder / "03.png"), cv2.IMREAD_UNCHANGED)
    write_png(folder / "03.png", (stored * 0.02).astype(np.uint16))


@pytest.mark.parametrize(
    ("spoil", "file", "reason"),
    [
        (truncate, "03.png", "damaged-image"),
        (first_truncated, "00.png", "damaged-image"),
        (other_size, "03.png", "size-mismatch"),
        (first_of_other_size, "00.png", "size-mismatch"),
        (copy, "03.png", "duplicate"),
        (blur, "03.png", "blurred"),
        (darken, "03.png", "dark"),
    ],
)
def test_a_bad_photograph_is_left_out_with_its_light(tmp_path, spoil, file, reason):
    folder = write(tmp_path / "thing", scene().images)
    whole = load(folder)
    assert not whole.origin.faults
    spoil(folder)
    capture = load(folder)
    (fault,) = capture.origin.faults
    assert (fault.file, fault.used) == (file, False)
    assert fault.reason == reason or (reason == "dark" and fault.reason == "light-off")
    number = int(file[:2])
    assert len(capture) == COUNT - 1 and file not in capture.origin.files
    kept = np.delete(np.arange(COUNT), number)
    np.testing.assert_allclose(capture.lights.directions, whole.lights.directions[kept])
    if fault.reason != "light-off":
        np.testing.assert_array_equal(capture.images, whole.images[kept])
    naming = [note for note in capture.origin.notes if note.values.get("file") == file]
    assert len(naming) == 1 + (fault.reason == "light-off")
    with pytest.raises(CaptureError) as caught:
        load(folder, strict=True)
    assert caught.value.code == fault.reason and caught.value.file.suffix == ".png"


def test_the_command_line_is_strict_and_aligns_as_it_is_told(tmp_path, capsys):
    images = scene().images.copy()
    images[[2, 5]] = np.roll(images[[2, 5]], (3, 2), (1, 2))
    folder, summaries = write(tmp_path / "thing", images), {}
    copy(folder)
    for align in ("auto", "off"):
        words = [
            "--method",
            "ls",
            "--align",
            align,
            "--no-surface",
            "--no-report",
            "--out",
            str(tmp_path / align),
        ]
        app(["solve", str(folder), *words], standalone_mode=False)
        summaries[align] = json.loads((tmp_path / align / "summary.json").read_text())
        assert "03.png is left out" in capsys.readouterr().out
    assert summaries["auto"]["alignment"]["corrected"]
    assert "alignment" not in summaries["off"]
    with pytest.raises(CaptureError) as caught:
        app(
            ["solve", str(folder), "--strict", "--out", str(tmp_path / "none")],
            standalone_mode=False,
        )
    assert caught.value.code == "duplicate"


def test_without_alignment_nothing_is_aligned(tmp_path, monkeypatch):
    def fail(*_):
        raise AssertionError("it is not wanted")

    monkeypatch.setattr("photostereo.capture.examine.find_alignment", fail)
    assert load(write(tmp_path / "thing", scene().images), align="off").origin.alignment is None


def test_a_photograph_of_another_object_is_left_out(tmp_path):
    images = scene("sphere").images.copy()
    images[3] = scene().images[3]
    (fault,) = load(write(tmp_path / "thing", images)).origin.faults
    assert (fault.file, fault.reason) == ("03.png", "mismatched")


@pytest.mark.parametrize(
    ("shape", "texture", "reflectance"),
    [
        ("figure", None, "ggx"),
        ("vase", "glaze", "ggx"),
        ("relief", "stone", "oren-nayar"),
        ("sphere", "marble", "ggx"),
        ("fabric", "uniform", "lambertian"),
    ],
)
@pytest.mark.parametrize("degrees", [30, 100])
def test_a_photograph_that_is_turned_is_left_out(tmp_path, shape, texture, reflectance, degrees):
    lights = random_lights(11, rng=5)
    images = render_scene(
        shape, size=110, lights=lights, texture=texture, reflectance=reflectance
    ).images.copy()
    assert not load(write(tmp_path / "still", images, lights)).origin.faults
    turn = cv2.getRotationMatrix2D((54.5, 54.5), degrees, 1)
    images[4] = cv2.warpAffine(images[4], turn, (110, 110), borderMode=cv2.BORDER_REPLICATE)
    (fault,) = load(write(tmp_path / "turned", images, lights)).origin.faults
    assert (fault.file, fault.reason) == ("04.png", "mismatched")


def test_a_dark_photograph_among_bright_ones_is_of_another_object(tmp_path):
    """It fills less of the frame, so that little of it is left unexplained."""
    images = scene().images.copy()
    images[3] = render_scene("figure", size=128, lights=LIGHTS, reflectance="ggx").images[3]
    (fault,) = load(write(tmp_path / "thing", images)).origin.faults
    assert (fault.file, fault.reason) == ("03.png", "mismatched")


def test_what_looks_alike_if_it_is_turned_is_no_evidence():
    """Threads that run across are lit from other sides than those that run along."""
    weave = render_scene(
        "fabric", size=100, lights=random_lights(9, rng=1), reflectance="lambertian"
    )
    alike, best, better = compare_edges(np.sqrt(weave.images), SILENT)
    assert alike.min() < 0.6 and best.max() > alike.min()
    assert better.max() < TURNED / 2


def test_a_weave_whose_threads_show_in_one_photograph_only_is_not_turned():
    """Edges alone say that it is turned by 90°, but the others explain it as well as most."""
    ones = np.ones(8)
    edges = 0.95 * ones, 0.95 * ones, 0.3 * (np.arange(8) == 2)
    for misfit, named in ((-0.5, []), (1.0, [2])):
        still, unexplained = np.zeros((8, 3)), misfit * (np.arange(8) == 2)
        alignment = decide(50.0, still, ones, ones, unexplained, ones, *edges)
        assert np.flatnonzero(alignment.mismatched).tolist() == named


def test_what_is_turned_around_is_not_a_displacement():
    """On a table that was turned by 180° most tiles agreed on 9 pixels, which left it as unlike the others as before."""
    which, ones = np.arange(8) == 2, np.ones(8)
    moves = np.where(which[:, None], [0.9, 0.3, -0.04], 0.0)
    for better, named in ((0.6, [2]), (0.0, [])):
        edges = 0.75 * ones - 0.7 * which, 0.75 * ones, better * which
        alignment = decide(210.0, moves, 0.04 * ones, 0.94 * ones, 4.2 * which, 1.3 * ones, *edges)
        assert np.flatnonzero(alignment.mismatched).tolist() == named
        assert alignment.is_still is bool(named)


def test_with_few_photographs_nothing_is_left_out(tmp_path):
    folder = write(tmp_path / "thing", scene().images[:6])
    copy(folder)
    capture = load(folder)
    assert len(capture) == 6 and capture.origin.faults[0].used
    truncate(folder)
    with pytest.raises(CaptureError) as caught:
        load(folder)
    assert caught.value.code == "damaged-image"


@pytest.mark.parametrize("lights", ["all", "without it"])
def test_a_photograph_with_the_light_off_is_the_ambient_light(tmp_path, lights):
    room = 0.25 * scene().images.mean(axis=0)
    images = [*(scene().images[:5] + room), room, *(scene().images[5:] + room)]
    rows = np.insert(LIGHTS, 5, [0, 0, 1], axis=0) if lights == "all" else LIGHTS
    capture = load(write(tmp_path / "thing", np.stack(images), rows))
    assert [(fault.file, fault.reason) for fault in capture.origin.faults] == [
        ("05.png", "light-off")
    ]
    np.testing.assert_allclose(capture.lights.directions, LIGHTS, atol=1e-6)
    assert np.abs(capture.images - 0.6 * scene().images).mean() < 0.004
    assert by_code(capture.origin.notes)["ambient-subtracted"].values["file"] == "05.png"


def shallow_relief(lights: np.ndarray) -> np.ndarray:
    """Photographs (d, 128, 128) of a sheet with gentle bumps."""
    rng = np.random.default_rng(0)
    height = 3 * cv2.GaussianBlur(rng.normal(size=(128, 128)), (0, 0), 3)
    down, right = np.gradient(height)
    normals = np.dstack([-right, down, np.ones_like(height)])
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    paint = 0.6 + 0.4 * cv2.GaussianBlur(rng.random((128, 128)), (0, 0), 1.5)
    return np.moveaxis(paint[..., None] * np.maximum(normals @ lights.T, 0), 2, 0)


@pytest.mark.parametrize("height", [8, 15, 25])
@pytest.mark.parametrize("file", [True, False])
def test_a_raking_light_is_not_the_light_of_the_room(tmp_path, height, file):
    around = np.radians(36 * np.arange(COUNT))
    above = np.radians(np.where(np.arange(COUNT) == 3, height, 60))
    lights = np.column_stack(
        [np.cos(above) * np.cos(around), np.cos(above) * np.sin(around), np.sin(above)]
    )
    folder = write(tmp_path / "sheet", shallow_relief(lights), lights)
    if not file:
        (folder / "lights.csv").unlink()
    opened = Pipeline(folder).opened
    assert not opened.source.faults and opened.photographs.ambient is None


def test_a_weak_lamp_is_not_the_light_of_the_room(tmp_path):
    images = shallow_relief(LIGHTS)
    images[3] *= 0.15
    capture = load(write(tmp_path / "thing", images))
    assert not capture.origin.faults and len(capture) == COUNT


@pytest.mark.parametrize("shape", ["figure", "coin", "fabric", "vase", "sphere"])
def test_good_photographs_are_used(tmp_path, shape):
    images = scene(shape).images * np.linspace(1, 0.6, COUNT)[:, None, None]
    assert not load(write(tmp_path / "thing", images)).origin.faults


def test_a_ball_series_follows(tmp_path):
    """Photographs of a ball that are paired by their order lose the partner of what is left out."""
    from photostereo.capture.source import Source
    from photostereo.photographs.faults import Fault

    found = Source(tmp_path, "", "", [tmp_path / name for name in "abc"])
    left = found.without({1: Fault("b", "dark")})
    assert [file.name for file in left.files] == ["a", "c"]
    again = left.without({0: Fault("a", "blurred")})
    assert [file.name for file in again.every_file] == ["a", "b", "c"] and len(again.faults) == 2


@pytest.mark.parametrize("reflectance", ["oren-nayar", "blinn-phong"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_light_that_all_shadows_have_alike_is_that_of_the_room(reflectance, share):
    lit = render_scene("figure", size=128, lights=LIGHTS, reflectance=reflectance)
    room = share * lit.images.mean(axis=0)
    found = estimate_room_light(lit.images + room, LIGHTS, lit.mask)
    assert found.is_certain and found.share == pytest.approx(share / (1 + share), rel=0.1)
    here = np.linspace(0, 2, 128)[:, None]  # bounced from below, and not from above
    assert estimate_room_light(lit.images + here * room, LIGHTS, lit.mask).evenness < EVEN
    assert not estimate_room_light(lit.images, LIGHTS, lit.mask).is_certain


def test_light_of_the_room_is_subtracted_if_shadows_show_it(tmp_path):
    ball = render_scene("sphere", size=128, lights=LIGHTS, texture="marble")
    room = (
        0.25
        * ball.truth_albedo
        * np.maximum(0.8 * ball.truth[..., 2] + 0.3 * ball.truth[..., 1], 0)
    )
    dark, lit = (
        load(write(tmp_path / name, ball.images + add))
        for name, add in (("a", 0 * room), ("b", room))
    )
    assert "room-light" not in by_code(dark.origin.notes)
    assert "room-light" in by_code(lit.origin.notes)
    before, after = np.abs(0.6 * room).mean(), np.abs(lit.images - dark.images).mean()
    assert after < 0.4 * before
    relief = scene().images + 0.25 * scene().images.mean(axis=0)  # a few shadows are enough
    found = by_code(load(write(tmp_path / "c", relief)).origin.notes)["room-light"]
    assert found.values["share"] == pytest.approx(0.2, abs=0.01)
    weave = scene("fabric").images + 0.25 * scene("fabric").images.mean(
        axis=0
    )  # without any nobody knows
    assert "room-light" not in by_code(load(write(tmp_path / "d", weave)).origin.notes)


def test_a_ring_of_lights_does_not_take_steepness_for_light_of_the_room(tmp_path):
    """A glossy leaf under lights of one height: two thirds of its brightness are the same in all photographs."""
    around = 2 * np.pi * np.arange(8) / 8
    lights = np.column_stack([0.5 * np.cos(around), 0.5 * np.sin(around), np.full(8, 0.866)])
    height = cv2.GaussianBlur(np.random.default_rng(1).normal(size=(128, 128)), (0, 0), 6)
    down, right = 0.25 * np.array(np.gradient(height)) / np.hypot(*np.gradient(height)).mean()
    normals = np.dstack([-right, down, np.ones_like(height)])
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    half = lights + np.array([0, 0, 1])
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    images = np.maximum(normals @ lights.T, 0) + 1.2 * np.maximum(normals @ half.T, 0) ** 60
    images = np.moveaxis(images, 2, 0) / 2
    found = estimate_room_light(images, lights, np.ones((128, 128), bool))
    assert found.is_possible and found.one_height and not found.is_certain
    capture = load(write(tmp_path / "leaf", images, lights))
    assert "room-light" not in by_code(capture.origin.notes)
    (doubt,) = capture.origin.doubts
    assert doubt.code == "room-light-doubted" and 0 < doubt.effect < 10
    assert doubt in diagnose(capture).findings
    expected = expected_error(solve(capture, "ls"), findings=[doubt], own=20.0)
    assert expected.degrees == pytest.approx(np.hypot(20.0, doubt.effect))


@pytest.mark.parametrize("tint", [(1.0, 1.0, 1.0), (1.5, 1.0, 0.5), (0.7, 1.0, 1.4)])
def test_light_of_the_room_has_its_own_color(tint, tmp_path):
    lit = render_scene("figure", size=128, lights=LIGHTS, texture="marble", color=True)
    room = 0.3 * np.array(tint, np.float32) * lit.images.mean(axis=0)
    dark, added = (
        load(write(tmp_path / name, lit.images + add), color=True)
        for name, add in (("a", 0 * room), ("b", room))
    )
    assert "room-light" in by_code(added.origin.notes)
    left = (added.images - dark.images)[:, dark.mask]
    assert np.abs(left.mean(axis=(0, 1))).max() < 0.02 * dark.images[:, dark.mask].mean()


@pytest.mark.parametrize(
    ("shape", "texture", "reflectance"),
    [
        ("relief", "marble", "blinn-phong"),
        ("sphere", "marble", "ggx"),
        ("figure", None, "oren-nayar"),
    ],
)
def test_a_blur_is_recognized_and_light_from_the_front_is_not_one(
    shape, texture, reflectance
) -> None:
    lights = random_lights(12, max_angle=60, rng=8)
    scene = render_scene(
        shape, size=150, lights=lights, reflectance=reflectance, texture=texture, rng=8
    )
    rng, number = np.random.default_rng(8), int(np.argmax(lights[:, 2]))
    noise = 0.005 * rng.standard_normal(scene.images.shape).astype(np.float32)
    sharp = np.sqrt(np.clip(scene.images + noise, 0, 1))
    assert find_blurred(sharp) == []
    moved = sharp.copy()
    moved[number] = np.roll(sharp[number], (3, -2), (0, 1))
    assert find_blurred(moved) == []
    for blur in (2.5, 4.0, 8.0):
        pictures = sharp.copy()
        soft = cv2.GaussianBlur(scene.images[number], (0, 0), blur)
        pictures[number] = np.sqrt(np.clip(soft + noise[number], 0, 1))
        assert find_blurred(pictures) == [number]
