"""Trials that differ in the strengths of their prior alone: one problem with many settings, which a GPU solves at once.

A single setting leaves most of a GPU waiting; on a CPU settings solved together gain nothing, and each is a task of its
own, so that little is lost if a run is interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from photostereo.batch.fingerprint import canonical_json
from photostereo.lab.sweeps.trial import Trial
from photostereo.solver.methods import find_method

#: Strengths of a prior, by name: (("lam", 1.0), ("mu", 0.1)).
Setting = tuple[tuple[str, float], ...]


def strengths_of(method: str) -> tuple[str, ...]:
    """The parameters that a grid may vary.

    >>> strengths_of("dlnv"), strengths_of("ls")
    (('lam', 'mu'), ())
    """
    prior = find_method(method).prior
    return () if prior is None else prior.strengths


def setting_of(method: str, parameters: Mapping[str, Any]) -> Setting | None:
    """The strengths, if all of them are given.

    >>> setting_of("pdlnv", {"lam": 1, "mu": 0.1, "p": 2}), setting_of("pdlnv", {"p": 2})
    ((('lam', 1.0), ('mu', 0.1)), None)
    """
    names = strengths_of(method)
    if not names or any(parameters.get(name) is None for name in names):
        return None
    return tuple((name, float(parameters[name])) for name in names)


def without_setting(method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What is common to a grid."""
    names = strengths_of(method)
    return {name: value for name, value in parameters.items() if name not in names}


def grids_of(trials: Iterable[Trial]) -> dict[str, tuple[Setting, ...]]:
    """By a trial's hash, the settings of all trials that differ from it in strengths alone, its own among them."""
    together: dict[Hashable, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.task == "solve" and setting_of(trial.method, trial.parameters) is not None:
            common = canonical_json(without_setting(trial.method, trial.as_dict()["parameters"]))
            together[trial.scene, trial.method, common].append(trial)
    grids: dict[str, tuple[Setting, ...]] = {}
    for several in together.values():
        settings = {setting_of(trial.method, trial.parameters): None for trial in several}
        grids |= dict.fromkeys((trial.hash for trial in several), tuple(filter(None, settings)))
    return grids
