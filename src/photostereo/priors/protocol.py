"""The interface of a prior on the normals.

A prior adds to a model's data cost what it knows of normal maps, with unknowns s of its own:

    minimize  Σ_pixels data(n, u)  +  prior(n, s)

Block coordinate descent (:mod:`photostereo.solver.descent`) needs a bound of the prior that treats each pixel alone and
touches the prior at the current normals:

    prior(n, s)  ≤  Σ_pixels ( w |n|² − 2 n·q )  +  constant,

so that the model can answer with the exact minimizer of ``data + w |n|² − 2 n·q`` over its own pixel. A prior never
sees photographs, and a model never sees neighbors. A new prior is one folder with a subclass of :class:`Prior` and one
registry line, and works with every model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.runtime.arrays import Array

#: What a prior carries from one iteration to the next: arrays by name, updated in place.
PriorState = dict[str, Array]
#: What bands of a large capture take over from the sample after one update: arrays by name.
Lesson = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Domain:
    """The pixels that a prior is built for."""

    mask: NDArray[np.bool_]  #: (H, W) bool
    #: if not 0, the picture consists of square crops of ``side`` rows, one below the other, that are not
    #: neighbors of each other: a sample of a larger picture
    side: int = 0


class Prior(Protocol):
    """What :class:`~photostereo.solver.problem.Problem` needs of a prior.

    Normals are (N, 3), one row per mask pixel; with a leading axis, several problems descend at once. Arrays are NumPy's
    or torch's. All costs include the weight of the prior.
    """

    def begin(self, normals: Array) -> PriorState:
        """The first state. A saved state must have these names, shapes and types to be resumed."""
        return {}

    def update(self, state: PriorState, normals: Array, iteration: int, control: Control = SILENT) -> None:
        """Improve the prior's own unknowns at fixed normals, in place; iterations count from 0."""
        return  # a prior may have none

    def pull(self, state: PriorState, normals: Array) -> tuple[Array, Array]:
        """w (N,) and q (N, 3) of the bound at these normals; the caller may overwrite q."""
        ...

    def follow(self, state: PriorState, change: Array) -> None:
        """Bring the state up to date after the normals have changed by ``change`` (N, 3)."""
        return  # nothing to do if the state does not depend on the normals

    def cost(self, state: PriorState, normals: Array) -> dict[str, Array]:
        """The terms of the prior by name; their sum is its cost."""
        ...

    def record(self, state: PriorState) -> dict[str, Array]:
        """Further figures of an iteration by name."""
        return {}

    def results(self, state: PriorState) -> dict[str, NDArray[Any]]:
        """What to keep of the state with the result, by name."""
        return {}

    def lesson(self, state: PriorState) -> Lesson:
        """What a band must take over in the same iteration if this prior learns on a sample."""
        return {}
