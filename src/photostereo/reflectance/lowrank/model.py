"""Low rank: the photographs of a matte object have rank three; deviations from it are sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float64
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import Array, cast, empty, like, namespace, to_numpy
from photostereo.runtime.illumination import mean_lights, shading

#: The first penalty μ, times ‖Y‖₂: Lin, Chen and Ma's constant, like the next two.
FIRST = 1.25
#: Growth of the penalty in each iteration.
GROWTH = 1.5
#: The largest penalty, in units of the first.
LARGEST = 1e7
#: Entries processed at once: a few megabytes of temporaries, and a few milliseconds between two
#: checks for cancellation. It changes the result only by rounding.
AT_ONCE = 1 << 18
#: Entries below this share of a pixel's brightest shading lie in an attached shadow and are not
#: compared.
LEAST_SHADING = 0.05


@dataclass(frozen=True)
class Decomposition:
    """``Y = low_rank + sparse``."""

    low_rank: Array  #: (N, d) the photographs without their sparse errors, float32
    rank: int  #: number of singular values that the last threshold kept
    iterations: int  #: of the augmented Lagrangian
    converged: bool  #: whether ``‖Y − A − E‖ ≤ tol ‖Y‖``


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

    .. math:: \min_{A, E} \; \|A\|_* + \lambda \|W \circ E\|_1
              \quad\text{s.t.}\quad Y = A + E, \qquad \lambda = C / \sqrt{\max(N, d)}

    by the inexact augmented Lagrangian. A singular value threshold of the tall N × d matrix X needs
    only the eigenvectors of its d × d Gram matrix: with ``XᵀX = V diag(s²) Vᵀ`` it is
    ``X V diag(max(1 − 1/(μ s), 0)) Vᵀ``. With ``Z = Y − A + Λ/μ`` the sparse part is
    ``E = shrink(Z, λ/μ)`` and the ascended dual is ``Λ⁺ = Λ + μ (Y − A − E) = clip(μ Z, ±λ)``, so
    that ``E = Z − Λ⁺/μ`` need not be stored.

    Parameters
    ----------
    Y : array (N, d)
        The matrix.
    weight : float
        C.
    observed : array of bool (N, d), optional
        W; an unobserved entry (a shadow) may take any value at no cost.
    tol : float
        Stop when ‖Y − A − E‖ is below this share of ‖Y‖.
    max_iter : int
        Most iterations.
    control : Control
        Progress and cancellation.

    References
    ----------
    Z. Lin, M. Chen, Y. Ma, The augmented Lagrange multiplier method for exact recovery of corrupted
    low-rank matrices, 2010, doi:10.48550/arXiv.1009.5055. E. J. Candès, X. Li, Y. Ma, J. Wright,
    Robust principal component analysis?, Journal of the ACM 58(3), 2011,
    doi:10.1145/1970392.1970395.
    """
    rows, columns = Y.shape
    size = AT_ONCE // columns + 1
    parts = [slice(first, first + size) for first in range(0, rows, size)]
    X = empty((rows, columns), Y)
    dual = empty((rows, columns), Y)
    gram = empty((columns, columns), Y)
    low_rank = empty((rows, columns), Y, "float32")
    # The scale of the problem: the spectral norm and the energy of Y.
    gram[:] = 0.0
    for part in parts:
        control.check()
        values = cast(Y[part], "float64")
        gram += values.T @ values
    singular, _ = _singular_values(gram)
    norm = float(singular.max())
    energy = float((singular**2).sum())
    if energy == 0.0:
        low_rank[:] = 0.0
        return Decomposition(low_rank, 0, 0, True)
    lam = weight / float(np.sqrt(max(rows, columns)))
    mu = FIRST / norm
    limit = LARGEST * mu
    # The dual start of Lin, Chen and Ma, which has dual norm 1.
    scale = max(norm, max(float(Y.max()), -float(Y.min())) / lam)
    gram[:] = 0.0
    for part in parts:
        values = cast(Y[part], "float64")
        dual[part] = values / scale
        if observed is not None:
            dual[part] = dual[part] * observed[part]
        X[part] = values + dual[part] / mu
        gram += X[part].T @ X[part]
    control.stage("low rank", max_iter)
    rank = columns
    converged = False
    iterations = 0
    while iterations < max_iter and not converged:
        iterations += 1
        # A singular value threshold of X at 1/μ, as a product with a d × d matrix.
        singular, V = _singular_values(gram)
        above = singular * mu > 1.0
        rank = int(above.sum())
        threshold = like((V[:, above] * (1.0 - 1.0 / (mu * singular[above]))) @ V[:, above].T, X)
        next_mu = min(GROWTH * mu, limit)
        gram[:] = 0.0
        residual = 0.0
        for part in parts:
            control.check()
            values = cast(Y[part], "float64")
            z = values - X[part] @ threshold + dual[part] / mu
            # The ascended dual is the part of μ Z that the shrinkage removes.
            ascended = (mu * z).clip(-lam, lam)
            if observed is not None:
                ascended = ascended * observed[part]
            # Y − A − E is the change of the dual over μ, so it costs no further pass.
            residual = residual + ((ascended - dual[part]) ** 2).sum()
            dual[part] = ascended
            # The next X is Y − E + Λ/μ with the next μ, and its Gram matrix comes from the same
            # pass.
            X[part] = values - z + ascended * (1.0 / mu + 1.0 / next_mu)
            gram += X[part].T @ X[part]
        converged = float(residual) / mu**2 < energy * tol * tol
        mu = next_mu
        control.advance()
    for part in parts:
        low_rank[part] = cast(X[part] - dual[part] / mu, "float32")
    return Decomposition(low_rank, rank, iterations, converged)


def _singular_values(gram: Array) -> tuple[Float64, Float64]:
    """Return singular values and right singular vectors of X from ``XᵀX``.

    The vectors are columns; both are NumPy arrays.
    """
    squared, V = np.linalg.eigh(to_numpy(gram))
    return np.sqrt(np.maximum(squared, 0.0)), V


class LowRank(Model):
    r"""Robust PCA of the photographs, then least squares on the low-rank part (Wu et al. 2010).

    .. math:: \min_{A, E} \|A\|_* + \frac{C}{\sqrt{\max(N, d)}} \|W \circ E\|_1
              \;\; \text{s.t.} \;\; Y = A + E, \qquad \min_n \sum_{px} \| a_{px} - L^T n_{px} \|^2

    It is the Lambertian model on the cleaned photographs A, so a prior needs nothing more.

    Parameters
    ----------
    pixels : array (N, d)
        Y, intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights. Under near lights the photographs are first brought to the mean lights.
    weight : float
        C.
    shadow : float
        Entries darker than this share of their pixel's maximum count as missing: W is zero there.
    tol, max_iter
        Of :func:`robust_pca`.
    fall_off : array (N, d), optional
        By which the intensities of near lights were divided, and so was their noise.

    References
    ----------
    L. Wu et al., Robust photometric stereo via low-rank matrix completion and recovery, ACCV 2010,
    doi:10.1007/978-3-642-19318-7_55.

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
        fall_off: NDArray[Any] | None = None,
    ) -> None:
        self._pixels = pixels
        self._lights = lights
        self._weight = weight
        self._shadow = shadow
        self._tol = tol
        self._max_iter = max_iter
        self._fall_off = None if fall_off is None else like(fall_off, pixels)
        self._cleaned: tuple[Decomposition, Lambertian] | None = None

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return self._matte.mean_hessian(unknowns)

    def alone(self, control: Control) -> Fit:
        decomposition, matte = self._clean(control)
        normals = matte.alone(control).normals
        return Fit(normals, {}, decomposition.iterations, decomposition.converged)

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        _, matte = self._clean(control)
        return matte.start(control)

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return self._matte.update_normals(unknowns, weight, pull)

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._matte.cost(normals, unknowns)

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``errors`` (N, d): the sparse part, removed from each photograph."""
        decomposition, _ = self._clean(SILENT)
        return {"errors": self._pixels - decomposition.low_rank}

    @property
    def _matte(self) -> Lambertian:
        """The model of the cleaned photographs."""
        _, matte = self._clean(SILENT)
        return matte

    def _clean(self, control: Control) -> tuple[Decomposition, Lambertian]:
        """Return the low-rank part of the photographs and its model; computed once."""
        if self._cleaned is None:
            scale = self._evenness()
            even = self._pixels if scale is None else self._pixels * scale
            decomposition = robust_pca(
                even,
                weight=self._weight,
                observed=self._lit(),
                tol=self._tol,
                max_iter=self._max_iter,
                control=control,
            )
            if scale is not None:
                decomposition = replace(decomposition, low_rank=decomposition.low_rank / scale)
            self._cleaned = decomposition, self._matte_model(decomposition.low_rank)
        return self._cleaned

    def _matte_model(self, low_rank: Array) -> Lambertian:
        """Return the model with the fall-off restored: it is fitted where the noise is uniform."""
        if self._fall_off is None:
            return Lambertian(low_rank, self._lights)
        falls = self._fall_off / (self._fall_off**2).mean() ** 0.5
        return Lambertian(low_rank * falls, self._lights * to_numpy(falls)[:, None])

    def _evenness(self) -> Array | None:
        """Return the ratio (N, d) of the shading under the mean lights to the pixel's own.

        The shading under a pixel's own lights is not of rank three. The ratio uses the normals of a
        robust fit; their error only matters times the angle between the two lights. None if all
        pixels share their lights.
        """
        if self._lights.ndim == 2:
            return None
        from photostereo.reflectance.sparse.model import SparseBayes

        normals = cast(SparseBayes(self._pixels, self._lights).alone(SILENT).normals, "float32")
        mean = mean_lights(self._lights)
        mean = mean / np.linalg.norm(mean, axis=0)
        # Where one of the two is dark, their ratio would only amplify noise.
        own = shading(normals, like(self._lights.astype(np.float32), normals))
        shared = shading(normals, like(mean.astype(np.float32), normals))
        xp = namespace(normals)
        facing = (own > LEAST_SHADING * xp.amax(own, 1)[:, None]) & (shared > LEAST_SHADING * own)
        one = 1.0 + 0.0 * own
        even = xp.where(facing, shared / xp.where(facing, own, one), one)
        if self._fall_off is None:
            return even
        # A common factor for a pixel does not change the rank; this one makes the noise of the
        # pixels uniform again.
        return even * self._fall_off.mean(1)[:, None]

    def _lit(self) -> Array | None:
        """Return which entries (N, d) are brighter than the shadow threshold; None if all are used."""
        if not self._shadow > 0:
            return None
        brightest = namespace(self._pixels).amax(self._pixels, 1)
        return self._pixels > self._shadow * cast(brightest, "float64")[:, None]
