"""Objects that a notebook can display.

They are rendered by :mod:`photostereo.report.notebook`. It belongs to a higher layer, so it is imported by name, like a
plugin, when an object is displayed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Displayed:
    """A capture, a result or a finding that a notebook shows as pictures and a small table."""

    def _repr_html_(self) -> str:
        return str(_notebook().as_html(self))

    def plot(self) -> Any:
        """Draw its pictures side by side, as a Matplotlib figure (needs the extra ``figures``)."""
        return _notebook().plot(self)


def _notebook() -> Any:
    return import_module("photostereo.report.notebook")
