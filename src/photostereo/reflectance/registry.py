"""Every reflectance model: this package's, one line each, and those of other packages."""

from __future__ import annotations

from functools import cache

from photostereo.core.plugins import announced
from photostereo.reflectance.bivariate import CBR
from photostereo.reflectance.entry import ModelEntry
from photostereo.reflectance.lambertian import LS
from photostereo.reflectance.learned import NET
from photostereo.reflectance.lowrank import RPCA
from photostereo.reflectance.piecewise import PLS
from photostereo.reflectance.sparse import L1, SBL

OWN = (LS, PLS, L1, SBL, RPCA, CBR, NET)


@cache
def registered_models() -> dict[str, ModelEntry]:
    """All models by name. Another package's model never takes the name of one of ours.

    >>> list(registered_models())[:2]
    ['ls', 'pls']
    """
    theirs = {entry.name: entry for entry in announced("photostereo.models", ModelEntry)}
    return {**{entry.name: entry for entry in OWN}, **{k: v for k, v in theirs.items() if k not in _TAKEN}}


_TAKEN = frozenset(entry.name for entry in OWN)
