"""A model of another package with an odd description or an odd class, and a command that meets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from .mutations import ESCAPES

#: A word that the worker understands: install this plugin, then run the rest.
PLUGIN = "plugin"
_TEXTS = ("[/x]", "", ESCAPES, "n" * 3000, "ls", "a b", "[bold]", "caf\udce9", "-", "x+y")
_OTHER = (5, None, [], b"x", {"a": 1})
_FIELDS = (
    "name",
    "title",
    "assumes",
    "citation",
    "model",
    "sees",
    "workspace",
    "parameters",
    "look",
    "with_prior",
)
_MODELS = ("nowhere:X", "math:pi", "x", "", ":", "photostereo.reflectance.lambertian.model:nothing")


def words(rng: np.random.Generator) -> tuple[str, str, str]:
    """The group, the field and the number of its odd value."""
    group = ("photostereo.models", "photostereo.priors", "photostereo.readers")[
        int(rng.choice(3, p=[0.7, 0.15, 0.15]))
    ]
    return group, _FIELDS[int(rng.integers(len(_FIELDS)))], str(int(rng.integers(100)))


def _load(group: str, field: str, number: int) -> Any:
    """What the entry point gives."""
    from photostereo.reflectance.lambertian import LS

    if number % 10 == 0:
        raise (ImportError("broken"), SystemExit(3), RuntimeError("[/x]"), ValueError(ESCAPES))[
            number // 10 % 4
        ]
    if group != "photostereo.models" or number % 10 == 1:
        return _OTHER[number % len(_OTHER)]
    pool: tuple[Any, ...] = _MODELS if field == "model" else _TEXTS if number % 3 else _OTHER
    return replace(LS, **{"name": "theirs", field: pool[number % len(pool)]})


@contextmanager
def installed(group: str, field: str, number: str) -> Iterator[None]:
    """While this lasts, a package announces one thing; everything that remembers what is announced is asked again."""
    from photostereo.capture import loading
    from photostereo.core import plugins
    from photostereo.priors import entry as priors
    from photostereo.reflectance import entry as models
    from photostereo.solver import methods

    kept: tuple[Any, ...] = (
        models.registered_models,
        priors.registered_priors,
        methods._registered,
        loading.layouts,
    )
    before: Callable[..., Any] = plugins.entry_points
    point = SimpleNamespace(
        name="x", value="theirs:ENTRY", load=lambda: _load(group, field, int(number))
    )
    plugins.entry_points = lambda group: [point] if group == given else []  # type: ignore[assignment]
    given = group
    try:
        for function in kept:
            function.cache_clear()
        yield
    finally:
        plugins.entry_points = before
        for function in kept:
            function.cache_clear()
