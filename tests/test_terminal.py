"""What the terminal shows: one line per stage with a time left that is not absurd, and nothing printed behind it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from photostereo.batch.options import Progress
from photostereo.cli import terminal
from photostereo.cli.messages import about_batch
from photostereo.cli.terminal import Terminal
from photostereo.core.control import Iteration, Stage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """Time that passes when the test says so."""
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_plain_lines_with_the_time_left(clock, capsys) -> None:
    with Terminal() as shown:
        shown.stage("bands", 10)
        clock(600.0)  # the first step compiles
        shown.advance()
        for _ in range(4):
            clock(6.0)
            shown.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "bands: 1/10",
        "bands: 2/10",
        *(f"bands: {k}/10, {6 * (10 - k)} s left" for k in (3, 4, 5)),
    ]


def drawn(width: int, note: str) -> str:
    """The last line that a stage with a note shows in a terminal of this width."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    with Terminal(err=console) as shown:
        shown.stage("iterations", 50)
        shown._stage.note = note
        shown.advance(7)
        shown._bar.refresh()
        return stream.getvalue().split("\r")[-1].split("\x1b[2K")[-1]


def test_a_narrow_terminal_drops_the_note_and_keeps_bar_and_count() -> None:
    note = "cost 3574.8, change 0.01, error 11.85°"
    assert note in drawn(120, note)
    narrow = drawn(60, note)
    assert "━" in narrow and "iterations" in narrow and "7/50" in narrow and "…" not in narrow


def test_a_table_fits_a_narrow_terminal(capsys) -> None:
    header = ["method", "mean error", "median", "within 10°", "expected error", "seconds", "status"]
    row = ["pdlnv", "15.89°", "12.73°", "37%", "25.6°, do not trust", "6.44", "converged"]
    for width in (60, 100):
        stream = io.StringIO()
        Terminal(
            out=Console(file=stream, force_terminal=True, width=width, color_system=None)
        ).table(None, header, [row])
        text = stream.getvalue()
        assert (
            max(map(len, text.splitlines())) <= width
            and "converged" in text
            and ("┃" in text) == (width > 60)
        )


def test_the_time_left_follows_recent_steps(clock) -> None:
    stage = Stage(total=100)
    for done in range(1, 21):
        clock(30.0 if done <= 10 else 1.0)
        stage.reach(done)
    assert stage.seconds_left == pytest.approx(80.0)
    finished, endless = replace(stage, total=20), replace(stage, total=None)
    assert (finished.seconds_left, endless.seconds_left, Stage(total=9).seconds_left) == (
        None,
        None,
        None,
    )


def test_a_record_comes_back_with_the_figures_of_its_prior() -> None:
    record = Iteration(1, 3.0, 1.0, 0.1, 0.02, figures={"fit": 2.0})
    assert record.as_dict()["fit"] == 2.0 and Iteration.from_dict(record.as_dict()) == record


def test_a_stage_is_named_after_a_silence(clock, capsys) -> None:
    with Terminal() as shown:
        shown.stage("photographs")
        clock(30.0)
        shown.stage("report")
        shown.stage("a moment later")
    assert capsys.readouterr().err.splitlines() == ["report"]


def live(width: int = 100) -> tuple[Terminal, io.StringIO]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, highlight=False)
    return Terminal(out=console, err=console), text


def test_nothing_is_printed_behind_the_bar() -> None:
    """The line of a stage is erased before a sentence or a table is printed."""
    shown, text = live()
    with shown:
        shown.stage("photographs", 3)
        shown.advance()
        shown.say("A sentence.")
    before = text.getvalue().split("A sentence.")[0]
    assert "photographs" in before
    assert before.endswith("\x1b[2K")  # the line is erased and the cursor at its beginning


def test_words_are_not_broken_and_paths_stay_in_one_piece() -> None:
    shown, text = live(width=40)
    path = "/a/very/long/path/" + "x" * 60
    shown.say(f"Some sentence that is longer than forty letters, and a path: {path}")
    lines = text.getvalue().splitlines()
    assert any(path in line for line in lines)
    assert lines[0].split()[-1] in ("than", "longer", "forty")


def test_a_run_of_many_jobs() -> None:
    shown, text = live(120)
    with shown:
        shown.stage("mine")
        for done in range(5):
            shown.progress(Progress(10, done, 1, 2))
        shown._bar.refresh()
        shown.table("Errors", ["object", "LS"], [["cat", "8.41"]])
    for words in ("mine", "5/10", "1 failed", "2 running", "left", "8.41"):
        assert words in text.getvalue(), words


def test_where_the_time_went() -> None:
    shown = Terminal(quiet=True)
    shown.seconds.update({"photographs": 2.0, "iterations": 7.9, "noise": 0.1})
    assert shown.summary() == "Time: photographs 2.0 s, iterations 7.9 s, other 0.1 s"


@pytest.mark.parametrize("columns", [80, 110])
def test_words_in_tables_are_not_broken(columns) -> None:
    """The table of a comparison, with a status that is long."""
    from rich.console import Console

    from photostereo.cli.terminal import text_table

    header = ["method", "mean error", "median", "within 10°", "expected error", "seconds", "status"]
    rows = [["pdlnv", "15.89°", "12.72°", "37%", "24.6°, do not trust", "105.08", "iterations"]]
    console = Console(width=columns)
    with console.capture() as said:
        console.print(text_table(header, rows))
    text = said.get()
    assert "…" not in text and all(
        word in text for cell in (*header, *rows[0]) for word in cell.split()
    )
    assert max(map(len, text.splitlines())) <= columns


def test_a_batch_with_nothing_to_do_shows_no_empty_line(capsys) -> None:
    with Terminal() as shown:
        end = Progress(total=2, done=2, failed=0, failed_earlier=0, running=0)
        shown.say_all(about_batch(end, shown.summary(), Path("index.html")))
    assert capsys.readouterr().out == "2 done\nOverview: index.html\n"
