"""The interface of a reflectance model.

Every method minimizes

    Σ_pixels data(n_px, u_px)  +  prior(n, s)

over the scaled normals n = albedo × normal (N × 3), the model's own unknowns u and, with a prior, that prior's unknowns
s. With s fixed the prior is bounded by a term for each pixel alone (:mod:`photostereo.priors.protocol`):

    w |n|² − 2 n·q + constant.

So a model never sees neighbors. It gets (w, q) and answers with the exact minimizer over its own pixel. A new model is
one folder with a subclass of :class:`Model` and one registry line, and works with every prior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.runtime.arrays import Array

#: The model's own unknowns: arrays whose first axis is the pixel.
Unknowns = dict[str, Array]


@dataclass(frozen=True)
class Fit:
    """A model's own answer, without a prior."""

    normals: Array  #: (N, 3) albedo × normal
    unknowns: Unknowns = field(default_factory=dict)  #: The model's own unknowns at the answer.
    iterations: int = 0  #: 0 for a closed form
    converged: bool = True  #: Whether every pixel met the model's tolerance.


class Whole(Protocol):
    """What a model knows of a whole object."""

    def at(self, rows: NDArray[Any], columns: NDArray[Any]) -> Any:
        """The same for some of its pixels, by their rows and columns in the picture."""


class Model(ABC):
    """What a :class:`~photostereo.solver.problem.Problem` needs of a reflectance model.

    A model is built from ``(pixels, lights, **parameters)``: (N, d) intensities of order one and the lights, unit columns
    (3, d) that all pixels share or (N, 3, d) of each pixel, seen along (0, 0, 1) in either case
    (:mod:`photostereo.runtime.illumination` has the products). Four members have to be written; the others have defaults
    that serve a model without unknowns of its own. The module's text explains the symbols.
    """

    #: Whether the model keeps sums of each pixel's photographs and lets go of these: see :meth:`join`.
    joins: ClassVar[bool] = False
    #: Whether its normals answer to noise in a way of their own, so that it has to be tried how: see
    #: :mod:`photostereo.solver.tried_noise`.
    bends: ClassVar[bool] = False
    #: Whether a pixel's own curve makes more or less of an intensity, and of its noise, than its neighbors' curves do.
    scales_noise: ClassVar[bool] = False
    #: Whether its maps have a value for every photograph: bands do not ask for those.
    maps_photographs: ClassVar[bool] = False

    @classmethod
    def join(cls, parts: Sequence[Any]) -> Model:
        """One model of the pixels of all parts, in their order; for models that keep sums and no photographs."""
        raise NotImplementedError(f"{cls.__name__} keeps its photographs.")

    @classmethod
    def see_whole(
        cls,
        pixels: Array,
        lights: NDArray[Any],
        mask: NDArray[np.bool_],
        whole: NDArray[np.bool_],
        *,
        colors: Array | None = None,
        **parameters: Any,
    ) -> Whole | None:
        """What parts of an object have to know of all of it, from small photographs; their pixels lie in ``mask``.

        ``whole`` is the mask of the photographs in full. A model that is given something here has the keyword
        ``surroundings`` for what it is at its pixels.
        """
        return None

    @property
    def noise(self) -> float | None:
        """Noise of one intensity that the model counts as noise, or None: then that of least squares is estimated."""
        return None

    def excess_variance(self, unknowns: Unknowns) -> float:
        """The variance of the model's own normals over that of least squares with its mean Hessian, σ² H⁻¹."""
        return 1.0

    @property
    def noise_is_of_normals(self) -> bool:
        """Whether :attr:`noise` and :meth:`misfit` refer to the components of the normals, not to intensities."""
        return False

    def lead(self, captured: int) -> None:  # noqa: B027  (most models have nothing to learn)
        """This is a model of the sample of a capture with this many pixels, whose parts will :meth:`adopt` it."""

    def adopt(self, sample: Model) -> None:  # noqa: B027  (most models measure nothing on the whole capture)
        """Take over what was measured once for the whole capture from a model of its sample, before anything else."""

    @abstractmethod
    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        """How firmly the photographs hold n: the 3 × 3 mean over pixels of H, data = nᵀH n − 2 hᵀn + ...;
        NumPy."""

    @abstractmethod
    def alone(self, control: Control) -> Fit:
        """The model's minimizer without a prior."""

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        """Where block coordinate descent with a prior begins."""
        fit = self.alone(control)
        return fit.normals, fit.unknowns

    @abstractmethod
    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        """Exact minimizer over n of ``data + w |n|² − 2 n·q``, with the unknowns fixed or eliminated.

        ``weight`` (N,) is w and ``pull`` (N, 3) is q; both may have a leading axis of problems.
        """

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array] | None:
        """H (N, 6) or, if all pixels share it, (1, 6) and h (N, 3) of ``data = nᵀH n − 2 hᵀn + constant`` at fixed
        or eliminated unknowns: constraints on n are then cheap. H is xx, xy, xz, yy, yz, zz, or (N, 1) if it is a multiple
        of the identity; None for another cost."""
        return None

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        """Minimizer (or a step that does not raise the cost) over the model's own unknowns at fixed n."""
        return unknowns

    @abstractmethod
    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        """The data cost, summed over the pixels; a number, or an array of the same kind that holds one."""

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array | None:
        """(N,) the pixel's data cost at its own normals per degree of freedom, comparable with the square of the
        noise; None where the model has no such number."""
        return None

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """What is worth looking at per pixel, beyond the normals: arrays whose first axis is the pixel."""
        return {}

    def albedo(self, normals: Array, unknowns: Unknowns) -> Array | None:
        """(N,) the albedo where it is not the length of n, as for a model of unit normals; else None."""
        return None
