"""What other packages add: models and readers, announced by entry points.

In the other package's ``pyproject.toml``::

    [project.entry-points."photostereo.models"]
    mine = "my_package:ENTRY"
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol, TypeVar, get_origin, get_type_hints

from photostereo.core.errors import PhotostereoWarning
from photostereo.core.findings import Finding

Kind = TypeVar("Kind")


class Named(Protocol):
    """A description of something that has a name."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


def announced(group: str, kind: type[Kind]) -> tuple[Kind, ...]:
    """Everything that installed packages announce in a group; what cannot be used is named in a warning.

    >>> announced("photostereo.nobody-announces-here", int)
    ()
    """
    found = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            value = point.load()
        except (Exception, SystemExit) as problem:  # a broken plugin must not take the others along
            _say(group, point.value, f"{type(problem).__name__}: {problem}")
            continue
        if not isinstance(value, kind):
            _say(group, point.value, f"it is {type(value).__name__}, not {kind.__name__}")
        elif wrong := _wrong_field(value):
            _say(group, point.value, wrong)
        else:
            found.append(value)
    return tuple(found)


def registered(kind: type[Entry], group: str, modules: Iterable[str]) -> dict[str, Entry]:
    """The entries in our own modules by name, then those of other packages, which never take a name of ours."""
    parts = (part for module in modules for part in vars(import_module(module)).values())
    own = {part.name: part for part in parts if isinstance(part, kind)}
    return own | {entry.name: entry for entry in announced(group, kind) if entry.name not in own}


def _wrong_field(value: object) -> str:
    """What is wrong with the fields of a description; empty if they hold what their annotations say."""
    if not is_dataclass(value):
        return ""
    for name, hint in get_type_hints(type(value)).items():
        kind, held = get_origin(hint) or hint, getattr(value, name)
        if kind is type and not is_dataclass(held):
            return f"{name} is not a dataclass"
        if isinstance(kind, type) and not isinstance(held, (int, float) if kind is float else kind):
            return f"{name} is {type(held).__name__}, not {kind.__name__}"
    return ""


def _say(group: str, what: str, problem: str) -> None:
    warnings.warn(
        PhotostereoWarning(Finding("bad-plugin", name=what, group=group, problem=problem)),
        stacklevel=3,
    )
