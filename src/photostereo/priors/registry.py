"""Registry of all priors, including those of other packages."""

from __future__ import annotations

from functools import cache

from photostereo.core.errors import require_known
from photostereo.core.plugins import registered
from photostereo.priors.entry import PriorEntry

#: Folders of this package. To add a prior, write a folder with an ``entry.py`` and list it here.
FOLDERS = ("dictionary", "smoothness")


@cache
def registered_priors() -> dict[str, PriorEntry]:
    """All priors by name."""
    own = (f"{__package__}.{folder}.entry" for folder in FOLDERS)
    return registered(PriorEntry, "photostereo.priors", own)


def find_prior(name: str) -> PriorEntry:
    """Return a prior by name, or raise an error that lists the known ones."""
    known = registered_priors()
    require_known(name, known, "prior")
    return known[name]


def prior_names() -> tuple[str, ...]:
    """Names of all priors."""
    return tuple(registered_priors())
