"""Framing, development, brackets and faults, each on a few numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from photostereo.io.camera import Shot
from photostereo.photographs.alignment.alignment import farthest
from photostereo.photographs.brackets import find_brackets, merge_exposures
from photostereo.photographs.develop import full_scale, include_exposure, upright
from photostereo.photographs.faults import Fault, find_duplicates
from photostereo.photographs.framing import Framing, moved_back


def test_framing() -> None:
    assert Framing((10, 0, 20, 31), 0.5).frame((40, 60)) == (16, 10)
    whole = Framing((2, 0, 2, 2), 0.5).mask_in_full(np.array([[True]]), (2, 5))
    assert whole.astype(int).tolist() == [[0, 0, 1, 1, 0], [0, 0, 1, 1, 0]]
    seen = Framing((50, 0, 50, 40), 0.5).positions(np.array([[25.0, 0.0, 300.0]]), (40, 100))
    assert seen.tolist() == [[0.0, 0.0, 150.0]]


def test_development() -> None:
    assert upright(np.array([[1, 2], [3, 4], [5, 6]]), 6).tolist() == [[5, 3, 1], [6, 4, 2]]
    assert (full_scale(np.zeros(1, np.uint16)), full_scale(np.zeros(1, np.float32))) == (
        65535.0,
        1.0,
    )
    exposed = [0.5, 1.0, 2.0]
    assert include_exposure(np.array([[1.1], [2.0], [3.9]]), exposed)
    assert not include_exposure(np.ones((3, 1)), exposed)


def test_brackets() -> None:
    shots = [Shot(seconds=seconds) for _ in range(4) for seconds in (0.01, 0.04)]
    groups = find_brackets([Path(f"{k}.jpg") for k in range(8)], shots, np.eye(4)[:, :3])
    assert groups == [[0, 1], [2, 3], [4, 5], [6, 7]]
    short, long = np.float32([[0.1, 0.5]]), np.float32([[0.4, 1.0]])
    merged = merge_exposures([short, long], [1, 4], [short, long])
    assert merged.tolist() == [[0.10000000149011612, 0.5]]


def test_faults() -> None:
    finding = Fault("b.jpg", "duplicate", "a.jpg").finding
    assert (finding.code, finding.values["reason"]) == ("left-out", "duplicate")
    files = [Path("a copy.jpg"), Path("a.jpg"), Path("b.jpg")]
    assert find_duplicates(files, dict(zip(files, ["1", "1", "2"], strict=True))) == {0: 1}


def test_moves() -> None:
    assert farthest(np.array([[3.0, 4.0, 0.01]]), 100.0).tolist() == [6.0]
    spot = np.zeros((9, 9), np.float32)
    spot[4, 6] = 1
    assert np.argwhere(moved_back(spot, np.array([2.0, 0.0, 0.0])) > 0.5).tolist() == [[4, 4]]
