"""Every prior: this package's, one line each, and those of other packages."""

from __future__ import annotations

from functools import cache

from photostereo.core.errors import require_known
from photostereo.core.plugins import announced
from photostereo.priors.dictionary.entry import DICTIONARY
from photostereo.priors.entry import PriorEntry
from photostereo.priors.smoothness.entry import SMOOTHNESS

OWN = (DICTIONARY, SMOOTHNESS)


@cache
def registered_priors() -> dict[str, PriorEntry]:
    """All priors by name. Another package's prior never takes the name of one of ours.

    >>> "dictionary" in registered_priors()
    True
    """
    theirs = {entry.name: entry for entry in announced("photostereo.priors", PriorEntry)}
    return {**theirs, **{entry.name: entry for entry in OWN}}


def find_prior(name: str) -> PriorEntry:
    """The prior of that name, or an error that lists the known ones."""
    known = registered_priors()
    require_known(name, known, "prior")
    return known[name]


def prior_names() -> tuple[str, ...]:
    """Names of all priors."""
    return tuple(registered_priors())
