"""What the registry knows of a prior, and what a problem needs of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.parameters import Parameter, parameters_of
from photostereo.runtime.arrays import Device

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PriorEntry:
    """A prior on the normals as users see it.

    Attributes
    ----------
    name, title : as users type it, and in words
    parameters : a dataclass of fields made by :mod:`photostereo.core.parameters`
    build : the prior of a mask, and the values with everything that was left open filled in, from
        ``(mask, values, noise, hessian, device)``: noise of an intensity and the mean Hessian of the data cost
    citation : where it comes from
    """

    name: str
    title: str
    parameters: type
    build: Callable[[Mask, Mapping[str, Any], float, NDArray[Any], Device], tuple[Any, dict[str, Any]]]
    citation: str

    def declared(self) -> tuple[Parameter, ...]:
        return parameters_of(self.parameters)
