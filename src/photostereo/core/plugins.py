"""What other packages add: models and readers, announced by entry points.

In the other package's ``pyproject.toml``::

    [project.entry-points."photostereo.models"]
    mine = "my_package:ENTRY"
"""

from __future__ import annotations

import warnings
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
        except Exception as problem:  # a broken plugin must not take the others along
            _say(group, point.value, f"{type(problem).__name__}: {problem}")
            continue
        if isinstance(value, kind):
            found.append(value)
        else:
            _say(group, point.value, f"it is {type(value).__name__}, not {kind.__name__}")
    return tuple(found)


def _say(group: str, what: str, problem: str) -> None:
    warnings.warn(
        f"The plugin {what} ({group}) cannot be used: {problem}. Update or uninstall the package it comes from.",
        PhotostereoWarning,
        stacklevel=3,
    )
