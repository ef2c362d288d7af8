"""``photostereo view``: open the report."""

from __future__ import annotations

from pathlib import Path

from photostereo.errors import CaptureError
from photostereo.report import open_report, serve_report
from photostereo.terminal import Terminal


def run(out: Path, *, serve: bool, port: int) -> None:
    """Open the page in the browser, or serve it on the loopback address until interrupted."""
    if not (out / "report.html").is_file():
        raise CaptureError(
            f"{out} holds no report.html. Give the OUT folder of a solve, a compare or the demo."
        )
    terminal = Terminal()
    if serve:
        serve_report(out, port=port, tell=terminal.say)
    else:
        open_report(out)
        terminal.say(f"Opened {out / 'report.html'}")
