"""Options that several commands share, declared once: a parameter of a command that stands for a group of options.

A group is a function: its signature declares the options, and what it returns is what the command receives::

    def read_options(color: Color = False, mask: MaskChoice = None) -> ReadOptions: ...

    Reading = Annotated[ReadOptions, Group(read_options)]

    @composed
    def info(capture: CapturePath, reading: Reading) -> None: ...

Typer sees ``info(capture, color, mask)``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin


@dataclass(frozen=True)
class Group:
    """Marks a parameter as one that ``make`` makes from options of its own."""

    make: Callable[..., Any]


def composed(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a :class:`Group` replaced by the options of the group.

    >>> def size(width: int = 3, height: int = 2) -> int:
    ...     return width * height
    >>> @composed
    ... def show(name: str, area: Annotated[int, Group(size)], loud: bool = False) -> None:
    ...     print(name, area, loud)
    >>> str(inspect.signature(show)), show(name="wall", width=5)
    wall 10 False
    ('(*, name: str, width: int = 3, height: int = 2, loud: bool = False) -> None', None)
    """
    declared: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = _group_of(parameter.annotation)
        options = (
            [parameter]
            if group is None
            else list(inspect.signature(group.make, eval_str=True).parameters.values())
        )
        if group is not None:
            groups[parameter.name] = (group.make, tuple(option.name for option in options))
        # By name only, as Typer calls it: the order is then free.
        declared += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, (make, options) in groups.items():
            values[name] = make(**{option: values.pop(option) for option in options if option in values})
        command(**values)

    signature = inspect.Signature(declared, return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in declared}
    return run


def _group_of(annotation: Any) -> Group | None:
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, Group)), None)
