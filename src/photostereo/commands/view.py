"""``photostereo view``: open the report."""

from __future__ import annotations

from pathlib import Path

from photostereo.commands.terminal import Terminal
from photostereo.report import is_deeper_than_its_page, open_report, serve


def run(out: Path, *, serving: bool | None, port: int) -> None:
    """Open the page in the browser, or serve it on the loopback address until interrupted.

    Asked for neither (None), a page is served where that shows more than the file alone.
    """
    terminal = Terminal()
    if serving or (serving is None and is_deeper_than_its_page(out)):
        if serving is None:
            terminal.say("The result is finer than its page has room for: serving the rest from its folder.")
        serve(out, port, tell=terminal.say, browse=serving is None)
    else:
        terminal.say(f"Opened {open_report(out)}")
