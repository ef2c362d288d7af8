"""Declare commands: groups of options are dataclasses; every command that prints results has ``--quiet`` and ``--json``.

Options and arguments are defaults of parameters, made by :func:`option` and :func:`argument`. A parameter whose type
is a dataclass stands for the fields of the dataclass, each an option. A command prints to its ``terminal`` and returns
facts, which ``--json`` prints as one JSON object.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import is_dataclass
from typing import Any

import typer
from typer.models import OptionInfo, ParameterInfo

from photostereo.cli.shell import print_json
from photostereo.cli.terminal import Terminal

Facts = Mapping[str, Any]

#: The default of a required option or argument.
REQUIRED = ...
#: The panels of a command's help, in order.
PANELS = INPUT, LIGHTS, METHOD, OUTPUT, RESOURCES, ADVANCED = (
    "Input",
    "Lights",
    "Method",
    "Output",
    "Resources",
    "Advanced",
)
#: The exit code of a command that finished but had failed jobs; 2 is an error that stopped the command.
SOME_FAILED = 1


def option(
    help: str,
    panel: str | None = None,
    metavar: str | None = None,
    *,
    flags: str = "",
    default: Any = None,
    **more: Any,
) -> Any:
    """Declare an option in a panel of the help. Its flag is its name unless ``flags`` ("--out -o") is set."""
    if isinstance(default, bool) or "/" in flags:
        metavar = ""  # a flag takes no value
    return typer.Option(default, *flags.split(), help=help, rich_help_panel=panel, metavar=metavar, **more)


def argument(help: str, metavar: str | None = None, *, default: Any = REQUIRED, **more: Any) -> Any:
    """Declare an argument, which is required unless it has a default."""
    return typer.Argument(default, help=help, metavar=metavar, **more)


QUIET = option("Print nothing but errors.", flags="--quiet -q", default=False)
JSON = option("Print one JSON object and nothing else, even for errors.", flags="--json", default=False)


def command(function: Callable[..., Facts | None]) -> Callable[..., None]:
    """Convert a function into a Typer command, with its groups of options expanded.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 3
    ...     height: int = 2
    >>> def draw(name: str, size: Size, terminal: Terminal) -> None:
    ...     terminal.say(f"{name} {size.width * size.height}")
    >>> str(inspect.signature(command(draw)))[:54]
    '(*, name: str, width: int = 3, height: int = 2, contex'
    >>> command(draw)(name="wall", width=5)
    wall 10
    """
    declared: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    signature = inspect.signature(function, eval_str=True)
    for parameter in signature.parameters.values():
        kind = parameter.annotation
        options = [parameter]
        if isinstance(kind, type) and is_dataclass(kind):
            options = list(inspect.signature(kind, eval_str=True).parameters.values())
            groups[parameter.name] = (kind, [option.name for option in options])
        declared += [] if kind is Terminal else options
    declared.append(inspect.Parameter("context", _BY_NAME, annotation=typer.Context))
    declared.append(inspect.Parameter("quiet", _BY_NAME, default=QUIET, annotation=bool))
    if signature.return_annotation is not None:
        declared.append(inspect.Parameter("as_json", _BY_NAME, default=JSON, annotation=bool))
    defaults = {option.name: getattr(option.default, "default", option.default) for option in declared}
    defaults = {
        name: value for name, value in defaults.items() if value not in (..., inspect.Parameter.empty)
    }

    @functools.wraps(function)
    def run(context: typer.Context | None = None, **values: Any) -> None:
        given = frozenset(name for name in values if context is None or _is_given(context, name))
        values = {**defaults, **values}
        as_json = values.pop("as_json", False)
        quiet = values.pop("quiet") or as_json
        for name, (kind, options) in groups.items():
            values[name] = kind(**{option: values.pop(option) for option in options})
        with Terminal(quiet=quiet) as terminal:
            terminal.given = given
            facts = function(**values, terminal=terminal)
        if as_json and facts is not None:
            print_json(facts)
        if facts is not None and facts.get("failed"):
            raise typer.Exit(SOME_FAILED)

    # Typer passes everything by name, so the order is free. Rarely used options come last in the help.
    declared = sorted(
        (option.replace(kind=_BY_NAME, default=_named(option)) for option in declared), key=_place
    )
    run.__signature__ = inspect.Signature(declared, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in declared}
    return run


def _named(option: inspect.Parameter) -> Any:
    """Return the option's declaration with an explicit flag; Typer's default would add a second one, ``--no-``."""
    info = copy(option.default)
    if isinstance(info, OptionInfo) and not info.param_decls:
        info.param_decls = (f"--{option.name.replace('_', '-')}",)
    return info


def _is_given(context: typer.Context, name: str) -> bool:
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _place(option: inspect.Parameter) -> int:
    panel = option.default.rich_help_panel if isinstance(option.default, ParameterInfo) else None
    return PANELS.index(panel) if panel in PANELS else -1


_BY_NAME = inspect.Parameter.KEYWORD_ONLY
