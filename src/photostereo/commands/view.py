"""``photostereo view``: open the report."""

from __future__ import annotations

from pathlib import Path

from photostereo.commands.terminal import Terminal
from photostereo.report import open_report, serve_report


def run(out: Path, *, serve: bool, port: int) -> None:
    """Open the page in the browser, or serve it on the loopback address until interrupted."""
    terminal = Terminal()
    if serve:
        serve_report(out, port=port, tell=terminal.say)
    else:
        terminal.say(f"Opened {open_report(out)}")
