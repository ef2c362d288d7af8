"""Plugins: models, priors, readers and commands that other packages register as entry points.

In the other package's ``pyproject.toml``::

    [project.entry-points."photostereo.models"]
    mine = "my_package:ENTRY"
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import TypeVar, get_origin, get_type_hints

from photostereo.core.errors import PhotostereoWarning
from photostereo.core.findings import Finding

Kind = TypeVar("Kind")


def announced(
    group: str, kind: type[Kind], check: Callable[[Kind], object] | None = None
) -> tuple[Kind, ...]:
    """Return everything that installed packages register in a group; warn about entries that cannot be used.

    Parameters
    ----------
    group : str
        The group of entry points, such as ``"photostereo.models"``.
    kind : type
        What an entry must be. The fields of a dataclass are checked, too.
    check : callable, optional
        Is called with each entry, and raises if it cannot be used.
    """
    entries = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            value = point.load()
            wrong = _wrong_kind(value, kind)
            if check is not None and not wrong:
                check(value)
        except (Exception, SystemExit) as problem:  # a broken plugin must not disable the others
            wrong = f"{type(problem).__name__}: {problem}"
        if wrong:
            finding = Finding("bad-plugin", name=point.value, group=group, problem=wrong)
            warnings.warn(PhotostereoWarning(finding), stacklevel=2)
        else:
            entries.append(value)
    return tuple(entries)


def registered(kind: type[Kind], group: str, modules: Iterable[str]) -> dict[str, Kind]:
    """Return the entries of our own modules by name, then those of other packages, which cannot replace ours.

    Parameters
    ----------
    kind : type
        What an entry is: it has a ``name``.
    group : str
        The group of entry points of other packages.
    modules : iterable of str
        Names of our own modules.
    """
    name = attrgetter("name")
    values = (value for module in modules for value in vars(import_module(module)).values())
    # A module may hold entries, and anything else.
    ours = {name(value): value for value in values if isinstance(value, kind)}
    theirs = {name(entry): entry for entry in announced(group, kind)}
    return ours | theirs | ours


def _wrong_kind(value: object, expected: type) -> str:
    """Describe what is wrong with an entry; empty if it has the expected type and its fields match their annotations."""
    if not isinstance(value, expected):
        return f"it is {type(value).__name__}, not {expected.__name__}"
    if not is_dataclass(value):
        return ""
    for name, hint in get_type_hints(type(value)).items():
        kind = get_origin(hint) or hint
        content = getattr(value, name)
        if kind is type and not is_dataclass(content):
            return f"{name} is not a dataclass"
        # A whole number is a number, too.
        allowed = (int, float) if kind is float else kind
        if isinstance(kind, type) and not isinstance(content, allowed):
            return f"{name} is {type(content).__name__}, not {kind.__name__}"
    return ""
