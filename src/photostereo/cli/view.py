"""``photostereo view``: open the report."""

from __future__ import annotations

from pathlib import Path

from photostereo.cli.command import argument, option
from photostereo.cli.terminal import Terminal


def view(
    terminal: Terminal,
    out: Path = argument("Results of solve, compare or demo.", "OUT"),
    serve: bool | None = option(
        "Serve it on 127.0.0.1, or open the file (default: serve if the result has more detail than the page).",
        flags="--serve/--no-serve",
    ),
    port: int = option("Port (0: any free port).", min=0, max=65535, default=0),
) -> None:
    """Open the report in the browser."""
    from photostereo.report import find_report, open_report
    from photostereo.report import serve as serve_report
    from photostereo.report.serving import holds_finer

    if serve or (serve is None and holds_finer(find_report(out))):
        if serve is None:
            terminal.say(
                "The result has more detail than fits in the page; the rest is served from its folder."
            )
        serve_report(out, port, tell=terminal.say, browse=serve is None)
    else:
        terminal.say(f"Opened {open_report(out)}")
