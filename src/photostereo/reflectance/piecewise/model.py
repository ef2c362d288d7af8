"""The piecewise-linear model: light · normal is a piecewise-linear, roughly monotone curve of a
pixel's intensities.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.reflectance.piecewise.elimination import (
    constrained_fit,
    eliminate_slopes,
    statistics,
)
from photostereo.runtime.algebra import quadratic_cost, solve_shifted_3x3
from photostereo.runtime.arrays import Array, like, to_numpy
from photostereo.runtime.illumination import gram_of, project, shading
from photostereo.runtime.symmetric import mean_symmetric_3x3

Knots = Literal["max", "range"]
#: Number of pixels from which the uncertainty of the normals is estimated.
SAMPLED = 5000


class Piecewise(Model):
    r"""Piecewise-linear least squares (PLS), the model behind PDLNV.

    .. math:: \min_{n, a} \; \sum_{px} \| C_{px} a_{px} - L^T n_{px} \|^2 \quad\text{s.t.}\quad 1^T a_{px} = p

    ``C[j, k]`` is the part of intensity j that lies in the k-th of p equal pieces of the pixel's
    range, ``a`` the slopes of the inverse reflectance. In the paper the slopes sum to 1; here they
    sum to p, so that a Lambertian pixel has a = 1 and n = its least-squares solution for every p.
    This is the same problem in other units (n, a, μ times p), and λ and μ keep their meaning when p
    changes.

    Of the photographs, only ``T = CᵀC`` and ``Q = CᵀLᵀ`` are kept. The slopes are eliminated: with
    the constraint as a penalty ``γ (1ᵀa − p)²`` and ``M = T + γ 11ᵀ``,

        a(n) = M⁻¹ (Q n + γ p 1),      data(n) = nᵀH n − 2 hᵀn + κ,
        H = L Lᵀ − Qᵀ M⁻¹ Q,   h = γ p Qᵀ M⁻¹ 1,   κ = γ p² / (1 + γ 1ᵀT⁻¹1),

    so each iteration needs nine numbers per pixel for any d and p. Without a prior the constraint
    is exact: ``S = T − Q (L Lᵀ)⁻¹ Qᵀ``, ``a = p S⁻¹1 / (1ᵀS⁻¹1)``, ``n = (L Lᵀ)⁻¹ Qᵀ a``.

    References
    ----------
    S. Ikehata, D. Wipf, Y. Matsushita, K. Aizawa, Photometric stereo using sparse Bayesian
    regression for general diffuse surfaces, IEEE TPAMI 36(9), 2014, doi:10.1109/TPAMI.2014.2299798;
    and the PDLNV paper."""

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
        self._begin = begin
        self._pieces = p
        self._freedom = max(pixels.shape[1] - 2 - p, 1)
        if fall_off is not None:  # intensities were divided by it, and so was their noise
            lights = lights * fall_off[:, None]
        sums = statistics(pixels, lights, p, knots == "range", fall_off)
        lights_gram = gram_of(lights)
        if fall_off is not None:
            pixels = pixels * like(fall_off, pixels)
        self._least_squares = shading(
            project(pixels, lights), like(np.linalg.inv(lights_gram), pixels)
        )
        self._own = constrained_fit(sums, lights_gram, self._least_squares)
        self._reduced = eliminate_slopes(sums, pixels, lights, lights_gram, gamma)

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return mean_symmetric_3x3(self._reduced.hessian)

    def excess_variance(self, unknowns: Unknowns) -> float:
        """Noise passes through the curve, so it is scaled by the slopes; and H differs between
        pixels.
        """
        step = max(1, len(unknowns["slopes"]) // SAMPLED)
        slopes = to_numpy(unknowns["slopes"][::step])
        hessians = to_numpy(self._reduced.hessian[::step])[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(
            -1, 3, 3
        )
        mean = hessians.mean(0)
        spread = np.trace(np.linalg.pinv(hessians, hermitian=True), axis1=1, axis2=2)
        own = np.median(spread * (slopes**2).mean(1)) / np.trace(np.linalg.inv(mean))
        return float(max(own, 1.0))

    def alone(self, control: Control) -> Fit:
        return Fit(self._own[0], {"slopes": self._own[1]})

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        if self._begin == "pls":
            return super().start(control)
        normals = self._least_squares
        return normals, {"slopes": like(np.ones((len(normals), self._pieces)), normals)}

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return solve_shifted_3x3(self._reduced.hessian, weight, self._reduced.linear + pull)

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return self._reduced.hessian, self._reduced.linear

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        # broadcasts with the p slopes
        of_normals = self._reduced.slopes_of_normals
        n = normals[..., None]
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
        return {"slopes": unknowns["slopes"]}
