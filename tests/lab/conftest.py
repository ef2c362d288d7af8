"""Fixtures of the lab's tests."""

from __future__ import annotations

import pytest

from photostereo.batch.options import Progress, RunControl


class Recorder(RunControl):
    """Keeps what a run says, and its last progress."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.last: Progress | None = None

    def say(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, now: Progress) -> None:
        self.last = now


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
