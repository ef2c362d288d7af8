"""``photostereo methods``: what each method assumes, its parameters, defaults and citation."""

from __future__ import annotations

from rich.table import Table

from photostereo.commands.terminal import Terminal
from photostereo.solver.choice import BEST, FAST
from photostereo.solver.methods import find_method, method_names


def run(name: str | None) -> None:
    """All methods in a table, or one in full."""
    terminal = Terminal()
    if name is None:
        table = Table()
        for heading in ("name", "method", "use it for"):
            table.add_column(heading)
        for known in method_names():
            method = find_method(known)
            table.add_row(method.name, method.title, method.assumes)
        terminal.say(table)
        terminal.say(
            f"Unless told otherwise, photostereo solve takes {BEST}, or {FAST} for captures so large that {BEST} would "
            f"take much longer; --method best is always {BEST}, --method fast always {FAST}."
        )
        terminal.say(
            "The dictionary prior goes on any of the others too: photostereo solve X --method cbr --prior dictionary"
        )
        terminal.say("Parameters, defaults and citation of one: photostereo methods NAME")
        return
    method = find_method(name)
    terminal.say(f"{method.name}: {method.title}")
    terminal.say(method.assumes)
    if method.parameters:
        table = Table()
        for heading in ("parameter", "default", "expects", "meaning"):
            table.add_column(heading)
        for parameter in method.parameters:
            table.add_row(parameter.name, parameter.show_default(), parameter.expects, parameter.doc)
        terminal.say(table)
    terminal.say(f"Citation: {method.citation}")
