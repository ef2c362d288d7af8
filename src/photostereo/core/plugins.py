"""What other packages add: models and readers, announced by entry points.

In the other package's ``pyproject.toml``::

    [project.entry-points."photostereo.models"]
    mine = "my_package:ENTRY"
"""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass
from importlib.metadata import entry_points
from typing import TypeVar

from photostereo.core.errors import PhotostereoWarning

Kind = TypeVar("Kind")


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
        elif wrong := [name for name in _texts(value) if not isinstance(getattr(value, name), str)]:
            _say(group, point.value, f"{wrong[0]} is not text")
        else:
            found.append(value)
    return tuple(found)


def _texts(value: object) -> list[str]:
    """The fields of a description that have to be text."""
    return [f.name for f in fields(value) if f.type in (str, "str")] if is_dataclass(value) else []


def _say(group: str, what: str, problem: str) -> None:
    warnings.warn(
        f"The plugin {what} ({group}) cannot be used: {problem}. Update or uninstall the package it comes from.",
        PhotostereoWarning,
        stacklevel=3,
    )
