"""Progress without a terminal: plain lines that say how long it will take."""

from __future__ import annotations

import pytest

from photostereo.commands import terminal
from photostereo.commands.terminal import Terminal


def test_plain_lines_tell_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    with Terminal() as shown:
        shown.stage("bands", 10)
        for _ in range(4):
            now += 6.0
            shown.advance()
        now += 1000.0
        shown.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "bands: 1/10, 54 s left"
    assert lines[3] == "bands: 4/10, 36 s left"
    assert lines[4] == "bands: 5/10, 17 min left"


def test_a_stage_is_named_after_a_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    with Terminal() as shown:
        shown.stage("photographs")
        now += 30.0
        shown.stage("report")
        shown.stage("a moment later")
    assert capsys.readouterr().err.splitlines() == ["report"]
