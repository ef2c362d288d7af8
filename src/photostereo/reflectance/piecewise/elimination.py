"""Statistics of the piecewise-linear model in one pass, and elimination of its slopes.

Both work on NumPy arrays and torch tensors, in double precision. The elimination runs once per
capture, so every line processes many pixels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.algebra import dot, value_range
from photostereo.runtime.arrays import (
    Array,
    contiguous,
    empty,
    is_tensor,
    like,
    namespace,
    tensor_batches,
)
from photostereo.runtime.illumination import for_loops, project, some_lights, squared_lengths
from photostereo.runtime.loops import njit, shared

#: Ridge on T relative to its trace: it determines pixels whose pieces are seen by too few
#: photographs. A factor of ten either way changes normals by less than a thousandth of a degree.
RIDGE = 1e-9


class PiecewiseStatistics(NamedTuple):
    """Statistics that the model keeps of the photographs, for N pixels and p pieces."""

    gram: Array  #: (N, p, p) ``T = CᵀC``
    cross: Array  #: (N, p, 3) ``Q = CᵀLᵀ``
    #: (N,) False if the curve cannot be determined (no intensity, or no range); then a = 1, which
    #: is the Lambertian model
    usable: Array


class Reduced(NamedTuple):
    """The data cost with the slopes eliminated: nᵀH n − 2 hᵀn + κ, and a = K n + k."""

    hessian: Array  #: (N, 6) H as xx, xy, xz, yy, yz, zz
    linear: Array  #: (N, 3) h
    constant: Array  #: (N,) κ
    slopes_of_normals: Array  #: (N, p, 3) K
    slopes_offset: Array  #: (N, p) k


def eliminate_slopes(
    stats: PiecewiseStatistics,
    pixels: Array,
    lights: NDArray[Any],
    lights_gram: NDArray[Any],
    gamma: float,
) -> Reduced:
    """Eliminate the slopes by minimization; the remaining cost is quadratic in n.

    Parameters
    ----------
    stats : PiecewiseStatistics
        Of N pixels.
    pixels : array (N, d)
        Their intensities, for the Lambertian model of pixels whose curve cannot be determined.
    lights : array (3, d) or (N, 3, d)
        Unit lights, times the fall-off.
    lights_gram : array (3, 3) or (N, 3, 3)
        L Lᵀ.
    gamma : float
        γ of :class:`.model.Piecewise`.
    """
    xp = namespace(stats.gram)
    p = stats.gram.shape[1]
    usable = stats.usable
    rows, cols = np.triu_indices(3)
    lights_gram = like(lights_gram, stats.gram)
    # T⁻¹Q and T⁻¹1 with one factorization.
    right = xp.concatenate([stats.cross, xp.ones_like(stats.cross[:, :, :1])], 2)
    X = cholesky_solve(_or_identity(stats.gram, usable), right)
    # Invert M = T + γ 11ᵀ by Sherman-Morrison: a matrix with both γ and the ridge would have the
    # condition γ / ridge. H stays positive semidefinite up to rounding.
    sums = X[:, :, :3].sum(1)
    total = X[:, :, 3].sum(1)
    share = gamma / (1.0 + gamma * total)
    offset = (share * p)[:, None] * X[:, :, 3]
    slope = X[:, :, :3] - (share[:, None] * X[:, :, 3])[:, :, None] * sums[:, None, :]
    linear = (share * p)[:, None] * sums
    hessian = lights_gram + share[:, None, None] * sums[:, :, None] * sums[:, None, :]
    hessian = hessian - stats.cross.swapaxes(1, 2) @ X[:, :, :3]
    # If the curve cannot be determined, use the Lambertian model: a = 1.
    hessian = xp.where(usable[:, None, None], hessian, lights_gram)[:, rows, cols]
    return Reduced(
        hessian=contiguous(hessian),
        linear=xp.where(usable[:, None], linear, project(pixels, lights)),
        constant=xp.where(usable, share * p * p, squared_lengths(pixels)),
        slopes_of_normals=slope * usable[:, None, None],
        slopes_offset=xp.where(usable[:, None], offset, xp.ones_like(offset)),
    )


def constrained_fit(
    stats: PiecewiseStatistics, lights_gram: NDArray[Any], fallback: Array
) -> tuple[Array, Array]:
    """Fit normals (N, 3) and slopes (N, p) with the exact constraint 1ᵀa = p.

    Parameters
    ----------
    stats : PiecewiseStatistics
        Of N pixels.
    lights_gram : array (3, 3) or (N, 3, 3)
        L Lᵀ.
    fallback : array (N, 3)
        Normals of pixels whose curve cannot be determined.
    """
    xp = namespace(stats.gram)
    p = stats.gram.shape[1]
    usable = stats.usable[:, None]
    projected = stats.cross @ like(np.linalg.inv(lights_gram), stats.cross)
    # S is what remains of T when the normal follows the slopes.
    S = stats.gram - projected @ stats.cross.swapaxes(1, 2)
    X = cholesky_solve(_or_identity(S, stats.usable), xp.ones_like(S[:, :, :1]))[:, :, 0]
    slopes = p * X / X.sum(1)[:, None]
    normals = (projected * slopes[:, :, None]).sum(1)
    return xp.where(usable, normals, fallback), xp.where(usable, slopes, xp.ones_like(slopes))


def cholesky_solve(A: Array, B: Array) -> Array:
    """Solve A X = B for many small systems: A (n, p, p) symmetric positive definite, B (n, p, c).

    It takes p steps each way. A pivot that rounding made negative is lifted to 1e-300.
    """
    A = A + 0.0
    X = B + 0.0
    p = A.shape[1]
    for k in range(p):
        A[:, k:, k] -= (A[:, k:, :k] * A[:, k, None, :k]).sum(2)
        A[:, k, k] = A[:, k, k].clip(1e-300) ** 0.5
        A[:, k + 1 :, k] /= A[:, k, k, None]
    for k in range(p):
        X[:, k] -= (A[:, k, :k, None] * X[:, :k]).sum(1)
        X[:, k] /= A[:, k, k, None]
    for k in reversed(range(p)):
        X[:, k] -= (A[:, k + 1 :, k, None] * X[:, k + 1 :]).sum(1)
        X[:, k] /= A[:, k, k, None]
    return X


def _or_identity(matrices: Array, usable: Array) -> Array:
    identity = like(np.eye(matrices.shape[1]), matrices)
    return namespace(matrices).where(usable[:, None, None], matrices, identity)


def statistics(
    pixels: Array,
    lights: NDArray[Any],
    p: int,
    from_minimum: bool = False,
    weights: NDArray[Any] | None = None,
) -> PiecewiseStatistics:
    """Compute T = CᵀC and Q = CᵀLᵀ of every pixel, in double precision.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities.
    lights : array (3, d) or (N, 3, d)
        Unit lights, times the weights.
    p : int
        Number of pieces.
    from_minimum : bool
        Whether the pieces begin at the pixel's smallest intensity instead of zero.
    weights : array (N, d), optional
        Multiply C.
    """
    count = len(pixels)
    if weights is None:
        weights = np.zeros((0, 0), np.float32)
    gram = empty((count, p, p), pixels)
    cross = empty((count, p, 3), pixels)
    usable = empty((count,), pixels, "bool")
    if is_tensor(pixels):
        _statistics_of_tensors(pixels, lights, p, from_minimum, weights, gram, cross, usable)
    else:
        _statistics(pixels, for_loops(lights), p, from_minimum, weights, gram, cross, usable)
    return PiecewiseStatistics(gram, cross, usable)


def _statistics_of_tensors(
    pixels: Any,
    lights: NDArray[Any],
    p: int,
    from_minimum: bool,
    weights: NDArray[Any],
    gram: Any,
    cross: Any,
    usable: Any,
) -> None:
    """Do the same in operations on batches of pixels."""
    directions = like(np.asarray(lights.swapaxes(-1, -2), dtype=np.float64), pixels)
    piece = like(np.arange(p, dtype=np.float64), pixels)
    for part in tensor_batches(pixels, copies=p):
        y = pixels[part].double()
        low = y.amin(1)
        high = y.amax(1)
        usable[part] = (high > 0) & (high > low)
        base = low if from_minimum else 0.0 * low
        step = (high - base) / p
        ends = base[:, None] + (piece + 1) * step[:, None]
        starts = base[:, None] + piece * step[:, None]
        starts[:, 0] = starts[:, 0].clamp(max=0.0)  # the curve starts at the origin
        C = (y[:, None, :] - starts[:, :, None]).clamp(min=0.0).minimum((ends - starts)[:, :, None])
        C *= usable[part][:, None, None]
        if len(weights):
            C *= like(weights[part], pixels)[:, None]
        gram[part] = C @ C.transpose(1, 2)
        cross[part] = C @ some_lights(directions, part)
    # A view: the ridge is added in place.
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.sum(1, keepdim=True)


@njit(cache=True)
def _cut(values, base, step, pieces):  # type: ignore[no-untyped-def]
    """Split the intensities of one pixel into their parts in each piece."""
    for k in range(len(pieces)):
        start = 0.0 if k == 0 and base > 0.0 else base + k * step
        width = base + (k + 1) * step - start
        piece = pieces[k]
        for j in range(values.size):
            piece[j] = min(max(float(values[j]) - start, 0.0), width)


@shared(of="pixels")
def _statistics(first, last, pixels, lights, p, from_minimum, weights, gram, cross, usable):  # type: ignore[no-untyped-def]
    """Fill T, Q and whether the curve can be determined; see :func:`statistics`."""
    pieces = np.empty((p, pixels.shape[1]))  # stays in the L1 cache
    for i in range(first, last):
        low, high = value_range(pixels[i])
        T = gram[i]
        Q = cross[i]
        usable[i] = high > 0.0 and high > low
        if not usable[i]:
            for k in range(p):  # loops, since Numba takes seconds to compile a slice assignment
                for m in range(p):
                    T[k, m] = 0.0
                for axis in range(3):
                    Q[k, axis] = 0.0
            continue
        base = low if from_minimum else 0.0
        # Pixel by pixel: C is p × d, and is never stored for all of them.
        _cut(pixels[i], base, (high - base) / p, pieces)
        if len(weights):
            for k in range(p):
                for j in range(pieces.shape[1]):
                    pieces[k, j] *= weights[i, j]
        trace = 0.0
        for k in range(p):
            for m in range(k + 1):
                T[k, m] = T[m, k] = dot(pieces[k], pieces[m])
            for axis in range(3):
                Q[k, axis] = dot(pieces[k], lights[min(i, len(lights) - 1), axis])
            trace += T[k, k]
        for k in range(p):
            T[k, k] += RIDGE * trace
