"""The interface of a reflectance model.

Every method minimizes

    Σ_pixels data(n_px, u_px)  +  prior(n, s)

over the scaled normals n = albedo × normal (N × 3), the model's own unknowns u and, with a prior, the prior's unknowns
s. With s fixed, the prior is bounded by a separate term for each pixel (:mod:`photostereo.priors.protocol`):

    w |n|² − 2 n·q + constant.

So a model never sees neighbors. It gets (w, q) and returns the exact minimizer over its own pixel. A new model is
one folder with a subclass of :class:`Model` and one registry line, and works with every prior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray
from photostereo.runtime.arrays import Array

#: Pixels per batch of a compiled loop: a few milliseconds of work, so that progress can be reported.
BATCH = 8192
#: The model's own unknowns: arrays whose first axis is the pixel.
Unknowns = dict[str, Array]


@dataclass(frozen=True)
class Fit:
    """Solution of a model without a prior."""

    normals: Array  #: (N, 3) albedo × normal
    unknowns: Unknowns = field(default_factory=dict)  #: The model's own unknowns at the solution.
    iterations: int = 0  #: 0 for a closed form
    converged: bool = True  #: Whether every pixel met the model's tolerance.


class Model(ABC):
    """Interface of a reflectance model for :class:`~photostereo.solver.problem.Problem`.

    A model is built from ``(pixels, lights, **parameters)``: (N, d) intensities of order one, and unit lights as columns,
    (3, d) shared by all pixels or (N, 3, d) per pixel, with the view direction (0, 0, 1) in either case
    (:mod:`photostereo.runtime.illumination` has the products). Four members are required; the defaults of the others suit
    a model without unknowns of its own. The module docstring explains the symbols.
    """

    #: Whether its normals respond to noise in a way specific to the model, which must be measured: see
    #: :mod:`photostereo.solver.within_noise`.
    bends: ClassVar[bool] = False
    #: Whether :attr:`noise` and :meth:`misfit` refer to the components of the normals, not to intensities.
    noise_is_of_normals: ClassVar[bool] = False
    #: Whether each pixel has its own curve, which scales its intensities and their noise differently from its neighbors'.
    scales_noise: ClassVar[bool] = False
    #: Whether its maps have a value for every photograph; bands skip such maps.
    maps_photographs: ClassVar[bool] = False

    @classmethod
    def see_whole(
        cls, pixels: Array, lights: NDArray[Any], mask: BoolArray, whole: BoolArray, **others: Any
    ) -> Any:
        """Return what parts of an object must know about the whole, from small photographs with pixels in ``mask``.

        ``whole`` is the mask of the full-size photographs; ``others`` are ``colors``, ``control`` and the parameters. If a
        model returns an object here, it accepts the keyword ``surroundings``: what its method ``at(rows, columns)`` returns
        for the model's pixels.
        """
        return None

    @property
    def noise(self) -> float | None:
        """Noise of one intensity as the model sees it; if None, that of least squares is estimated."""
        return None

    def excess_variance(self, unknowns: Unknowns) -> float:
        """Ratio of the variance of the model's normals to that of least squares with its mean Hessian, σ² H⁻¹."""
        return 1.0

    def lead(self, captured: int) -> None:  # noqa: B027  (most models have nothing to learn)
        """Declare this a model of the sample of a capture of ``captured`` pixels; its parts will :meth:`adopt` it."""

    def adopt(self, sample: Model) -> None:  # noqa: B027  (most models measure nothing on the whole capture)
        """Take over measurements for the whole capture from the model of its sample, before anything else."""

    @abstractmethod
    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        """Mean over pixels of the 3 × 3 matrix H in data = nᵀH n − 2 hᵀn + ...: how strongly the photographs
        constrain n; a NumPy array."""

    @abstractmethod
    def alone(self, control: Control) -> Fit:
        """Return the model's minimizer without a prior."""

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        """Return the starting point of block coordinate descent with a prior."""
        fit = self.alone(control)
        return fit.normals, fit.unknowns

    @abstractmethod
    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        """Return the exact minimizer over n of ``data + w |n|² − 2 n·q``, with the unknowns fixed or eliminated.

        ``weight`` (N,) is w and ``pull`` (N, 3) is q; both may have a leading axis of problems.
        """

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array] | None:
        """Return H (N, 6), or (1, 6) if all pixels share it, and h (N, 3) of ``data = nᵀH n − 2 hᵀn + constant`` at fixed
        or eliminated unknowns, which makes constraints on n cheap. H is xx, xy, xz, yy, yz, zz, or (N, 1) for a multiple
        of the identity; None if the cost has another form."""
        return None

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        """Minimize over the model's own unknowns at fixed n, or take a step that does not increase the cost."""
        return unknowns

    @abstractmethod
    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        """Return the data cost, summed over the pixels, as a number or a zero-dimensional array of the same kind."""

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array | None:
        """Return the data cost (N,) of each pixel at its own normals per degree of freedom, comparable with the squared
        noise; None if the model has no such number."""
        return None

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """Return further maps besides the normals: arrays whose first axis is the pixel."""
        return {}

    def albedo(self, normals: Array, unknowns: Unknowns) -> Array | None:
        """Return the albedo (N,) if it is not the length of n, as for a model of unit normals; otherwise None."""
        return None


def pixel_batches(
    count: int, control: Control, stage: str, *, size: int = BATCH
) -> Iterator[slice]:
    """Yield slices that cover ``range(count)``; report the stage and every finished batch to the control."""
    control.stage(stage, count)
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        yield part
        control.advance(part.stop - part.start)
