"""Trials that differ in λ and μ alone: one problem with many settings, which a GPU solves at once.

A single setting leaves most of a GPU waiting; on a CPU settings solved together gain nothing, and each is a task of its
own, so that little is lost when a run is interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from photostereo.batch.fingerprint import canonical_json
from photostereo.lab.sweeps.trial import Trial
from photostereo.solver.prepared import VARIED

#: λ and μ.
Setting = tuple[float, float]


def setting_of(parameters: Mapping[str, Any]) -> Setting | None:
    """λ and μ where both are given.

    >>> setting_of({"lam": 1, "mu": 0.1, "p": 2}), setting_of({"p": 2})
    ((1.0, 0.1), None)
    """
    given = [parameters.get(name) for name in VARIED]
    return None if None in given else (float(given[0]), float(given[1]))  # type: ignore[arg-type]


def without_setting(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What is common to a grid."""
    return {name: value for name, value in parameters.items() if name not in VARIED}


def as_parameters(setting: Setting) -> dict[str, float]:
    """What a setting is called."""
    return dict(zip(VARIED, setting, strict=True))


def grids_of(trials: Iterable[Trial]) -> dict[str, tuple[Setting, ...]]:
    """By a trial's hash, the settings of all trials that differ from it in λ and μ alone, its own among them."""
    together: dict[Hashable, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.task == "solve" and setting_of(trial.parameters) is not None:
            common = canonical_json(without_setting(trial.as_dict()["parameters"]))
            together[trial.scene, trial.method, common].append(trial)
    grids: dict[str, tuple[Setting, ...]] = {}
    for several in together.values():
        settings = {setting_of(trial.parameters): None for trial in several}
        grids |= dict.fromkeys((trial.hash for trial in several), tuple(filter(None, settings)))
    return grids
