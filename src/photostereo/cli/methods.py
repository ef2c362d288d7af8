"""``photostereo methods``: what each method assumes, its parameters, defaults and citation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import photostereo as ps
from photostereo.cli.command import argument
from photostereo.cli.messages import about_methods
from photostereo.cli.options import complete_method
from photostereo.cli.terminal import Terminal

if TYPE_CHECKING:
    from photostereo.solver.methods import Method


def methods(
    terminal: Terminal,
    name: str | None = argument(
        "Show one method in full.", default=None, autocompletion=complete_method
    ),
) -> dict[str, Any]:
    """List the methods, or show one with its parameters, defaults and citation."""
    from photostereo.priors.entry import prior_names
    from photostereo.solver.auto_method import BEST, FAST

    if name is not None:
        return _show(ps.find_method(name), terminal)
    known = [ps.find_method(each) for each in ps.method_names()]
    rows = [[method.name, method.title, method.assumes] for method in known]
    terminal.table(None, ["name", "method", "use it for"], rows)
    terminal.say_all(about_methods(BEST, FAST, prior_names()))
    return {"methods": [method.as_dict() for method in known]}


def _show(method: Method, terminal: Terminal) -> dict[str, Any]:
    facts = method.as_dict()
    terminal.say(f"{method.name}: {method.title}")
    terminal.say(method.assumes)
    if facts["parameters"]:
        header = ["parameter", "default", "expects", "meaning"]
        terminal.table(None, header, [list(values.values()) for values in facts["parameters"]])
    terminal.say(f"Citation: {method.citation}")
    return facts
