"""Objects that a notebook shows as pictures."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar


class Displayed:
    """A capture, a result or a diagnosis, shown by notebooks as pictures and a small table.

    The drawing belongs to a higher layer. The package names it once, in ``photostereo/__init__.py``, and it is imported
    when the first object is shown.
    """

    #: Name of the module that draws: it has ``as_html(value)`` and ``plot(value)``.
    drawn_by: ClassVar[str]

    def _repr_html_(self) -> str:
        return str(import_module(self.drawn_by).as_html(self))

    def plot(self) -> Any:
        """Draw its pictures side by side, as a Matplotlib figure (needs the extra ``figures``)."""
        return import_module(self.drawn_by).plot(self)
