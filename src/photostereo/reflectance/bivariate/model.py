"""Bivariate inverse reflectance: light · normal as a function of intensity and of light · view."""

from __future__ import annotations

import itertools
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float64
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
#: Pixels per batch: a few hundredths of a second of work.
AT_ONCE = 1 << 16
#: Maximum orders; the cone of (8, 2) already has 164 generators.
LARGEST_ORDERS = (8, 2)


class Sums(NamedTuple):
    """Sums over the lit photographs of N pixels, with M coefficients each."""

    gram: Float64  #: (N, M, M) ``T = ΦᵀΦ``
    cross: Float64  #: (N, M, 3) ``Q = ΦᵀLᵀ``
    lights_gram: Float64  #: (N, 6) ``A = L Lᵀ`` as xx, xy, xz, yy, yz, zz
    usable: BoolArray  #: (N,) False if the curve cannot be determined
    least_squares: Float64  #: (N, 3) normals of the pixels that are not usable


class Bivariate(Model):
    r"""Constrained bivariate regression (CBR), after Ikehata and Aizawa (2014): a reimplementation.

    .. math:: \min_{n, a} \; \sum_{px} \| \Phi_{px} a_{px} - L^T n_{px} \|^2
              \quad\text{s.t.}\quad a_{px} \text{ monotone}, \; c^T a_{px} = 1

    ``Φ a`` is a polynomial g(I / Imax, t) of two variables in Bernstein form, of orders (N1, N2): I
    the intensity, t the cosine between light and view, rescaled to [0, 1] over the lights.
    ``g(0, t) = 0`` (no coefficient of index 0), and the coefficients do not decrease with the
    intensity, nor with t (``slope="rising"``).

    The normal is eliminated, ``n = A⁻¹Qᵀa`` with ``A = L Lᵀ``, ``Q = ΦᵀLᵀ``, which leaves ``aᵀS a``
    with ``S = ΦᵀΦ − Q A⁻¹ Qᵀ``. Monotone coefficients are ``a = Gᵀw, w ≥ 0``, where the rows of G
    are the upper sets of the grid (:func:`monotone_cone`), so each pixel is one small non-negative
    least-squares problem, solved to its optimality conditions. The constraint is scaled such that a
    Lambertian pixel gets its least-squares normal.

    With a prior, the constraint is a penalty ``γ (cᵀa − 1)²``; n and a are updated alternately,
    each exactly.

    The authors' orders, thresholds and scaling of the constraint are not published in full;
    ``python -m benchmarks.rivals`` compares variants with their published normal maps.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    orders : tuple of two int
        (N1, N2).
    slope : {"rising", "falling", "free"}
        How the coefficients may change with t.
    total : {"sum", "top"}
        c: all coefficients, or those of the largest intensity.
    shadow : float
        Entries darker than this share of their pixel's maximum are left out.
    gamma : float
        γ.

    References
    ----------
    S. Ikehata, K. Aizawa, Photometric stereo using constrained bivariate regression for general
    isotropic surfaces, CVPR 2014, doi:10.1109/CVPR.2014.280.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 30)) + [[0], [0], [3]]
    >>> L /= np.linalg.norm(L, axis=0)
    >>> n = np.array([[0.1, 0.2, 0.9]])
    >>> gamma_curve = np.sqrt(n @ L)  # l·n is the square of the intensity: of order (2, 0)
    >>> estimate = Bivariate(gamma_curve, L).alone(Control()).normals
    >>> bool(np.allclose(estimate / np.linalg.norm(estimate), n / np.linalg.norm(n), atol=1e-6))
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
        width = second + 1
        self._photographs: tuple[Array, Array] | None = (pixels, lights)
        self._first = first
        self._second = second
        self._shadow = shadow
        self._gamma = gamma
        self._cone = monotone_cone(first, width, slope)
        self._total = np.ones(first * width)
        if total == "top":
            self._total[:-width] = 0.0
        # The coefficients of the identity g(x, t) = x are i / N1; with this unit they satisfy the
        # constraint.
        identity = np.repeat(np.arange(1, first + 1) / first, width)
        self._unit = float(self._total @ identity)
        self._reduction: Sums | None = None

    def _sums(self, control: Control = SILENT) -> Sums:
        """Return the sums, computed on first use; then the photographs are not needed any more."""
        if self._reduction is None:
            assert self._photographs is not None
            self._reduction = self._reduce(*self._photographs, control)
            self._photographs = None
        return self._reduction

    def _reduce(self, pixels: Array, lights: Array, control: Control) -> Sums:
        count = len(pixels)
        size = len(self._total)
        sums = Sums(
            gram=np.empty((count, size, size)),
            cross=np.empty((count, size, 3)),
            lights_gram=np.empty((count, 6)),
            usable=np.empty(count, dtype=np.bool_),
            least_squares=np.zeros((count, 3)),
        )
        directions = for_loops(lights)
        basis = bernstein_basis(self._second, _rescaled(directions[:, 2])).swapaxes(1, 2)
        basis = np.ascontiguousarray(basis)
        # Distant lights are the same for every batch.
        distant = len(directions) == 1
        for part in pixel_batches(count, control, "reflectance curves", size=AT_ONCE):
            kernels.statistics(
                np.ascontiguousarray(pixels[part]),
                directions if distant else directions[part],
                basis if distant else basis[part],
                self._first,
                self._shadow,
                self._unit,
                sums.gram[part],
                sums.cross[part],
                sums.lights_gram[part],
                sums.usable[part],
            )
        # Few pixels: those without light, without range, or with too few lit photographs.
        undetermined = ~sums.usable
        if undetermined.any():
            sums.least_squares[undetermined] = least_squares(
                pixels[undetermined], some_lights(lights, undetermined)
            )
        return sums

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return mean_symmetric_3x3(self._sums().lights_gram)

    def alone(self, control: Control) -> Fit:
        sums = self._sums(control)
        count, size = sums.cross.shape[:2]
        normals = np.empty((count, 3))
        coefficients = np.empty((count, size))
        for part in pixel_batches(count, control, "bivariate regression", size=AT_ONCE):
            kernels.constrained_fit(
                sums.gram[part],
                sums.cross[part],
                sums.lights_gram[part],
                self._cone,
                self._total,
                sums.least_squares[part],
                sums.usable[part],
                RIDGE,
                normals[part],
                coefficients[part],
            )
        return Fit(normals, {"coefficients": coefficients})

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        sums = self._sums()
        # At fixed coefficients the cost is quadratic in n, with A as its Hessian.
        right = np.einsum("npk,np->nk", sums.cross, unknowns["coefficients"]) + pull
        return solve_shifted_3x3(sums.lights_gram, weight, right)

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        sums = self._sums()
        coefficients = np.empty(sums.cross.shape[:2])
        kernels.update_coefficients(
            sums.gram,
            sums.cross,
            self._cone,
            self._total,
            np.ascontiguousarray(normals, dtype=np.float64),
            self._gamma,
            sums.usable,
            coefficients,
        )
        return {"coefficients": coefficients}

    def cost(self, normals: Array, unknowns: Unknowns) -> float:
        sums = self._sums()
        a = unknowns["coefficients"]
        shading = quadratic_form(sums.lights_gram, normals)
        mixed = np.einsum("np,npk,nk->n", a, sums.cross, normals)
        curve = np.einsum("np,npq,nq->n", a, sums.gram, a)
        penalty = np.where(sums.usable, self._gamma * (a @ self._total - 1.0) ** 2, 0.0)
        return float((curve - 2.0 * mixed + shading + penalty).sum())

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``coefficients`` (N, N1 (N2 + 1)) of the Bernstein polynomials, intensity index slowest."""
        return {"coefficients": unknowns["coefficients"]}


def _checked_orders(orders: tuple[int, int]) -> tuple[int, int]:
    largest_first, largest_second = LARGEST_ORDERS
    if (
        len(orders) != 2
        or not 1 <= orders[0] <= largest_first
        or not 0 <= orders[1] <= largest_second
    ):
        raise ParameterError(
            f"The orders are two whole numbers: from 1 to {largest_first} for the intensity, "
            f"from 0 to {largest_second} for the angle.",
            code="bad-orders",
            orders=orders,
        )
    first, second = orders
    return int(first), int(second)


def _rescaled(cosines: Float64) -> Float64:
    """Rescale to [0, 1] along the last axis; zero if all lights have the same angle to the view."""
    lowest = cosines.min(axis=-1, keepdims=True)
    spread = np.ptp(cosines, axis=-1, keepdims=True)
    return np.asarray((cosines - lowest) / np.where(spread > 0, spread, 1.0))


def bernstein_basis(order: int, x: Float64) -> Float64:
    """Evaluate the order + 1 Bernstein polynomials at x in [0, 1]; they are the last axis."""
    columns = [comb(order, k) * x**k * (1 - x) ** (order - k) for k in range(order + 1)]
    return np.stack(columns, axis=-1)


def monotone_cone(first: int, second: int, along: Slope) -> Float64:
    """Return generators (rows) of the cone of monotone coefficient grids.

    Non-negative grids that do not decrease along either index are the non-negative combinations of
    the indicators of the non-empty upper sets: each is a staircase, one threshold per column.

    Parameters
    ----------
    first, second : int
        Size of the grid.
    along : {"rising", "falling", "free"}
        How the coefficients may change along the second index.

    Examples
    --------
    >>> monotone_cone(2, 1, "rising")
    array([[1., 1.],
           [0., 1.]])
    """
    rows = []
    for thresholds in itertools.product(range(first + 1), repeat=second):
        # The empty set is no generator: its coefficients are all zero.
        if min(thresholds) < first and _allowed(thresholds, first, along):
            inside = np.arange(first)[:, None] >= np.array(thresholds)[None, :]
            rows.append(inside.astype(float).ravel())
    return np.array(rows)


def _allowed(thresholds: tuple[int, ...], empty: int, along: Slope) -> bool:
    """Return whether a staircase is monotone along the columns.

    ``empty`` is the threshold of an empty column.
    """
    steps = np.diff(thresholds)
    if along == "rising":
        return not (steps > 0).any()
    if along == "falling":
        return not (steps < 0).any()
    return sum(threshold < empty for threshold in thresholds) == 1
