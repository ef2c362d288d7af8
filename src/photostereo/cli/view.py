"""``photostereo view``: open the report."""

from pathlib import Path

from photostereo.cli.terminal import Terminal


def view(terminal: Terminal, out: Path, serve: bool | None = None, port: int = 0) -> None:
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
