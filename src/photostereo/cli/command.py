"""Declares a command: groups of options as dataclasses, ``--quiet`` and ``--json`` for all that print results.

Options are declared by :func:`option`. A parameter whose type is a dataclass stands for its fields, each an option. The
command talks to its ``terminal`` and returns facts, which are printed as one JSON object if ``--json`` was given.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, NamedTuple, get_args

import typer

from photostereo.cli.shell import print_json
from photostereo.cli.terminal import Terminal

Facts = Mapping[str, Any]


class Declared(NamedTuple):
    """An option or argument: its value if it is not given, and what makes Typer's description of it from its name."""

    default: Any
    info: Callable[[str], Any]


def option(
    help: str,
    panel: str | None = None,
    metavar: str | None = None,
    *,
    flags: str = "",
    default: Any = None,
    **more: Any,
) -> Any:
    """An option in a panel of the help. Its flag is its name, ``--pixel-size``, unless ``flags`` ("--out -o") are given."""
    facts = {"rich_help_panel": panel, "help": help, "metavar": metavar, **more}
    return Declared(
        default, lambda name: typer.Option(*(flags or f"--{name.replace('_', '-')}").split(), **facts)
    )


def argument(*, default: Any = None, **more: Any) -> Any:
    """An argument that may be left out."""
    return Declared(default, lambda name: typer.Argument(**more))


#: The panels of a command's help, in their order.
PANELS = INPUT, LIGHTS, METHOD, OUTPUT, RESOURCES, ADVANCED = (
    "Input",
    "Lights",
    "Method",
    "Output",
    "Resources",
    "Advanced",
)
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else; errors too.")]


def command(function: Callable[..., Facts | None]) -> Callable[..., None]:
    """A function as Typer takes it, with its groups of options unfolded.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 3
    ...     height: int = 2
    >>> def draw(name: str, size: Size, terminal: Terminal) -> None:
    ...     terminal.say(f"{name} {size.width * size.height}")
    >>> str(inspect.signature(command(draw))).replace("typing.", "")[:54]
    '(*, name: str, width: int = 3, height: int = 2, contex'
    >>> command(draw)(name="wall", width=5)
    wall 10
    """
    declared: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, tuple[str, ...]]] = {}
    signature = inspect.signature(function, eval_str=True)
    for parameter in signature.parameters.values():
        kind = parameter.annotation
        if kind is Terminal:
            continue
        options = [parameter]
        if isinstance(kind, type) and is_dataclass(kind):
            options = list(inspect.signature(kind, eval_str=True).parameters.values())
            groups[parameter.name] = (kind, tuple(option.name for option in options))
        declared += options
    declared.append(inspect.Parameter("context", _BY_NAME, annotation=typer.Context))
    declared.append(inspect.Parameter("quiet", _BY_NAME, default=False, annotation=Quiet))
    if signature.return_annotation is not None:
        declared.append(inspect.Parameter("as_json", _BY_NAME, default=False, annotation=Json))
    declared = [_as_typer_takes_it(option) for option in declared]
    defaults = {o.name: o.default for o in declared if o.default is not inspect.Parameter.empty}

    @functools.wraps(function)
    def run(context: typer.Context | None = None, **values: Any) -> None:
        given = frozenset(name for name in values if context is None or _is_given(context, name))
        values = {**defaults, **values}
        as_json = values.pop("as_json", False)
        quiet = values.pop("quiet", False) or as_json
        for name, (kind, options) in groups.items():
            values[name] = kind(**{option: values.pop(option) for option in options if option in values})
        with Terminal(quiet=quiet) as terminal:
            terminal.given = given
            facts = function(**values, terminal=terminal)
        if as_json and facts is not None:
            print_json(facts)
        if facts is not None and facts.get("failed"):
            raise typer.Exit(SOME_FAILED)

    for option in declared:
        if get_args(option.annotation)[:1] in ((bool,), (bool | None,)):
            option.annotation.__metadata__[0].metavar = ""  # a flag takes no value
    # By name only, as Typer calls it: the order is then free. What few people need comes last in the help.
    declared = sorted((option.replace(kind=_BY_NAME) for option in declared), key=_place)
    signature = inspect.Signature(declared, return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in declared}
    return run


def _as_typer_takes_it(option: inspect.Parameter) -> inspect.Parameter:
    """What is declared of an option in its annotation, its default as it is."""
    kind, default = option.annotation, option.default
    if isinstance(default, Declared):
        return option.replace(annotation=Annotated[kind, default.info(option.name)], default=default.default)
    marks = getattr(kind, "__metadata__", (None,))
    if isinstance(marks[0], Declared):  # it has to be given
        return option.replace(annotation=Annotated[get_args(kind)[0], marks[0].info(option.name)])
    return option


def _is_given(context: typer.Context, name: str) -> bool:
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _place(option: inspect.Parameter) -> int:
    marks = getattr(option.annotation, "__metadata__", ())
    panel = next((mark.rich_help_panel for mark in marks if hasattr(mark, "rich_help_panel")), None)
    return PANELS.index(panel) if panel in PANELS else -1


#: The exit code of a command that went through but for some of its jobs; 2 is an error that stopped it.
SOME_FAILED = 1
_BY_NAME = inspect.Parameter.KEYWORD_ONLY
