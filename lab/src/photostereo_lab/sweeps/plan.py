"""A plan: captures × photographs × noises × seeds × methods × parameters, expanded to trials.

A **trial** is one method with one set of parameters on one corrupted subset of one capture. It
contains a path and parameters, never photographs. Its hash identifies what is computed, not where:
the same trial in two plans, on two machines or in two runs has the same hash, and is computed once.

A **cell** is one method on one scene (a seeded, corrupted subset of a capture). It holds the trials
of the method's grid, of which the one with the lowest mean error is the *oracle* (the paper's
protocol), and the one trial with fixed defaults (what a user gets). The two are kept apart up to
the last table.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

from photostereo.batch.settings import canonical_json, fingerprint
from photostereo.core.errors import plain
from photostereo.solver.methods import find_method

#: Part of every hash; increased when the meaning of an existing description of a trial changes.
HASH_VERSION = 1

#: What a trial does.
Task = Literal["solve", "represent"]


@dataclass(frozen=True)
class Corruption:
    """Noise added to the photographs: its kind and its level (dB, fraction, standard deviation)."""

    kind: Literal["none", "poisson", "salt_pepper", "gaussian"] = "none"
    level: float = 0.0

    def __str__(self) -> str:
        texts = {
            "none": "clean",
            "poisson": f"Poisson {self.level:g} dB",
            "salt_pepper": f"salt and pepper {100 * self.level:g} %",
            "gaussian": f"Gaussian {self.level:g}",
        }
        return texts[self.kind]


#: No noise.
CLEAN = Corruption()


@dataclass(frozen=True)
class CaptureSpec:
    """Where a capture is and how it is read."""

    name: str  #: for tables and figures
    path: str  #: of the folder or file, as seen by every worker; not part of the trial's identity
    #: names and sizes of the files (or the content of a single file), so that different data give a
    #: different trial
    fingerprint: str
    #: ``"truth"`` for the capture's own normals, ``"ls"`` for least squares on its clean
    #: photographs
    reference: Literal["truth", "ls"] = "truth"

    @classmethod
    def at(
        cls, path: str | Path, name: str = "", reference: Literal["truth", "ls"] = "truth"
    ) -> CaptureSpec:
        """Describe the capture in a folder or file.

        Parameters
        ----------
        path : path
            The folder or file.
        name : str
            For tables and figures; by default that of the path.
        reference : {"truth", "ls"}
            What the results are compared with.
        """
        place = Path(path).resolve()
        return cls(name or place.stem, str(place), fingerprint(place), reference)


@dataclass(frozen=True)
class Trial:
    """One method, one set of parameters, one corrupted subset of one capture."""

    capture: CaptureSpec  #: which capture
    method: str  #: the method to run
    #: parameters of the method; others have their defaults
    parameters: Mapping[str, Any] = field(default_factory=dict)
    images: int | None = None  #: number of randomly chosen photographs; None for all
    corruption: Corruption = CLEAN  #: the noise added to them
    seed: int | None = None  #: seed of the choice and of the noise; None if nothing is random
    #: ``"solve"``, or ``"represent"`` to learn a dictionary on the least-squares normals
    task: Task = "solve"

    @cached_property
    def hash(self) -> str:
        """24 hexadecimal digits that depend only on what the trial computes."""
        identity = {**asdict(self), "parameters": self.plain_parameters, "version": HASH_VERSION}
        identity["corruption"]["level"] = float(self.corruption.level)
        del identity["capture"]["path"]
        return hashlib.blake2b(canonical_json(identity).encode(), digest_size=12).hexdigest()

    @property
    def scene(self) -> tuple[CaptureSpec, int | None, Corruption, int | None]:
        """The method's input: trials of one scene share loading, noise and statistics."""
        return (self.capture, self.images, self.corruption, self.seed)

    @property
    def plain_parameters(self) -> dict[str, Any]:
        """The parameters as JSON values."""
        return {name: plain(value) for name, value in self.parameters.items()}


@dataclass(frozen=True)
class MethodPlan:
    """A method and the parameters to try."""

    method: str  #: a registered name
    #: distinguishes two uses of one method in a plan (``"pdlnv p=3"``); the method's name if empty
    label: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)  #: parameters of every trial of this use
    #: lists of values; the trials are their product. If empty: the fixed parameters only
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    defaults: bool = True  #: also try the method without its grid, with the fixed parameters only
    oracle: bool = True  #: try the grid; without it there is no best of grid, only the defaults

    @property
    def title(self) -> str:
        """The label, or the method's name."""
        return self.label or self.method

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield the parameter sets of the grid."""
        if self.oracle:
            for values in product(*self.grid.values()):
                yield {**self.fixed, **dict(zip(self.grid, values, strict=True))}


@dataclass(frozen=True)
class Cell:
    """One method on one scene: the trials of its grid and the one with defaults."""

    capture: CaptureSpec
    images: int | None  #: number of photographs; None for all
    corruption: Corruption
    seed: int | None  #: None if nothing is random
    label: str  #: of the method
    grid: tuple[Trial, ...]
    default: Trial | None


@dataclass(frozen=True)
class Plan:
    """A name and the trials to compute; JSON in the store, TOML in files that users write."""

    name: str
    captures: tuple[CaptureSpec, ...]
    methods: tuple[MethodPlan, ...]
    images: tuple[int | None, ...] = (None,)
    corruptions: tuple[Corruption, ...] = (CLEAN,)
    seeds: tuple[int, ...] = (0,)
    task: Task = "solve"
    maps: bool = False  #: whether the normals of every trial are kept

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every method on every scene, in the plan's order."""
        return tuple(_cells(self))

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, each once."""
        trials: dict[str, Trial] = {}
        for cell in self.cells:
            for trial in (cell.default, *cell.grid):
                if trial is not None:
                    trials.setdefault(trial.hash, trial)
        return tuple(trials.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """Invert :meth:`as_dict`."""
        return cls(
            name=values["name"],
            captures=tuple(CaptureSpec(**entry) for entry in values["captures"]),
            methods=tuple(MethodPlan(**entry) for entry in values["methods"]),
            images=tuple(values["images"]),
            corruptions=tuple(Corruption(**entry) for entry in values["corruptions"]),
            seeds=tuple(values["seeds"]),
            task=values.get("task", "solve"),
            maps=values.get("maps", False),
        )


def _cells(plan: Plan) -> Iterator[Cell]:
    """Yield every method on every scene; scenes that are the same occur once."""
    scenes = set()
    for capture, corruption, images, seed in product(
        plan.captures, plan.corruptions, plan.images, plan.seeds
    ):
        # Without a choice of photographs and without noise, nothing depends on the seed: one trial,
        # not one per seed.
        settled = None if images is None and corruption.kind == "none" else seed
        scene = (capture, corruption, images, settled)
        if scene in scenes:
            continue
        scenes.add(scene)
        for use in plan.methods:
            bare = Trial(capture, use.method, {}, images, corruption, settled, plan.task)
            yield Cell(
                capture=capture,
                images=images,
                corruption=corruption,
                seed=settled,
                label=use.title,
                grid=tuple(_with_parameters(bare, point) for point in use.points()),
                default=_with_parameters(bare, use.fixed) if use.defaults else None,
            )


def _with_parameters(trial: Trial, parameters: Mapping[str, Any]) -> Trial:
    """Return a trial with these parameters, checked if they are those of a method."""
    if trial.task == "solve":
        return replace(trial, parameters=settle_parameters(trial.method, parameters))
    return replace(trial, parameters=dict(parameters))


def settle_parameters(method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Check parameters and convert them to their types.

    ``lam = 1`` and ``lam = 1.0`` are then the same trial.

    >>> settle_parameters("pdlnv", {"lam": 1, "p": 2})
    {'lam': 1.0, 'p': 2}
    """
    values = find_method(method).resolve(parameters)
    # A dictionary given as a file stays a path: trials contain no arrays.
    return {
        name: value if hasattr(values[name], "shape") else plain(values[name])
        for name, value in parameters.items()
    }


#: Strengths of a prior, by name: (("lam", 1.0), ("mu", 0.1)).
Setting = tuple[tuple[str, float], ...]


def split_setting(
    method: str, parameters: Mapping[str, Any]
) -> tuple[Setting | None, dict[str, Any]]:
    """Split parameters into the prior's strengths, if all are given, and the others.

    The others are common to a grid.

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
    """Map each trial's hash to the settings of all trials that differ from it only in strengths.

    Its own is among them.
    """
    groups: dict[Hashable, dict[str, Setting]] = defaultdict(dict)
    for trial in trials:
        if trial.task == "solve":
            setting, common = split_setting(trial.method, trial.plain_parameters)
            if setting is not None:
                groups[trial.scene, trial.method, canonical_json(common)][trial.hash] = setting
    grids: dict[str, tuple[Setting, ...]] = {}
    for group in groups.values():
        settings = tuple(dict.fromkeys(group.values()))
        grids.update(dict.fromkeys(group, settings))
    return grids
