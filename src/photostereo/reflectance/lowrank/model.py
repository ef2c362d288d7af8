"""Low rank: a matte object's photographs have rank three; what breaks it is sparse (shadows, highlights)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import Array, empty, is_tensor, like, to_numpy

#: Independent shares of the rows, several per core; the result does not depend on how many cores there are.
PARTS = 32
#: The largest cosine that the last sweep of rotations may find; what it leaves is of the order of its square.
#: Six to ten sweeps suffice.
EIGEN_TOLERANCE, EIGEN_SWEEPS = 1e-8, 40
#: Growth of the penalty, and its largest value in units of the first: Lin, Chen and Ma's constants.
GROWTH, LARGEST = 1.5, 1e7


@dataclass(frozen=True)
class Decomposition:
    """``Y = low_rank + sparse``.

    Attributes
    ----------
    low_rank : (N, d) the photographs without their sparse errors, float32
    rank : number of singular values that the last threshold kept
    iterations : of the augmented Lagrangian
    converged : whether ``‖Y − A − E‖ ≤ tol ‖Y‖``
    """

    low_rank: Array
    rank: int
    iterations: int
    converged: bool


def robust_pca(
    Y: Array,
    *,
    weight: float = 1.0,
    observed: Array | None = None,
    tol: float = 1e-7,
    max_iter: int = 200,
    control: Control = SILENT,
) -> Decomposition:
    r"""Split a matrix into a low-rank and a sparse part (robust principal component analysis).

    .. math:: \min_{A, E} \; \|A\|_* + \lambda \|W \circ E\|_1 \quad\text{s.t.}\quad Y = A + E,
              \qquad \lambda = C / \sqrt{\max(N, d)}

    by the inexact augmented Lagrangian. A singular value threshold of the tall N × d matrix X needs only the
    eigenvectors of its d × d Gram matrix: with ``XᵀX = V diag(s²) Vᵀ`` it is ``X V diag(max(1 − 1/(μ s), 0))
    Vᵀ``. The rows are worked through in tiles, two N × d arrays in double precision are all the memory it
    needs, and one iteration costs two products with a d × d matrix.

    Parameters
    ----------
    Y : (N, d)
    weight : C
    observed : (N, d) bool, W: an entry that was not observed (a shadow) may take any value at no cost
    tol : on ‖Y − A − E‖ / ‖Y‖
    max_iter : the largest number of iterations

    References
    ----------
    Z. Lin, M. Chen, Y. Ma, The augmented Lagrange multiplier method for exact recovery of corrupted low-rank
    matrices, 2010, doi:10.48550/arXiv.1009.5055. E. J. Candès, X. Li, Y. Ma, J. Wright, Robust principal
    component analysis?, Journal of the ACM 58(3), 2011, doi:10.1145/1970392.1970395.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.random((400, 2)) @ rng.random((2, 30))
    >>> dirty = np.where(rng.random(clean.shape) < 0.05, 5.0, clean).astype(np.float32)
    >>> parts = robust_pca(dirty)
    >>> parts.rank, bool(abs(parts.low_rank - clean).max() < 1e-4)
    (2, True)
    """
    kernels = _kernels_for(Y)
    rows, columns = Y.shape
    parts = 1 if is_tensor(Y) else PARTS
    X, dual = empty((rows, columns), Y), empty((rows, columns), Y)
    grams, residuals = empty((parts, columns, columns), Y), empty((parts,), Y)
    seen = empty((0, columns), Y, "bool") if observed is None else observed
    kernels.begin(Y, seen, 0.0, 1.0, X, dual, grams)
    gram = _whole(grams)
    energy = float(np.trace(gram))
    low_rank = empty((rows, columns), Y, "float32")
    if energy == 0.0:
        low_rank[:] = 0.0
        return Decomposition(low_rank, 0, 0, True)
    lam = weight / float(np.sqrt(max(rows, columns)))
    norm = float(np.sqrt(_eigenvectors(gram)[0].max()))
    mu = 1.25 / norm
    limit = LARGEST * mu
    kernels.begin(Y, seen, max(norm, max(float(Y.max()), -float(Y.min())) / lam), mu, X, dual, grams)
    control.stage("low rank", max_iter)
    rank, converged, iterations = columns, False, 0
    while iterations < max_iter and not converged:
        iterations += 1
        left, right = _threshold_factors(_whole(grams), mu)
        rank = left.shape[1]
        if 3 * rank >= columns:  # one product with a square matrix takes less time than two thin ones
            left, right = left @ right, np.empty((0, columns))
        mu_next = min(GROWTH * mu, limit)
        kernels.sweep(Y, X, dual, seen, like(left, X), like(right, X), lam, mu, mu_next, residuals, grams)
        mu = mu_next
        control.advance()
        converged = float(residuals.sum()) < energy * tol * tol
    kernels.subtract_scaled(X, dual, mu, low_rank)
    return Decomposition(low_rank, rank, iterations, converged)


def _whole(grams: Array) -> NDArray[np.float64]:
    """The symmetric Gram matrix from its parts, of which the upper triangles count; NumPy, wherever X is."""
    upper = np.triu(to_numpy(grams.sum(0)))
    return np.asarray(upper + np.triu(upper, 1).T)


def _eigenvectors(gram: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from photostereo.reflectance.lowrank.kernels import eigenvectors

    values, rows = eigenvectors(gram, EIGEN_TOLERANCE, EIGEN_SWEEPS)
    return values, rows


def _kernels_for(Y: Array) -> Any:
    """The module with the loops over entries for this kind of array."""
    if is_tensor(Y):
        from photostereo.reflectance.lowrank import torch_kernels

        return torch_kernels
    from photostereo.reflectance.lowrank import kernels

    return kernels


def _threshold_factors(
    gram: NDArray[np.float64], mu: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factors F (d × r), H (r × d) such that ``X F H`` is X with its singular values lowered by 1/μ."""
    squared, V = _eigenvectors(gram)
    singular = np.sqrt(squared)
    keep = (singular * mu > 1.0) & V.any(axis=1)
    V = V[keep]
    return np.ascontiguousarray(V.T), (1.0 - 1.0 / (mu * singular[keep]))[:, None] * V


def robust_pca_readable(
    Y: NDArray[np.float64], lam: float, *, tol: float = 1e-7, max_iter: int = 200
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same iteration with a plain singular value decomposition: (A, E), for small matrices."""
    norm = np.linalg.norm(Y, 2)
    dual = Y / max(norm, np.abs(Y).max() / lam)
    mu = 1.25 / norm
    limit = LARGEST * mu
    E = np.zeros_like(Y)
    for _ in range(max_iter):
        U, s, Vt = np.linalg.svd(Y - E + dual / mu, full_matrices=False)
        A = (U * np.maximum(s - 1.0 / mu, 0.0)) @ Vt
        Z = Y - A + dual / mu
        E = np.sign(Z) * np.maximum(np.abs(Z) - lam / mu, 0.0)
        dual = dual + mu * (Y - A - E)
        mu = min(GROWTH * mu, limit)
        if np.linalg.norm(Y - A - E) / np.linalg.norm(Y) < tol:
            break
    return A, E


class LowRank(Model):
    r"""Robust PCA of the photographs, then least squares on what is left (Wu et al. 2010).

    .. math:: \min_{A, E} \|A\|_* + \frac{C}{\sqrt{\max(N, d)}} \|W \circ E\|_1
              \;\; \text{s.t.} \;\; Y = A + E, \qquad \min_n \sum_{px} \| a_{px} - L^T n_{px} \|^2

    As a model it is the Lambertian one on the cleaned photographs A, so a prior needs nothing more.

    Parameters
    ----------
    pixels : (N, d) array
        Intensities.
    lights : (3, d) array
        Unit columns.
    weight : float
        C, of the sparse part; larger leaves more in A.
    shadow : float
        Entries darker than this share of their pixel's maximum count as not observed; 0 uses all of them.
    tol, max_iter
        Of :func:`robust_pca`.

    References
    ----------
    L. Wu, A. Ganesh, B. Shi, Y. Matsushita, Y. Wang, Y. Ma, Robust photometric stereo via low-rank matrix
    completion and recovery, ACCV 2010, doi:10.1007/978-3-642-19318-7_55.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 60))
    >>> n = rng.normal(size=(500, 3))
    >>> y = n @ L
    >>> y[rng.random(y.shape) < 0.05] = 9
    >>> fit = LowRank(y, L).alone(Control())
    >>> bool(abs(fit.normals - n).max() < 1e-4)
    True
    """

    bends = True

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        *,
        weight: float = 1.0,
        shadow: float = 0.0,
        tol: float = 1e-7,
        max_iter: int = 200,
    ) -> None:
        self._pixels, self._lights = pixels, lights
        self._weight, self._shadow, self._tol, self._max_iter = weight, shadow, tol, max_iter
        self._cleaned: tuple[Decomposition, Lambertian] | None = None

    def decompose(self, control: Control = SILENT) -> Decomposition:
        """The low-rank part of the photographs; computed once."""
        return self._clean(control)[0]

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return np.asarray(self._lights @ self._lights.T)

    def alone(self, control: Control) -> Fit:
        parts, model = self._clean(control)
        return Fit(model.alone(control).normals, {}, parts.iterations, parts.converged)

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        return self._clean(control)[1].start(control)

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return self._clean(SILENT)[1].update_normals(unknowns, weight, pull)

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._clean(SILENT)[1].cost(normals, unknowns)

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``errors`` (N, d): the sparse part, what was taken away from each photograph."""
        return {"errors": self._pixels - self.decompose().low_rank}

    def _clean(self, control: Control) -> tuple[Decomposition, Lambertian]:
        if self._cleaned is None:
            parts = robust_pca(
                self._pixels,
                weight=self._weight,
                observed=_lit(self._pixels, self._shadow) if self._shadow > 0 else None,
                tol=self._tol,
                max_iter=self._max_iter,
                control=control,
            )
            self._cleaned = parts, Lambertian(parts.low_rank, self._lights)
        return self._cleaned


def _lit(pixels: Array, shadow: float) -> Array:
    """Which entries are brighter than this share of their pixel's maximum."""
    observed = empty(tuple(pixels.shape), pixels, "bool")
    _kernels_for(pixels).lit(pixels, shadow, observed)
    return observed
