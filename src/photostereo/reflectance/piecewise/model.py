"""The piecewise-linear model: light · normal is a piecewise-linear curve of a pixel's intensities."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.model import Fit, Model, Unknowns, pixel_batches
from photostereo.reflectance.piecewise.elimination import (
    Reduced,
    constrained_fit,
    eliminate_slopes,
    statistics,
)
from photostereo.runtime.algebra import quadratic_cost, solve_shifted_3x3
from photostereo.runtime.arrays import Array, empty, is_tensor, like, to_numpy
from photostereo.runtime.illumination import gram_of, project, shading, some_lights
from photostereo.runtime.symmetric import mean_symmetric_3x3

Knots = Literal["max", "range"]
#: Pixels from which the uncertainty of the normals is estimated: a median, to about a percent.
SAMPLED = 5000
#: Pixels reduced at once on the processor: tens of milliseconds, and temporaries of a few
#: megabytes.
AT_ONCE = 1 << 16
#: The same for tensors: enough to fill a GPU.
TENSORS_AT_ONCE = 1 << 20


class Curves(NamedTuple):
    """What the photographs are reduced to, for N pixels and p pieces."""

    least_squares: Array  #: (N, 3) normals of the Lambertian model
    normals: Array  #: (N, 3) the model's own, without a prior
    slopes: Array  #: (N, p) of the same solution
    reduced: Reduced  #: the data cost with the slopes eliminated


class Piecewise(Model):
    r"""Piecewise-linear least squares (PLS), the model behind PDLNV.

    .. math:: \min_{n, a} \; \sum_{px} \| C_{px} a_{px} - L^T n_{px} \|^2
              \quad\text{s.t.}\quad 1^T a_{px} = p

    ``C[j, k]`` is the part of intensity j that lies in the k-th of p equal pieces of the pixel's
    range, ``a`` the slopes of the inverse reflectance. In the paper the slopes sum to 1; here they
    sum to p, so that a Lambertian pixel has a = 1 and n = its least-squares solution for every p.
    This is the same problem in other units (n, a, μ times p), and λ and μ keep their meaning when p
    changes.

    Of the photographs, only ``T = CᵀC`` and ``Q = CᵀLᵀ`` are needed. The slopes are eliminated:
    with the constraint as a penalty ``γ (1ᵀa − p)²`` and ``M = T + γ 11ᵀ``,

        a(n) = M⁻¹ (Q n + γ p 1),      data(n) = nᵀH n − 2 hᵀn + κ,
        H = L Lᵀ − Qᵀ M⁻¹ Q,   h = γ p Qᵀ M⁻¹ 1,   κ = γ p² / (1 + γ 1ᵀT⁻¹1),

    so each iteration needs nine numbers per pixel for any d and p. Without a prior the constraint
    is exact: ``S = T − Q (L Lᵀ)⁻¹ Qᵀ``, ``a = p S⁻¹1 / (1ᵀS⁻¹1)``, ``n = (L Lᵀ)⁻¹ Qᵀ a``.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    p : int
        Number of pieces.
    knots : {"max", "range"}
        Where the pieces begin: at zero, or at the pixel's smallest intensity.
    gamma : float
        γ.
    begin : {"pls", "ls"}
        Where a solve with a prior begins: at this model's own solution, or at least squares.
    fall_off : array (N, d), optional
        By which the intensities of near lights were divided, and so was their noise. The fit undoes
        it.

    References
    ----------
    S. Ikehata, D. Wipf, Y. Matsushita, K. Aizawa, Photometric stereo using sparse Bayesian
    regression for general diffuse surfaces, IEEE TPAMI 36(9), 2014, doi:10.1109/TPAMI.2014.2299798;
    and the PDLNV paper.
    """

    scales_noise = True
    bends = True

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        *,
        p: int = 2,
        knots: Knots = "max",
        gamma: float = 1e4,
        begin: Literal["pls", "ls"] = "pls",
        fall_off: NDArray[Any] | None = None,
    ) -> None:
        self._photographs: tuple[Array, Array, NDArray[Any] | None] | None = (
            pixels,
            lights,
            fall_off,
        )
        self._pieces = p
        self._from_minimum = knots == "range"
        self._gamma = gamma
        self._begin = begin
        self._freedom = max(pixels.shape[1] - 2 - p, 1)
        self._reduction: Curves | None = None

    def _curves(self, control: Control = SILENT) -> Curves:
        """Return what the photographs are reduced to, computed on first use.

        After that, the photographs are not needed any more.
        """
        if self._reduction is None:
            assert self._photographs is not None
            self._reduction = self._reduce(*self._photographs, control)
            self._photographs = None
        return self._reduction

    def _reduce(
        self, pixels: Array, lights: Array, fall_off: NDArray[Any] | None, control: Control
    ) -> Curves:
        count = len(pixels)
        p = self._pieces
        curves = Curves(
            least_squares=empty((count, 3), pixels),
            normals=empty((count, 3), pixels),
            slopes=empty((count, p), pixels),
            reduced=Reduced(
                hessian=empty((count, 6), pixels),
                linear=empty((count, 3), pixels),
                constant=empty((count,), pixels),
                slopes_of_normals=empty((count, p, 3), pixels),
                slopes_offset=empty((count, p), pixels),
            ),
        )
        size = TENSORS_AT_ONCE if is_tensor(pixels) else AT_ONCE
        for part in pixel_batches(count, control, "piecewise-linear curves", size=size):
            values = pixels[part]
            own_lights = some_lights(lights, part)
            weights = None if fall_off is None else fall_off[part]
            if weights is not None:
                own_lights = own_lights * weights[:, None]
            # T and Q of a batch are forgotten after it: an iteration needs nine numbers per pixel.
            sums = statistics(values, own_lights, p, self._from_minimum, weights)
            gram = gram_of(own_lights)
            # Least squares and the fallback are also fitted where the noise is uniform.
            if weights is not None:
                values = values * like(weights, values)
            inverse = like(np.linalg.inv(gram), values)
            least_squares = shading(project(values, own_lights), inverse)
            normals, slopes = constrained_fit(sums, gram, least_squares)
            curves.least_squares[part] = least_squares
            curves.normals[part] = normals
            curves.slopes[part] = slopes
            reduced = eliminate_slopes(sums, values, own_lights, gram, self._gamma)
            for whole, batch in zip(curves.reduced, reduced, strict=True):
                whole[part] = batch
        return curves

    @property
    def _reduced(self) -> Reduced:
        return self._curves().reduced

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return mean_symmetric_3x3(self._reduced.hessian)

    def excess_variance(self, unknowns: Unknowns) -> float:
        """Noise passes through the curve, so it is scaled by the slopes; and H varies."""
        step = max(1, len(unknowns["slopes"]) // SAMPLED)
        slopes = to_numpy(unknowns["slopes"][::step])
        entries = to_numpy(self._reduced.hessian[::step])
        hessians = entries[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
        # The confidence radius of a prior assumes the mean Hessian for every pixel.
        of_mean = np.trace(np.linalg.inv(hessians.mean(0)))
        spread = np.trace(np.linalg.pinv(hessians, hermitian=True), axis1=1, axis2=2)
        return float(max(np.median(spread * (slopes**2).mean(1)) / of_mean, 1.0))

    def alone(self, control: Control) -> Fit:
        curves = self._curves(control)
        return Fit(curves.normals, {"slopes": curves.slopes})

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        if self._begin == "pls":
            return super().start(control)
        normals = self._curves(control).least_squares
        return normals, {"slopes": like(np.ones((len(normals), self._pieces)), normals)}

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return solve_shifted_3x3(self._reduced.hessian, weight, self._reduced.linear + pull)

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return self._reduced.hessian, self._reduced.linear

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        of_normals = self._reduced.slopes_of_normals
        n = normals[..., None]  # broadcasts with the p slopes
        # Three products, not an einsum: the arrays are narrow, and problems may have an axis.
        slopes = of_normals[:, :, 0] * n[..., 0, :] + of_normals[:, :, 1] * n[..., 1, :]
        slopes += of_normals[:, :, 2] * n[..., 2, :]
        slopes += self._reduced.slopes_offset
        return {"slopes": slopes}

    def _costs(self, normals: Array) -> Array:
        # The cost at the best slopes for these normals, which update_unknowns always provides.
        return quadratic_cost(
            self._reduced.hessian, self._reduced.linear, self._reduced.constant, normals
        )

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._costs(normals).sum(-1)

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._costs(normals).clip(0.0) / self._freedom

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``slopes`` (N, p): the slopes of the curve, from dark to bright."""
        return {"slopes": unknowns["slopes"]}
