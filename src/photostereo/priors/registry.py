"""Every prior: this package's and those of other packages."""

from __future__ import annotations

from functools import cache

from photostereo.core.errors import require_known
from photostereo.core.plugins import registered
from photostereo.priors.entry import PriorEntry

#: The folders here. To add a prior, write one with an ``entry.py`` and name it.
FOLDERS = ("dictionary", "smoothness")


@cache
def registered_priors() -> dict[str, PriorEntry]:
    """All priors by name.

    >>> "dictionary" in registered_priors()
    True
    """
    return registered(
        PriorEntry, "photostereo.priors", (f"{__package__}.{folder}.entry" for folder in FOLDERS)
    )


def find_prior(name: str) -> PriorEntry:
    """The prior of that name, or an error that lists the known ones."""
    known = registered_priors()
    require_known(name, known, "prior")
    return known[name]


def prior_names() -> tuple[str, ...]:
    """Names of all priors."""
    return tuple(registered_priors())
