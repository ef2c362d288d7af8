"""What the registry knows of a prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.parameters import Parameter, parameters_of
from photostereo.priors.protocol import Domain, Lesson, Prior
from photostereo.runtime.arrays import CPU, Device


@dataclass(frozen=True, eq=False)
class Setting:
    """What a prior is built from, beside its parameters.

    Attributes
    ----------
    domain : Domain
        Its pixels.
    noise : float
        Standard deviation of an intensity.
    hessian : array
        Mean 3 × 3 Hessian of the model's data cost.
    device : Device
        Where the arrays live.
    lessons : sequence of Lesson
        If the prior follows a sample, what that learned in each iteration.
    """

    domain: Domain
    noise: float = 0.0
    hessian: NDArray[Any] = field(default_factory=lambda: np.eye(3))
    device: Device = CPU
    lessons: Sequence[Lesson] = ()


@dataclass(frozen=True)
class PriorEntry:
    """A prior on the normals as users see it.

    Attributes
    ----------
    name, title : str
        As users type it, and in words.
    parameters : type
        A dataclass of fields made by :mod:`photostereo.core.parameters`; ``max_iter`` and ``tol``, the limits of
        the descent, are among them.
    build : callable
        The prior, and the values with everything that was left open (None) filled in, from ``(values, setting)``.
    citation : str
        Where it comes from.
    strengths : tuple of str
        Parameters that a grid may vary, and that are chosen from the noise if they are None. The first is the
        prior's weight: if it is chosen, the normals stay within the noise.
    aligned_to : str
        A parameter whose multiples the bands of a large capture begin at.
    bytes_per_pixel : int
        Memory that the prior takes.
    """

    name: str
    title: str
    parameters: type
    build: Callable[[Mapping[str, Any], Setting], tuple[Prior, dict[str, Any]]]
    citation: str
    strengths: tuple[str, ...] = ()
    aligned_to: str = ""
    bytes_per_pixel: int = 100

    def declared(self) -> tuple[Parameter, ...]:
        return parameters_of(self.parameters)

    def is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether a strength is to be chosen from the noise."""
        return any(values[name] is None for name in self.strengths)

    def weight_is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether the prior's weight is to be chosen from the noise."""
        return bool(self.strengths) and values[self.strengths[0]] is None
