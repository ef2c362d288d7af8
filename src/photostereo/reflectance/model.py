"""The interface of a reflectance model.

Every method minimizes

    Σ_pixels data(n_px, u_px)  +  prior(n, s)

over the scaled normals n = albedo × normal (N × 3), the model's own unknowns u and, with a prior,
the prior's unknowns s. With s fixed, the prior is bounded by a separate term for each pixel
(:mod:`photostereo.priors.protocol`):

    w |n|² − 2 n·q + constant.

So the descent treats each pixel alone: the model gets (w, q) and returns the exact minimizer over
its own pixel. Normals of neighbors never enter it.

A model may need more than the intensities of a pixel, such as a noise level or a correction that
depends on the shape of the whole object. All of it is gathered before the descent, in two steps:

1. :meth:`Model.survey` looks at the whole object once and returns frozen :class:`Facts`;
2. the model is built from pixels and the facts about them, ``facts.at(rows, columns)``.

A capture that fits into memory needs no survey: its pixels are the whole object. A larger one is
surveyed, a sample of it is solved, and the bands are built with the facts of the sample's model
(:meth:`Model.facts`).

A new model is one folder with a subclass of :class:`Model` and one registry line, and works with
every prior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Indices
from photostereo.runtime.arrays import Array

#: Pixels per batch of a compiled loop: a few milliseconds of work, so that progress can be
#: reported.
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


@dataclass(frozen=True, eq=False)
class Overview:
    """A whole object in small photographs, for :meth:`Model.survey`."""

    pixels: Array  #: (N, d) intensities of order one, of the pixels in ``mask``
    lights: NDArray[Any]  #: (3, d), or (N, 3, d) for near lights
    mask: BoolArray  #: (h, w) of the small photographs
    full_mask: BoolArray  #: (H, W) of the photographs in full size
    colors: Array | None = None  #: (N, d, 3), if the photographs have colors


@dataclass(frozen=True)
class Facts:
    """What the models of parts of an object must know of the whole. Subclasses add the fields."""

    def at(self, rows: Indices, columns: Indices) -> Self:
        """Return the facts about some pixels of the photographs in full size."""
        return self


class Model(ABC):
    """Interface of a reflectance model for :class:`~photostereo.solver.problem.Problem`.

    A model is built from ``(pixels, lights, **parameters)``: (N, d) intensities of order one, and
    unit lights as columns, (3, d) shared by all pixels or (N, 3, d) per pixel, with the view
    direction (0, 0, 1) in either case (:mod:`photostereo.runtime.illumination` has the products).
    The constructor only stores its inputs or reduces them in a few passes; work that takes longer
    belongs in :meth:`alone` and :meth:`start`, which can be canceled. One of the two is called
    before any other method.

    Four members are required: :meth:`alone`, :meth:`update_normals`, :meth:`cost` and
    :meth:`mean_hessian`. The defaults of the others suit a model without unknowns of its own. The
    module docstring explains the symbols.
    """

    #: Whether its normals respond to noise in a way specific to the model, which must be measured:
    #: see :mod:`photostereo.solver.confidence_ball`.
    bends: ClassVar[bool] = False
    #: Whether :attr:`noise` and :meth:`misfit` refer to the components of the normals, not to
    #: intensities.
    noise_is_of_normals: ClassVar[bool] = False
    #: Whether each pixel has its own curve, which scales its intensities and their noise
    #: differently from its neighbors'.
    scales_noise: ClassVar[bool] = False
    #: Whether its maps have a value for every photograph; bands skip such maps.
    maps_photographs: ClassVar[bool] = False

    @classmethod
    def survey(cls, overview: Overview, control: Control, **parameters: Any) -> Facts | None:
        """Look at the whole object once, before models of its parts are built.

        Parameters
        ----------
        overview : Overview
            The object in small photographs.
        control : Control
            Progress and cancellation.
        **parameters
            Those of the model.

        Returns
        -------
        Facts or None
            Passed on, as the keyword ``facts``, to the models of parts of the object. An entry
            whose ``sees`` does not contain ``"facts"`` is not asked. By default none.
        """
        return None

    def facts(self, control: Control) -> Facts | None:
        """Return what the bands of a capture must know from the model of its sample.

        By default that is nothing.
        """
        return None

    @property
    def noise(self) -> float | None:
        """Noise of one intensity as the model sees it; if None, that of least squares is estimated."""
        return None

    def excess_variance(self, unknowns: Unknowns) -> float:
        """Return how much more variance the normals have than those of least squares.

        The latter is that with the model's mean Hessian, σ² H⁻¹.
        """
        return 1.0

    @abstractmethod
    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        """Return the mean over pixels of the 3 × 3 matrix H in data = nᵀH n − 2 hᵀn + ...

        It says how strongly the photographs constrain n; a NumPy array.
        """

    @abstractmethod
    def alone(self, control: Control) -> Fit:
        """Return the model's minimizer without a prior."""

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        """Return the starting point of block coordinate descent with a prior."""
        fit = self.alone(control)
        return fit.normals, fit.unknowns

    @abstractmethod
    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        """Return the exact minimizer over n of ``data + w |n|² − 2 n·q``.

        The unknowns are fixed or eliminated.

        Parameters
        ----------
        unknowns : dict of str to array
            The model's own.
        weight : array (N,)
            w; it may have a leading axis of problems.
        pull : array (N, 3)
            q; likewise.

        Returns
        -------
        array (N, 3)
        """

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array] | None:
        """Return H and h of ``data = nᵀH n − 2 hᵀn + constant``, if the cost has this form.

        The unknowns are fixed or eliminated.

        With it, constraints on n are cheap. H is (N, 6) as xx, xy, xz, yy, yz, zz, or (1, 6) if all
        pixels share it, or (N, 1) for a multiple of the identity; h is (N, 3). None if the cost has
        another form.
        """
        return None

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        """Minimize over the model's own unknowns at fixed n.

        A step that does not increase the cost is enough.
        """
        return unknowns

    @abstractmethod
    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        """Return the data cost, summed over the pixels.

        A number, or a zero-dimensional array of the same kind as the normals.
        """

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array | None:
        """Return the data cost (N,) of each pixel per degree of freedom.

        It is that at the pixel's own normals, comparable with the squared noise. None if the model
        has no such number.
        """
        return None

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """Return further maps besides the normals: arrays whose first axis is the pixel."""
        return {}

    def albedo(self, normals: Array, unknowns: Unknowns) -> Array | None:
        """Return the albedo (N,) if it is not the length of n, as for unit normals.

        By default it is, and the result is None.
        """
        return None


def pixel_batches(
    count: int, control: Control, stage: str, *, size: int = BATCH
) -> Iterator[slice]:
    """Yield slices that cover ``range(count)``.

    Report the stage and every finished batch to the control.

    Parameters
    ----------
    count : int
        Number of pixels.
    control : Control
        Progress and cancellation.
    stage : str
        Name of the stage.
    size : int
        Pixels per batch.
    """
    control.stage(stage, count)
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        yield part
        control.advance(part.stop - part.start)
