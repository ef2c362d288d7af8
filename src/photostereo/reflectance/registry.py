"""Every reflectance model: this package's and those of other packages."""

from __future__ import annotations

from functools import cache

from photostereo.core.plugins import registered
from photostereo.reflectance.entry import ModelEntry

#: The folders here. To add a model, write one and name it.
FOLDERS = ("lambertian", "piecewise", "sparse", "lowrank", "bivariate", "learned")


@cache
def registered_models() -> dict[str, ModelEntry]:
    """All models by name.

    >>> list(registered_models())[:2]
    ['ls', 'pls']
    """
    return registered(ModelEntry, "photostereo.models", (f"{__package__}.{folder}" for folder in FOLDERS))
