"""Bivariate inverse reflectance: light · normal as a monotone function of intensity and of light ·
view.
"""

from __future__ import annotations

import itertools
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.core.conventions import Float64
from photostereo.core.errors import ParameterError
from photostereo.reflectance.bivariate import kernels
from photostereo.reflectance.model import Fit, Model, Unknowns, pixel_batches
from photostereo.runtime.algebra import quadratic_form, solve_shifted_3x3
from photostereo.runtime.arrays import Array
from photostereo.runtime.illumination import for_loops, least_squares, some_lights
from photostereo.runtime.symmetric import mean_symmetric_3x3

Slope = Literal["rising", "falling", "free"]
Total = Literal["sum", "top"]

#: Ridge on T relative to its trace: it determines pixels whose polynomials are seen by too few
#: photographs.
RIDGE = 1e-12
#: Pixels per batch: a few milliseconds of work.
BATCH = 1 << 16
#: Maximum orders; the cone of (8, 2) already has 164 generators.
LARGEST_ORDERS = (8, 2)


class Bivariate(Model):
    r"""Constrained bivariate regression (CBR), after Ikehata and Aizawa (2014): a reimplementation.

    .. math:: \min_{n, a} \; \sum_{px} \| \Phi_{px} a_{px} - L^T n_{px} \|^2
              \quad\text{s.t.}\quad a_{px} \text{ monotone}, \; c^T a_{px} = 1

    ``Φ a`` is a polynomial g(I / Imax, t) of two variables in Bernstein form, of orders (N1, N2): I
    the intensity, t the cosine between light and view, rescaled to [0, 1] over the lights. ``g(0,
    t) = 0`` (no coefficient of index 0), and the coefficients do not decrease with the intensity,
    nor with t (``slope="rising"``).

    The normal is eliminated, ``n = A⁻¹Qᵀa`` with ``A = L Lᵀ``, ``Q = ΦᵀLᵀ``, which leaves ``aᵀS a``
    with ``S = ΦᵀΦ − Q A⁻¹ Qᵀ``. Monotone coefficients are ``a = Gᵀw, w ≥ 0``, where the rows of G
    are the upper sets of the grid (:func:`monotone_cone`), so each pixel is one small non-negative
    least-squares problem, solved to its optimality conditions. The constraint is scaled such that a
    Lambertian pixel gets its least-squares normal.

    With a prior, the constraint is a penalty ``γ (cᵀa − 1)²``; n and a are updated alternately,
    each exactly.

    The authors' orders, thresholds and scaling of the constraint are not published in full;
    ``python -m benchmarks.rivals`` compares variants with their published normal maps.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 30)) + [[0], [0], [3]]
    >>> L /= np.linalg.norm(L, axis=0)
    >>> n = np.array([[0.1, 0.2, 0.9]])
    >>> gamma_curve = np.sqrt(n @ L)  # l·n is the square of the intensity, up to its scale: of order (2, 0)
    >>> found = Bivariate(gamma_curve, L).alone(Control()).normals
    >>> bool(np.allclose(found / np.linalg.norm(found), n / np.linalg.norm(n), atol=1e-6))
    True
    """

    bends = True

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        *,
        orders: tuple[int, int] = (2, 1),
        slope: Slope = "rising",
        total: Total = "sum",
        shadow: float = 0.0,
        gamma: float = 1e4,
    ) -> None:
        first, second = _checked_orders(orders)
        count = len(pixels)
        width = second + 1
        size = first * width
        self._gamma = gamma
        self._cone = monotone_cone(first, width, slope)
        self._total = np.ones(size)
        if total == "top":
            self._total[:-width] = 0.0
        # The coefficients of the identity g(x, t) = x are i / N1; with this unit they satisfy the
        # constraint.
        unit = float(self._total @ np.repeat(np.arange(1, first + 1) / first, width))
        self._gram = np.empty((count, size, size))
        self._cross = np.empty((count, size, 3))
        self._lights_gram = np.empty((count, 6))
        self._usable = np.empty(count, dtype=np.bool_)
        directions = for_loops(lights)
        basis = np.ascontiguousarray(
            bernstein_basis(second, _rescaled(directions[:, 2])).swapaxes(1, 2)
        )
        sums = self._gram, self._cross, self._lights_gram, self._usable
        kernels.statistics(
            np.ascontiguousarray(pixels), directions, basis, first, shadow, unit, *sums
        )
        self._least_squares = np.zeros((count, 3))
        untold = ~self._usable
        if untold.any():
            self._least_squares[untold] = least_squares(pixels[untold], some_lights(lights, untold))

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return mean_symmetric_3x3(self._lights_gram)

    def alone(self, control: Control) -> Fit:
        count, size = self._cross.shape[:2]
        normals = np.empty((count, 3))
        coefficients = np.empty((count, size))
        for part in pixel_batches(count, control, "bivariate regression", size=BATCH):
            sums = self._gram[part], self._cross[part], self._lights_gram[part]
            own = self._least_squares[part], self._usable[part]
            answers = normals[part], coefficients[part]
            kernels.constrained_fit(*sums, self._cone, self._total, *own, RIDGE, *answers)
        return Fit(normals, {"coefficients": coefficients})

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        right = np.einsum("npk,np->nk", self._cross, unknowns["coefficients"]) + pull
        return solve_shifted_3x3(self._lights_gram, weight, right)

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        coefficients = np.empty(self._cross.shape[:2])
        normals = np.ascontiguousarray(normals, dtype=np.float64)
        kernels.update_coefficients(
            self._gram,
            self._cross,
            self._cone,
            self._total,
            normals,
            self._gamma,
            self._usable,
            coefficients,
        )
        return {"coefficients": coefficients}

    def cost(self, normals: Array, unknowns: Unknowns) -> float:
        a = unknowns["coefficients"]
        shading = quadratic_form(self._lights_gram, normals)
        mixed = np.einsum("np,npk,nk->n", a, self._cross, normals)
        own = np.einsum("np,npq,nq->n", a, self._gram, a)
        penalty = np.where(self._usable, self._gamma * (a @ self._total - 1.0) ** 2, 0.0)
        return float((own - 2.0 * mixed + shading + penalty).sum())

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``coefficients`` (N, N1 (N2 + 1)) of the Bernstein polynomials, intensity index slowest."""
        return {"coefficients": unknowns["coefficients"]}


def _checked_orders(orders: tuple[int, int]) -> tuple[int, int]:
    if len(orders) != 2 or not (
        1 <= orders[0] <= LARGEST_ORDERS[0] and 0 <= orders[1] <= LARGEST_ORDERS[1]
    ):
        text = "The orders are two whole numbers: from 1 to {} for the intensity, from 0 to {} for the angle."
        raise ParameterError(text.format(*LARGEST_ORDERS), code="bad-orders", orders=orders)
    return int(orders[0]), int(orders[1])


def _rescaled(cosines: Float64) -> Float64:
    """Rescale to [0, 1] along the last axis; zero if all lights have the same angle to the view."""
    spread = np.ptp(cosines, axis=-1, keepdims=True)
    return np.asarray(
        (cosines - cosines.min(axis=-1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    )


def bernstein_basis(order: int, x: Float64) -> Float64:
    """Evaluate the order + 1 Bernstein polynomials at x in [0, 1], one per column (the last axis)."""
    return np.stack(
        [comb(order, k) * x**k * (1 - x) ** (order - k) for k in range(order + 1)], axis=-1
    )


def monotone_cone(first: int, second: int, along: Slope) -> Float64:
    """Generators (rows) of the cone of coefficient grids ``first × second`` that are monotone.

    Non-negative grids that do not decrease along either index are the non-negative combinations of
    the indicators of the non-empty upper sets: each is a staircase, one threshold per column. Along
    the second index the coefficients may instead decrease, or be free.

    >>> monotone_cone(2, 1, "rising")
    array([[1., 1.],
           [0., 1.]])
    """
    rows = []
    for thresholds in itertools.product(range(first + 1), repeat=second):
        steps = np.diff(thresholds)
        if (along == "rising" and (steps > 0).any()) or (along == "falling" and (steps < 0).any()):
            continue
        if along == "free" and sum(t < first for t in thresholds) != 1:
            continue
        if min(thresholds) == first:
            continue
        rows.append(
            (np.arange(first)[:, None] >= np.array(thresholds)[None, :]).astype(float).ravel()
        )
    return np.array(rows)
