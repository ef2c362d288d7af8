"""Plausible captures: the ground truth belongs to the photographs, and the judge sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import photostereo as ps
from photostereo_lab.plausible.captures import draw_capture, write_capture
from photostereo_lab.plausible.judge import (
    has_wrong_mask,
    is_convincingly_wrong,
    is_worse_than_simple,
    is_wrongly_good,
    judge_seeds,
    summary_of,
)
from photostereo_lab.plausible.lamps import ARRANGEMENTS, Lamps
from photostereo_lab.plausible.photographs import Ball, Camera, photograph
from photostereo_lab.plausible.subjects import OBJECTS, Subject, make_subject, subject_kinds


@pytest.mark.parametrize("kind", subject_kinds())
def test_subjects_are_whole(kind: str) -> None:
    subject = make_subject(kind, (60, 90), np.random.default_rng(4))
    assert subject.fills_the_frame == (kind not in OBJECTS)
    assert 0.01 < subject.mask.mean() <= 1
    assert np.isfinite(subject.height).all()
    assert (subject.normals[..., 2] > 0).all()
    assert subject.color.min() >= 0
    assert subject.color.max() <= 1


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("count", [3, 8, 25])
def test_lamps_are_above_the_table(arrangement: str, count: int) -> None:
    directions = ARRANGEMENTS[arrangement](count, np.random.default_rng(0))
    assert directions.shape == (count, 3)
    assert (directions[:, 2] > 0).all()


def matte_slope() -> Subject:
    """A plane that rises to the right."""
    size = (24, 32)
    return Subject(
        kind="slope",
        height=0.3 * np.arange(size[1]) * np.ones((size[0], 1)),
        mask=np.ones(size, bool),
        color=np.full((*size, 3), 0.5),
        gloss=np.zeros(size),
    )


def test_a_matte_plane_is_shaded_by_lamberts_law() -> None:
    directions = np.array([[0.5, 0.0, 0.8], [-0.4, 0.1, 0.9], [0.0, 0.6, 0.7]])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lamps = Lamps("given", directions, np.ones(3), None)
    rng = np.random.default_rng(0)
    pictures = photograph(matte_slope(), lamps, Camera(noise=0.0), (), rng)
    measured = np.array([picture[12, 16, 0] for picture in pictures])
    normal = np.array([-0.3, 0.0, 1.0]) / np.hypot(0.3, 1.0)
    expected = directions @ normal
    np.testing.assert_allclose(measured / measured[0], expected / expected[0], rtol=1e-5)


def test_the_highlight_of_a_ball_is_where_it_mirrors_the_lamp() -> None:
    direction = np.array([0.6, 0.5, 0.62])
    direction /= np.linalg.norm(direction)
    lamps = Lamps("given", np.tile(direction, (3, 1)), np.ones(3), None)
    ball = Ball("chrome", 12.0, 11.0, 9.0)
    picture = photograph(
        matte_slope(), lamps, Camera(noise=0.0), (ball,), np.random.default_rng(0)
    )[0]
    row, column = np.unravel_index(picture[..., 0].argmax(), picture.shape[:2])
    half = direction + np.array([0.0, 0.0, 1.0])
    half /= np.linalg.norm(half)
    assert abs(column - (12.0 + 9.0 * half[0])) < 1
    assert abs(row - (11.0 - 9.0 * half[1])) < 1


def test_a_capture_is_read_as_it_was_written(tmp_path: Path) -> None:
    seed = next(s for s in range(99) if draw_capture(s, most=0.03).description == "csv")
    capture = draw_capture(seed, most=0.03)
    write_capture(capture, tmp_path / "capture")
    loaded = ps.load(tmp_path / "capture", align="off")
    assert loaded.frame == capture.size
    angle = np.degrees(
        np.arccos((loaded.lights.directions * capture.lamps.directions).sum(1).clip(-1, 1))
    )
    assert angle.max() < 4


def test_a_seed_gives_the_same_capture() -> None:
    first, second = (draw_capture(11, most=0.03).pictures() for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])


def test_the_judge_knows_what_is_wrong() -> None:
    good = {
        "seed": 1,
        "outcome": "solved",
        "fills": True,
        "overlap": 1.0,
        "error": 2.0,
        "expected": 2.0,
    }
    good |= {"grade": "good", "ls": 3.0, "sbl": 2.5, "plane": 9.0}
    assert not any(summary_of([good]).values())
    assert is_convincingly_wrong(good | {"error": 8.0, "expected": 3.0})
    assert is_wrongly_good(good | {"error": 7.5})
    assert is_worse_than_simple(good | {"plane": 0.7})
    assert has_wrong_mask(good | {"overlap": 0.9})
    assert not has_wrong_mask(good | {"overlap": 0.96, "fills": False})
    assert summary_of([good | {"outcome": "crashed"}])["crashed"] == [1]


@pytest.mark.slow
def test_no_plausible_capture_ends_in_a_crash() -> None:
    counted = summary_of(judge_seeds(range(500, 524), most=0.03))
    assert counted["crashed"] == []
    assert counted["hung"] == []
    assert counted["not finite"] == []
