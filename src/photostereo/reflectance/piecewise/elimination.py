"""Statistics of the piecewise model and elimination of its slopes, for NumPy arrays and torch tensors.

This runs once per capture, so every line processes all pixels, in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.projection import project, squared_lengths
from photostereo.runtime.arrays import Array, contiguous, like, namespace

#: Ridge on T relative to its trace: it determines pixels whose pieces are seen by too few photographs. A factor of ten
#: either way changes normals by less than a thousandth of a degree.
RIDGE = 1e-9


@dataclass(frozen=True)
class PiecewiseStatistics:
    """Statistics that the model keeps of the photographs, for N pixels and p pieces."""

    gram: Array  #: (N, p, p) ``T = CᵀC``
    cross: Array  #: (N, p, 3) ``Q = CᵀLᵀ``
    #: (N,) False if the curve cannot be determined (no intensity, or no range); then a = 1, the
    #: Lambertian model
    usable: Array


@dataclass(frozen=True)
class Reduced:
    """The data cost with the slopes eliminated: nᵀH n − 2 hᵀn + κ, and a = K n + k."""

    hessian: Array  #: (N, 6) H as xx, xy, xz, yy, yz, zz
    linear: Array  #: (N, 3) h
    constant: Array  #: (N,) κ
    slopes_of_normals: Array  #: (N, p, 3) K
    slopes_offset: Array  #: (N, p) k


def eliminate_slopes(
    stats: PiecewiseStatistics, pixels: Array, lights: NDArray[Any], lights_gram: NDArray[Any], gamma: float
) -> Reduced:
    """Eliminate the slopes by minimization; the remaining cost is quadratic in n. See :class:`.model.Piecewise`."""
    xp, p = namespace(stats.gram), stats.gram.shape[1]
    usable, (rows, cols) = stats.usable, np.triu_indices(3)
    lights_gram = like(lights_gram, stats.gram)
    right = xp.concatenate([stats.cross, xp.ones_like(stats.cross[:, :, :1])], 2)
    X = cholesky_solve(_or_identity(stats.gram, usable), right)
    # Invert M = T + γ 11ᵀ by Sherman-Morrison: a matrix with both γ and the ridge would have the condition
    # γ / ridge. H stays positive semidefinite up to rounding.
    sums, total = X[:, :, :3].sum(1), X[:, :, 3].sum(1)
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
    """Fit normals and slopes with the exact constraint 1ᵀa = p; the fallback if the curve cannot be determined."""
    xp, p, usable = namespace(stats.gram), stats.gram.shape[1], stats.usable[:, None]
    projected = stats.cross @ like(np.linalg.inv(lights_gram), stats.cross)
    S = stats.gram - projected @ stats.cross.swapaxes(1, 2)
    X = cholesky_solve(_or_identity(S, stats.usable), xp.ones_like(S[:, :, :1]))[:, :, 0]
    slopes = p * X / X.sum(1)[:, None]
    normals = (projected * slopes[:, :, None]).sum(1)
    return xp.where(usable, normals, fallback), xp.where(usable, slopes, xp.ones_like(slopes))


def cholesky_solve(A: Array, B: Array) -> Array:
    """Solve A X = B for many small symmetric positive definite A (n, p, p) and B (n, p, c), p steps each way.

    A pivot that rounding made negative is lifted to 1e-300.

    >>> A = np.array([[[4.0, 2.0], [2.0, 3.0]]])
    >>> cholesky_solve(A, A @ np.array([[[1.0], [2.0]]])).ravel().round(12).tolist()
    [1.0, 2.0]
    """
    A, X = A + 0.0, B + 0.0
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
