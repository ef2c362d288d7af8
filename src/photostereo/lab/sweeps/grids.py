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


def split_setting(method: str, parameters: Mapping[str, Any]) -> tuple[Setting | None, dict[str, Any]]:
    """The strengths of the prior, if all of them are given, and the other parameters, which a grid has in common.

    >>> split_setting("pdlnv", {"lam": 1, "mu": 0.1, "p": 2})
    ((('lam', 1.0), ('mu', 0.1)), {'p': 2})
    >>> split_setting("pdlnv", {"p": 2})
    (None, {'p': 2})
    """
    prior = find_method(method).prior
    names = () if prior is None else prior.strengths
    common = {name: value for name, value in parameters.items() if name not in names}
    if not names or any(parameters.get(name) is None for name in names):
        return None, common
    return tuple((name, float(parameters[name])) for name in names), common


def grids_of(trials: Iterable[Trial]) -> dict[str, tuple[Setting, ...]]:
    """By a trial's hash, the settings of all trials that differ from it in strengths alone, its own among them."""
    together: dict[Hashable, dict[str, Setting]] = defaultdict(dict)
    for trial in trials:
        if trial.task == "solve":
            setting, common = split_setting(trial.method, trial.plain_parameters)
            if setting is not None:
                together[trial.scene, trial.method, canonical_json(common)][trial.hash] = setting
    return {key: tuple(dict.fromkeys(several.values())) for several in together.values() for key in several}
