"""Every prior, one line each."""

from __future__ import annotations

from photostereo.core.errors import ParameterError, did_you_mean
from photostereo.priors.dictionary.entry import DICTIONARY
from photostereo.priors.entry import PriorEntry

_PRIORS = {entry.name: entry for entry in (DICTIONARY,)}


def find_prior(name: str) -> PriorEntry:
    """The prior of that name, or an error that lists the known ones."""
    if name not in _PRIORS:
        raise ParameterError(
            f'There is no prior "{name}".{did_you_mean(name, _PRIORS)} Known priors: {", ".join(_PRIORS)}.'
        )
    return _PRIORS[name]


def prior_names() -> tuple[str, ...]:
    """Names of all priors."""
    return tuple(_PRIORS)
