"""The interface of a prior on the normals.

A prior adds its knowledge of normal maps to a model's data cost, with its own unknowns s:

    minimize  Σ_pixels data(n, u)  +  prior(n, s)

Block coordinate descent (:mod:`photostereo.solver.problem`) needs a bound of the prior that treats
each pixel alone and touches the prior at the current normals:

    prior(n, s)  ≤  Σ_pixels ( w |n|² − 2 n·q )  +  constant,

so that the model can answer with the exact minimizer of ``data + w |n|² − 2 n·q`` over its own
pixel. A prior never sees photographs, and the model's step never sees neighbors. A new prior is one
folder with a subclass of :class:`Prior` and one registry line, and works with every model.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.runtime.arrays import Array

#: State of a prior between iterations: arrays by name, updated in place.
PriorState = dict[str, Array]
#: Arrays by name that the bands of a large capture take over from the sample after an update.
Lesson = dict[str, NDArray[Any]]


class Prior(Protocol):
    """Interface of a prior for :class:`~photostereo.solver.problem.Problem`.

    Normals are (N, 3), one row per mask pixel; with a leading axis, several problems descend at
    once. Arrays are NumPy arrays or torch tensors. All costs include the weight of the prior.
    """

    def begin(self, normals: Array) -> PriorState:
        """Return the initial state.

        A saved state must match its names, shapes and types to be resumed.
        """
        return {}

    def update(
        self, state: PriorState, normals: Array, iteration: int, control: Control = SILENT
    ) -> None:
        """Update the prior's own unknowns at fixed normals, in place; iterations count from 0."""
        return  # nothing to do without unknowns

    def pull(self, state: PriorState, normals: Array) -> tuple[Array, Array]:
        """Return w (N,) and q (N, 3) of the bound at these normals; the caller may overwrite q."""
        ...

    def follow(self, state: PriorState, change: Array) -> None:
        """Update the state after the normals have changed by ``change`` (N, 3)."""
        return  # nothing to do if the state does not depend on the normals

    def cost(self, state: PriorState, normals: Array) -> dict[str, Array]:
        """Return the terms of the prior by name; their sum is its cost."""
        ...

    def record(self, state: PriorState) -> dict[str, Array]:
        """Return further figures of an iteration by name."""
        return {}

    def results(self, state: PriorState) -> dict[str, NDArray[Any]]:
        """Return the parts of the state to keep with the result, by name."""
        return {}

    def lesson(self, state: PriorState) -> Lesson:
        """Return what a band must take over in the same iteration if this prior learns on a sample."""
        return {}
