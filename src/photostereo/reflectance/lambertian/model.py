"""The Lambertian model: intensity = albedo × (light · normal)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import Array, like, namespace, to_numpy
from photostereo.runtime.illumination import gram_of, project, shading, squared_lengths
from photostereo.runtime.symmetric import symmetric_entries


class Lambertian(Model):
    r"""Least squares on the Lambertian model (Woodham 1980).

    .. math:: \min_n \; \sum_{px} \| y_{px} - L^T n_{px} \|^2

    The photographs are reduced once to ``L y`` (three numbers per pixel), ``|y|²`` and the shared
    3 × 3 matrix ``L Lᵀ = U diag(s) Uᵀ``. With a prior's weight w = λ c and pull q = λ r, the exact
    minimizer is pixelwise,

        (L Lᵀ + w I) n = L y + q,   so   n = U [ Uᵀ(L y + q) / (s + w) ].

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.

    References
    ----------
    R. J. Woodham, Photometric method for determining surface orientation from multiple images,
    Optical Engineering 19(1), 1980, doi:10.1117/12.7972479.

    Examples
    --------
    >>> L = np.array([[0, 0.6, 0], [0, 0, 0.6], [1, 0.8, 0.8]])
    >>> n = np.array([[0.1, 0.2, 0.9]])
    >>> bool(np.allclose(Lambertian(n @ L, L).alone(Control()).normals, n))
    True
    """

    def __init__(self, pixels: Array, lights: NDArray[Any]) -> None:
        # Constant terms of the cost: they matter only to the misfit and to the history.
        self._energies = squared_lengths(pixels)
        self._energy = self._energies.sum()
        self._freedom = max(pixels.shape[1] - 3, 1)
        self._projected = project(pixels, lights)
        gram = gram_of(lights)
        # One decomposition serves every pixel and every weight of a prior.
        strength, basis = np.linalg.eigh(gram)
        self._strength = like(strength, pixels)
        self._basis = like(basis, pixels)
        self._gram = like(gram, pixels)

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        if self._gram.ndim == 2:
            return to_numpy(self._gram)
        return to_numpy(self._gram.mean(0))

    def alone(self, control: Control) -> Fit:
        solve = namespace(self._gram).linalg.solve
        if self._gram.ndim == 2:
            return Fit(solve(self._gram, self._projected.T).T)
        return Fit(solve(self._gram, self._projected[..., None])[..., 0])

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        rotated = shading(self._projected + pull, self._basis)
        return shading(rotated / (self._strength + weight[..., None]), self._basis.swapaxes(-1, -2))

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return symmetric_entries(self._gram).reshape(-1, 6), self._projected

    def _terms(self, normals: Array) -> Array:
        """Return nᵀ L Lᵀ n − 2 (L y)ᵀ n, component by component."""
        return shading(normals, self._gram) * normals - 2.0 * normals * self._projected

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._terms(normals).sum((-2, -1)) + self._energy

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array | None:
        return (self._terms(normals).sum(-1) + self._energies).clip(0.0) / self._freedom
