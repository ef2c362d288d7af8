"""Registry of all reflectance models, including those of other packages."""

from __future__ import annotations

from functools import cache

from photostereo.core.plugins import registered
from photostereo.reflectance.entry import ModelEntry

#: Folders of this package. To add a model, write a folder and list it here.
FOLDERS = ("lambertian", "piecewise", "sparse", "lowrank", "bivariate", "learned")


@cache
def registered_models() -> dict[str, ModelEntry]:
    """All models by name."""
    return registered(ModelEntry, "photostereo.models", (f"{__package__}.{folder}" for folder in FOLDERS))
