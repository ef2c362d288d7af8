"""Registry entries of priors, and the registry, including priors of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import require_known
from photostereo.core.parameters import Parameter, parameters_of
from photostereo.core.plugins import registered
from photostereo.priors.protocol import Lesson, Prior
from photostereo.reflectance.entry import Look
from photostereo.runtime.arrays import CPU, Device

#: Folders of this package. To add a prior, write a folder with an ``entry.py`` and list it here.
FOLDERS = ("dictionary", "smoothness")


@dataclass(frozen=True, eq=False)
class Setting:
    """Inputs for building a prior, besides its parameters."""

    mask: NDArray[np.bool_]  #: (H, W), its pixels.
    #: If not 0, the picture is a sample of a larger one: square crops of ``side`` rows, stacked
    #: vertically, which are not neighbors of each other.
    side: int = 0
    noise: float = 0.0  #: Standard deviation of an intensity.
    #: Mean 3 × 3 Hessian of the model's data cost.
    hessian: NDArray[Any] = field(default_factory=lambda: np.eye(3))
    device: Device = CPU  #: Device of the arrays.
    lessons: Sequence[Lesson] = ()  #: If the prior follows a sample, the lessons of each iteration.


@dataclass(frozen=True)
class Preset:
    """A named method: a prior on a model, with defaults of their own."""

    name: str  #: For commands.
    model: str  #: The name of a registered model.
    title: str  #: In words.
    assumes: str  #: When to use it, one line.
    look: Look  #: Label, color and marker in figures.
    #: Defaults that differ from those of the model and of the prior.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the citation names the model too, because that of the prior does not cover it.
    cites_model: bool = False


@dataclass(frozen=True)
class PriorEntry:
    """A prior on the normals, as presented to users."""

    name: str  #: For commands.
    title: str  #: In words.
    #: A dataclass of fields made by :mod:`photostereo.core.parameters`; ``max_iter`` and ``tol``,
    #: the limits of the descent, are among them.
    parameters: type
    #: Maps ``(values, setting)`` to the prior, and to the values with unset ones (None) filled in.
    build: Callable[[Mapping[str, Any], Setting], tuple[Prior, dict[str, Any]]]
    citation: str  #: Reference.
    #: Parameters that a grid may vary; if None, they are chosen from the noise. The first is the
    #: weight of the prior: if it is chosen automatically, the normals stay within the noise.
    strengths: tuple[str, ...] = ()
    aligned_to: str = ""  #: A parameter; the bands of a large capture begin at multiples of it.
    #: Bytes per pixel of its state and workspace. The default is for patches of 8 × 8 × 3 values
    #: at every fourth pixel with as many atoms, the largest of the built-in priors.
    workspace: int = 260
    #: Arrays of :meth:`.Prior.results` that also become files of a result, by name, with their
    #: meanings for ``summary.json``.
    files: Mapping[str, str] = field(default_factory=dict)
    presets: tuple[Preset, ...] = ()  #: Methods with a name of their own.

    def declared(self) -> tuple[Parameter, ...]:
        return parameters_of(self.parameters)

    def is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether a strength will be chosen from the noise."""
        return any(values[name] is None for name in self.strengths)

    def weight_is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether the prior's weight will be chosen from the noise."""
        return bool(self.strengths) and values[self.strengths[0]] is None


def filled(values: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with those that are not set (None) replaced by the chosen ones.

    >>> filled({"lam": None, "mu": 0.2}, {"lam": 3.0, "mu": 0.1})
    {'lam': 3.0, 'mu': 0.2}
    """
    return {
        name: chosen[name] if value is None and name in chosen else value
        for name, value in values.items()
    }


@cache
def registered_priors() -> dict[str, PriorEntry]:
    """All priors by name."""
    own = (f"{__package__}.{folder}.entry" for folder in FOLDERS)
    return registered(PriorEntry, "photostereo.priors", own)


def find_prior(name: str) -> PriorEntry:
    """Return a prior by name, or raise an error that lists the known ones."""
    known = registered_priors()
    require_known(name, known, "prior")
    return known[name]


def prior_files() -> dict[str, str]:
    """Return the arrays of all priors that become files, and their meanings."""
    files: dict[str, str] = {}
    for prior in registered_priors().values():
        files |= prior.files
    return files


def prior_names() -> tuple[str, ...]:
    """Names of all priors."""
    return tuple(registered_priors())
