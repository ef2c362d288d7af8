"""Camera movement between photographs, against scenes that are known at every real-valued position."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from photostereo.capture import load
from photostereo.cli.root import app
from photostereo.core.control import SILENT, Cancelled, Control
from photostereo.core.errors import ParameterError
from photostereo.core.findings import by_code
from photostereo.io.png import write_png
from photostereo.photographs.alignment.alignment import Alignment, find_alignment
from photostereo.photographs.developed import open_files
from photostereo.photographs.faults import reduced, survey
from photostereo.photographs.framing import Framing, moved_back
from photostereo_lab.scenes import dome_lights

SIZE, MIDDLE, RADIUS = 200, 99.5, 90.0


class Scene:
    """A smooth relief given by formulas, so that a moved camera sees exactly what it would see."""

    def __init__(self, textured: bool, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.waves = rng.normal(size=(24, 2)) * 0.12
        self.phases = rng.uniform(0, 6.28, 24)
        self.heights = rng.normal(size=24) / np.linalg.norm(self.waves, axis=1) * 0.1
        self.texture = rng.normal(size=(60, 2)) * np.geomspace(0.03, 0.6, 60)[:, None] * textured
        self.strengths = 1 / np.sqrt(np.geomspace(1, 20, 60))
        self.offsets = rng.uniform(0, 6.28, len(self.texture))

    def photograph(self, light: np.ndarray, move: np.ndarray) -> np.ndarray:
        """Lambertian, on a round object before a dark ground, displaced and turned by ``move``."""
        rows, columns = np.mgrid[:SIZE, :SIZE].astype(np.float64)
        u, v = columns - MIDDLE - move[0], rows - MIDDLE - move[1]
        cosine, sine = np.cos(move[2]), np.sin(move[2])
        x, y = cosine * u + sine * v + MIDDLE, cosine * v - sine * u + MIDDLE
        waves = np.einsum("ka,aij->kij", self.waves, np.stack([x, y])) + self.phases[:, None, None]
        slopes = np.einsum("k,ka,kij->aij", self.heights, self.waves, np.cos(waves))
        normals = np.stack([-slopes[0], slopes[1], np.ones_like(x)], axis=2)
        normals /= np.linalg.norm(normals, axis=2, keepdims=True)
        tint = (
            np.einsum("ka,aij->kij", self.texture, np.stack([x, y])) + self.offsets[:, None, None]
        )
        albedo = 0.6 + 0.3 * np.tanh(
            np.einsum("k,kij->ij", self.strengths, np.sin(tint)) / 2
        ) * bool(self.texture.any())
        edge = RADIUS - np.hypot(x - SIZE / 2, y - SIZE / 2)
        inside = 1 / (1 + np.exp(-np.clip(edge, -30, 30)))
        return (inside * albedo * np.maximum(normals @ light, 0)).astype(np.float32)


def alignment_of(images: list[np.ndarray] | np.ndarray, control: Control = SILENT) -> Alignment:
    return find_alignment(np.stack([reduced(image, 1.0) for image in images]), 1.0, control)


def photographs(moves: np.ndarray, textured: bool = True, noise: float = 0.002) -> list[np.ndarray]:
    scene, rng = Scene(textured), np.random.default_rng(1)
    lights = dome_lights(len(moves), max_angle=55)
    return [
        scene.photograph(light, move) + rng.normal(0, noise, (SIZE, SIZE)).astype(np.float32)
        for light, move in zip(lights, moves, strict=True)
    ]


def moves_of(kind: str, count: int = 12) -> np.ndarray:
    moves = np.zeros((count, 3))
    if kind == "some":
        moves[[1, 4, 7, 9], :2] = [3.4, -2.3]
    elif kind == "one":
        moves[5, :2] = [1.5, -1.2]
    elif kind == "drift":
        moves = np.arange(count)[:, None] * np.array([0.31, 0.17, 0.0])
    elif kind == "turned":
        moves[[1, 4, 7, 9], 2] = np.radians([0.1, -0.3, 1.0, 0.6])
    elif kind == "moved and turned":
        moves[[2, 6, 11]] = [[3.4, -2.3, 0.017], [1.0, 2.0, -0.008], [-2.0, 0.4, 0.003]]
    return moves


@pytest.mark.parametrize(("textured", "within"), [(True, 0.1), (False, 0.3)])
@pytest.mark.parametrize("kind", ["one", "drift", "turned", "moved and turned"])
def test_movement_is_found(kind: str, textured: bool, within: float) -> None:
    moves = moves_of(kind)
    found = find_alignment(np.asarray(photographs(moves, textured), np.float32), 1.0).moves
    off = found - (moves - np.median(moves, axis=0))
    if (
        kind == "drift"
    ):  # no photograph agrees with another: the ends of the drift are seen least well
        within = 0.35
    assert (np.abs(off[:, :2]).max(axis=1) + RADIUS * np.abs(off[:, 2])).max() < within


def written(images: list[np.ndarray], folder: Path) -> list[Path]:
    files = [folder / f"{number:02d}.png" for number in range(len(images))]
    for file, image in zip(files, images, strict=True):
        write_png(file, np.rint(np.clip(image, 0, 1) * 65535).astype(np.uint16))
    return files


@pytest.mark.parametrize("textured", [True, False])
def test_a_still_camera_is_left_alone(textured: bool, tmp_path: Path) -> None:
    source = open_files(written(photographs(np.zeros((12, 3)), textured), tmp_path))
    alignment = find_alignment(survey(source)[0], 1.0)
    assert alignment.is_still and not alignment.uncertain.any() and not alignment.notes(["a"] * 12)
    assert np.array_equal(replace(source, moves=alignment.corrected).all(), source.all())


def test_movement_is_undone_in_frames_bands_and_parts(tmp_path: Path) -> None:
    moves = moves_of("some")
    source = open_files(written(photographs(moves, noise=0.0), tmp_path))
    alignment = find_alignment(survey(source)[0], 1.0)
    assert (alignment.corrected.any(axis=1) == moves.any(axis=1)).all()
    assert (
        by_code(alignment.notes([file.name for file in source.files]))["camera-moved"].values[
            "count"
        ]
        == 4
    )
    aligned = replace(source, moves=alignment.corrected)
    whole = aligned.all()
    still = photographs(np.zeros_like(moves), noise=0.0)
    for mine, truth in zip(whole, still, strict=True):
        assert np.abs(mine[30:-30, 30:-30] - truth[30:-30, 30:-30]).max() < 0.05
    assert np.array_equal(aligned.rows(50, 90), whole[:, 50:90])
    assert np.array_equal(aligned.take([1, 2]).all(), whole[[1, 2]])
    part = replace(aligned, framing=Framing((40, 60, 80, 70))).all()
    assert np.array_equal(part, whole[:, 60:130, 40:120])


@pytest.mark.parametrize("kind", ["still", "some"])
def test_info_reports_every_photograph(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moves = moves_of(kind)
    written(photographs(moves), tmp_path)
    rows = [",".join(map(str, light)) for light in dome_lights(12, max_angle=55)]
    (tmp_path / "lights.csv").write_text("\n".join(["x,y,z", *rows]))
    app(["info", str(tmp_path), "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)["alignment"]
    assert found["corrected"] is (kind == "some")
    np.testing.assert_allclose(list(found["shifts"].values()), moves[:, :2], atol=0.1)


def test_load_undoes_movement_unless_told_not_to(tmp_path: Path) -> None:
    moves = moves_of("some")
    written(photographs(moves), tmp_path)
    rows = [f"{k:02d}.png,{x},{y},{z}" for k, (x, y, z) in enumerate(dome_lights(12, max_angle=55))]
    (tmp_path / "lights.csv").write_text("\n".join(["file,x,y,z", *rows]))
    capture = load(tmp_path)
    assert capture.origin is not None and capture.origin.alignment is not None
    assert "camera-moved" in by_code(capture.origin.notes)
    as_taken = load(tmp_path, align="off")
    assert as_taken.origin is not None and as_taken.origin.alignment is None
    assert not np.array_equal(as_taken.images[1], capture.images[1])
    assert np.array_equal(as_taken.images[0], capture.images[0])
    with pytest.raises(ParameterError) as caught:
        load(tmp_path, align="perhaps")
    assert caught.value.code == "unknown-align"


def test_a_photograph_of_another_object_is_uncertain_or_untouched() -> None:
    images = photographs(np.zeros((12, 3)))
    images[3] = Scene(True, seed=9).photograph(np.array([0.0, 0.3, 0.954]), np.zeros(3))
    assert not alignment_of(images).corrected[:3].any()


@pytest.mark.parametrize("degrees", [20.0, 30.0, 90.0])
def test_a_photograph_that_is_turned_too_far_does_not_match(degrees: float) -> None:
    moves = moves_of("still")
    moves[5, 2] = np.radians(degrees)
    alignment = alignment_of(photographs(moves, textured=degrees != 30))
    assert np.flatnonzero(alignment.mismatched).tolist() == [5] and alignment.is_still


def test_turns_are_undone_and_reported() -> None:
    moves = moves_of("moved and turned")
    images, still = photographs(moves, noise=0.0), photographs(np.zeros_like(moves), noise=0.0)
    alignment = alignment_of(images)
    names = [f"{number}.png" for number in range(12)]
    assert alignment.as_dict(names)["turns"]["2.png"] == pytest.approx(np.degrees(0.017), abs=0.05)
    assert by_code(alignment.notes(names))["camera-moved"].values["degrees"] > 0.5
    for image, move, truth in zip(images, alignment.corrected, still, strict=True):
        assert np.abs(moved_back(image, move) - truth)[30:-30, 30:-30].max() < 0.05


def test_three_photographs_are_not_judged() -> None:
    assert alignment_of(np.ones((3, 40, 40), np.float32)).is_still


def test_it_can_be_cancelled() -> None:
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        alignment_of(photographs(np.zeros((4, 3))), control)


def test_black_photographs_are_still() -> None:
    assert alignment_of(np.zeros((6, 60, 60), np.float32)).is_still


@pytest.mark.parametrize("gain", [1.5, 30.0])
@pytest.mark.parametrize("kind", ["follows", "slips"])
def test_what_shifts_with_the_light_is_not_the_camera(kind: str, gain: float) -> None:
    """Unless undoing it explains the photographs far better than gloss does."""
    lights = dome_lights(48, max_angle=60)
    shifts = 3.0 * lights[:, :2] * [-1, 0.6]
    if kind == "slips":
        shifts = 3.0 * np.random.default_rng(0).normal(size=(48, 2))
    moves = np.column_stack([shifts, np.zeros(48)])
    still = Alignment.still(48)
    moved = replace(still, moves=moves, corrected=moves, gain=np.full(48, gain))
    for directions in (lights, np.where(np.arange(48)[:, None] < 3, np.nan, 2 * lights)):
        alignment = moved.compared_with(directions)
        assert alignment.is_still is alignment.follows_light is (kind == "follows" and gain < 2)
        codes = by_code(alignment.notes(["a"] * 48)).keys()
        assert codes == {"shifts-follow-light" if alignment.is_still else "camera-moved"}
    assert (
        moved.compared_with(np.full((48, 3), np.nan)) is moved and moved.take([1, 2]).gain.size == 2
    )


def test_small_movements_are_reported_and_left() -> None:
    alignment = find_alignment(np.asarray(photographs(moves_of("one") / 4), np.float32), 1.0)
    assert alignment.is_still and alignment.farthest[5] > 0.3
