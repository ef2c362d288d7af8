"""Registry entry of a prior."""

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
    """Inputs for building a prior, besides its parameters."""

    domain: Domain  #: Its pixels.
    noise: float = 0.0  #: Standard deviation of an intensity.
    #: Mean 3 × 3 Hessian of the model's data cost.
    hessian: NDArray[Any] = field(default_factory=lambda: np.eye(3))
    device: Device = CPU  #: Device of the arrays.
    lessons: Sequence[Lesson] = ()  #: If the prior follows a sample, the lessons of each iteration.


@dataclass(frozen=True)
class PriorEntry:
    """A prior on the normals, as presented to users."""

    #: Name for commands, and title.
    name: str
    title: str
    #: A dataclass of fields made by :mod:`photostereo.core.parameters`; ``max_iter`` and ``tol``, the limits
    #: of the descent, are among them.
    parameters: type
    #: Maps ``(values, setting)`` to the prior, and to the values with unset ones (None) filled in.
    build: Callable[[Mapping[str, Any], Setting], tuple[Prior, dict[str, Any]]]
    citation: str  #: Reference.
    #: Parameters that a grid may vary; if None, they are chosen from the noise. The first is the weight of the
    #: prior: if it is chosen automatically, the normals stay within the noise.
    strengths: tuple[str, ...] = ()
    aligned_to: str = ""  #: A parameter; the bands of a large capture begin at multiples of it.
    bytes_per_pixel: int = 100  #: Memory use of the prior.

    def declared(self) -> tuple[Parameter, ...]:
        return parameters_of(self.parameters)

    def is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether a strength will be chosen from the noise."""
        return any(values[name] is None for name in self.strengths)

    def weight_is_open(self, values: Mapping[str, Any]) -> bool:
        """Whether the prior's weight will be chosen from the noise."""
        return bool(self.strengths) and values[self.strengths[0]] is None
