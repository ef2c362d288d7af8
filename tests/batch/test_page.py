"""The overview of a batch: what failed and what is unusual comes first, names are text."""

from __future__ import annotations

import html
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from photostereo.batch.ledger import Ledger, Outcome
from photostereo.batch.page import order_rows, robust_distances, write_overview
from photostereo.core.findings import Finding


def a_ledger(folder: Path) -> Ledger:
    ledger = Ledger(folder)
    rng = np.random.default_rng(0)
    for number in range(12):
        tilt = 75.0 if number == 7 else 30 + rng.normal()
        figures = {"tilt": tilt, "residual": 0.02 + 0.001 * rng.random()}
        ledger.write(
            f"coin-{number}",
            Path(f"/in/{number}"),
            "k",
            Outcome("done", seconds=1.0, figures=figures),
        )
    ledger.write(
        "<b>bad</b>",
        Path("/in/<i>"),
        "k",
        Outcome("failed", "<script>alert(1)</script>", "capture"),
    )
    return ledger


def test_failures_first_then_what_differs_most(tmp_path):
    rows = order_rows(a_ledger(tmp_path).rows())
    assert [row["name"] for row in rows[:2]] == ["<b>bad</b>", "coin-7"]
    assert rows[1]["unusual"] == ["tilt"]
    assert sum(bool(row["unusual"]) for row in rows) == 1


def test_distances_are_those_of_the_formula():
    values = [1.0, 2.0, 3.0, 4.0, 100.0]
    found = robust_distances([{"tilt": value} for value in values])
    # median 3, median distance 1
    assert [entry["tilt"] for entry in found] == [abs(v - 3) / 1.4826 for v in values]
    assert robust_distances([{"tilt": 5.0}] * 6) == [{"tilt": 0.0}] * 6
    assert robust_distances([{"tilt": 5.0}] * 3) == [{}] * 3


def test_names_are_text(tmp_path):
    page = write_overview(a_ledger(tmp_path), tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert "alert(1)</script" not in page
    assert "<b>bad" not in page
    assert "&lt;b&gt;bad" in page
    assert "/in/7" not in page.replace("../in/7", ""), "only relative paths"
    assert "default-src 'none'" in html.unescape(page)


def test_what_is_true_of_every_capture_is_said_once(tmp_path):
    ledger = Ledger(tmp_path)
    for number in range(3):
        notes = [
            Finding("srgb-undone", some=""),
            Finding("mask-found", share=0.2 + 0.01 * number),
            Finding("note", note=f"plain words {number}"),
        ]
        if number == 1:
            notes += [Finding("left-out", file=f"{file}.png", why="dark") for file in "ab"]
        outcome = Outcome(
            "done",
            seconds=1.0,
            warnings=tuple(map(str, notes)),
            warning_codes=tuple(note.code for note in notes),
        )
        ledger.write(f"coin-{number}", Path("/in/coin"), "k", outcome)
    page = write_overview(ledger, tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("sRGB curve") == page.count("(… of the frame)") == 1
    assert page.count("plain words") == 3
    assert page.count("is left out") == 2
    assert page.count('class="note"') == 5


def test_a_ledger_of_an_earlier_version_can_be_read(tmp_path):
    ledger = a_ledger(tmp_path)
    with closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("ALTER TABLE captures DROP COLUMN warning_codes")
    rows = Ledger(tmp_path).rows()
    assert len(rows) == 13 and all(row["warning_codes"] == [] for row in rows.values())
    assert a_ledger(tmp_path).rows().keys() == rows.keys()


@pytest.mark.parametrize(("flawed", "grade"), [(0.0, "good"), (1.0, "fair")])
def test_a_capture_with_a_problem_is_not_called_good(tmp_path, flawed, grade):
    ledger = Ledger(tmp_path)
    figures = {"expected": 2.0, "flawed": flawed}
    ledger.write("coin", Path("/in/coin"), "k", Outcome("done", seconds=1.0, figures=figures))
    page = write_overview(ledger, tmp_path / "index.html").read_text(encoding="utf-8")
    assert (f">{grade}<" in page) and (">good<" in page) is (grade == "good")
