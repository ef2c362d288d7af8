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
    """What a prior is built from, beside its parameters."""

    domain: Domain  #: Its pixels.
    noise: float = 0.0  #: Standard deviation of an intensity.
    #: Mean 3 × 3 Hessian of the model's data cost.
    hessian: NDArray[Any] = field(default_factory=lambda: np.eye(3))
    device: Device = CPU  #: Where the arrays live.
    lessons: Sequence[Lesson] = ()  #: If the prior follows a sample, what that learned in each iteration.


@dataclass(frozen=True)
class PriorEntry:
    """A prior on the normals as users see it."""

    #: As users type it, and in words.
    name: str
    title: str
    #: A dataclass of fields made by :mod:`photostereo.core.parameters`; ``max_iter`` and ``tol``, the limits
    #: of the descent, are among them.
    parameters: type
    #: The prior, and the values with everything that was left open (None) filled in, from ``(values,
    #: setting)``.
    build: Callable[[Mapping[str, Any], Setting], tuple[Prior, dict[str, Any]]]
    citation: str  #: Where it comes from.
    #: Parameters that a grid may vary, and that are chosen from the noise if they are None. The first is the
    #: prior's weight: if it is chosen, the normals stay within the noise.
    strengths: tuple[str, ...] = ()
    aligned_to: str = ""  #: A parameter whose multiples the bands of a large capture begin at.
    bytes_per_pixel: int = 100  #: Memory that the prior takes.

    def declared(self) -> tuple[Parameter, ...]:
        return parameters_of(self.parameters)

    def is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether a strength is to be chosen from the noise."""
        return any(values[name] is None for name in self.strengths)

    def weight_is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether the prior's weight is to be chosen from the noise."""
        return bool(self.strengths) and values[self.strengths[0]] is None
