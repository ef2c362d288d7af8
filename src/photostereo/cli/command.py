"""Declare commands: groups of options are dataclasses; every command that prints results has ``--quiet`` and ``--json``.

The parameters of a function are the options and arguments of its command. ``options.toml`` describes them; others, such
as those of other packages, are declared by defaults, made by :func:`option` and :func:`argument`. A parameter whose type
is a dataclass stands for the fields of the dataclass. A command prints to its ``terminal`` and returns facts, which
``--json`` prints as one JSON object.
"""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import typer
from typer.models import OptionInfo, ParameterInfo

from photostereo.cli.shell import print_json
from photostereo.cli.terminal import Terminal

Facts = Mapping[str, Any]

#: The default of a required option or argument.
REQUIRED = ...
#: The panels of a command's help, in order.
PANELS = ("Input", "Lights", "Method", "Output", "Resources", "Advanced")
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
    """Declare an option.

    Parameters
    ----------
    help : str
        What it does, for the help.
    panel : str, optional
        The panel of the help that lists it.
    metavar : str, optional
        The name of its value in the help.
    flags : str
        Its flags, such as ``"--out -o"``; by default made from the name of the parameter.
    default
        Its value if it is not given.
    **more
        Further arguments of :func:`typer.Option`, such as ``min``.
    """
    if isinstance(default, bool) or "/" in flags:
        metavar = ""  # a flag takes no value
    return typer.Option(
        default, *flags.split(), help=help, rich_help_panel=panel or None, metavar=metavar, **more
    )


def argument(help: str, metavar: str | None = None, *, default: Any = REQUIRED, **more: Any) -> Any:
    """Declare an argument, which is required unless it has a default."""
    return typer.Argument(default, help=help, metavar=metavar, **more)


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
    signature = inspect.signature(function, eval_str=True)
    prints_facts = signature.return_annotation is not None
    groups = {
        parameter.name: parameter.annotation
        for parameter in signature.parameters.values()
        if _is_group(parameter.annotation)
    }
    declared = _options_of(function, signature, prints_facts=prints_facts)
    defaults = _defaults(declared)

    @functools.wraps(function)
    def run(context: typer.Context | None = None, **values: Any) -> None:
        given = frozenset(name for name in values if context is None or _is_given(context, name))
        values = {**defaults, **values}
        as_json = values.pop("as_json", False)
        quiet = values.pop("quiet") or as_json
        for name, kind in groups.items():
            values[name] = kind(**{entry.name: values.pop(entry.name) for entry in fields(kind)})
        with Terminal(quiet=quiet) as terminal:
            terminal.given = given
            facts = function(**values, terminal=terminal)
        if as_json and facts is not None:
            print_json(facts)
        if terminal.some_failed:
            raise typer.Exit(SOME_FAILED)

    run.__signature__ = inspect.Signature(declared, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in declared}
    return run


def _is_group(kind: Any) -> bool:
    """Whether a parameter of this type stands for a group of options."""
    return isinstance(kind, type) and is_dataclass(kind)


def _options_of(
    function: Callable[..., Any], signature: inspect.Signature, *, prints_facts: bool
) -> list[inspect.Parameter]:
    """Return the options and arguments of a command, in the order of its help.

    Parameters
    ----------
    function : callable
        The command.
    signature : inspect.Signature
        Its signature.
    prints_facts : bool
        Whether it has ``--json``.
    """
    declared: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        kind = parameter.annotation
        if _is_group(kind):
            options = inspect.signature(kind, eval_str=True).parameters
            declared += (_declared(option, kind) for option in options.values())
        elif kind is not Terminal:
            declared.append(_declared(parameter, function))
    declared.append(inspect.Parameter("context", _BY_NAME, annotation=typer.Context))
    for name in ("quiet", "as_json") if prints_facts else ("quiet",):
        always = inspect.Parameter(name, _BY_NAME, default=False, annotation=bool)
        declared.append(_declared(always, command))
    # Typer passes everything by name, so the order is free. Rarely used options come last in the help.
    return sorted(declared, key=_place)


def _defaults(declared: Iterable[inspect.Parameter]) -> dict[str, Any]:
    """Return the defaults of the options that have one, for a call without the command line."""
    defaults = {
        option.name: getattr(option.default, "default", option.default) for option in declared
    }
    absent = (..., inspect.Parameter.empty)
    return {name: value for name, value in defaults.items() if value not in absent}


@functools.cache
def _catalog() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))


def _declared(parameter: inspect.Parameter, owner: Callable[..., Any]) -> inspect.Parameter:
    """Return an option of a command or group: as its default declares it, or else as the catalog describes it."""
    name = parameter.name
    info = copy(parameter.default)
    facts: dict[str, Any] = {}
    if not isinstance(info, ParameterInfo):
        for table in ("Arguments", *PANELS, owner.__name__):
            if (entry := _catalog().get(table, {}).get(name)) is not None:
                facts |= {"panel": table} if table in PANELS else {}
                facts |= entry if isinstance(entry, dict) else {"help": entry}
    if facts:
        default = REQUIRED if info is inspect.Parameter.empty else info
        if "argument" in facts:
            info = argument(facts["help"], facts["argument"], default=default)
        else:
            info = option(**facts, default=default)
    if isinstance(info, OptionInfo) and not info.param_decls:
        # Typer's own name for a flag would add a second one, ``--no-``.
        info.param_decls = (f"--{name.replace('_', '-')}",)
    return parameter.replace(kind=_BY_NAME, default=info)


def _is_given(context: typer.Context, name: str) -> bool:
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _place(option: inspect.Parameter) -> tuple[int, int]:
    """The position of an option in the help: its panel, and its place in the panel's table of the catalog."""
    panel = option.default.rich_help_panel if isinstance(option.default, ParameterInfo) else None
    if panel not in PANELS:
        return -1, 0
    names = list(_catalog()[panel])
    return PANELS.index(panel), names.index(option.name) if option.name in names else -1


_BY_NAME = inspect.Parameter.KEYWORD_ONLY
