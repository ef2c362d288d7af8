"""The Lambertian model: intensity = albedo × (light · normal)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.reflectance.projection import project, squared_lengths
from photostereo.runtime.algebra import symmetric_entries
from photostereo.runtime.arrays import Array, like, namespace, to_numpy


class Lambertian(Model):
    r"""Least squares on the Lambertian model (Woodham 1980).

    .. math:: \min_n \; \sum_{px} \| y_{px} - L^T n_{px} \|^2

    The photographs are reduced once to ``L y`` (three numbers per pixel), ``|y|²`` and the shared 3 × 3
    matrix ``L Lᵀ = U diag(s) Uᵀ``. With a prior's weight w = λ c and pull q = λ r the exact minimizer is pixelwise,

        (L Lᵀ + w I) n = L y + q,   so   n = U [ Uᵀ(L y + q) / (s + w) ].

    Parameters
    ----------
    pixels : (N, d) array
        Intensities.
    lights : (3, d) array
        Unit columns.

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

    joins = True

    def __init__(self, pixels: Array, lights: Array) -> None:
        self._energies = squared_lengths(pixels)
        self._freedom = max(pixels.shape[1] - 3, 1)
        self._reduce(lights, project(pixels, lights), self._energies.sum())

    @classmethod
    def join(cls, parts: Sequence[Lambertian]) -> Lambertian:
        whole = copy(parts[0])
        whole._projected = np.concatenate([part._projected for part in parts])
        whole._energies = np.concatenate([part._energies for part in parts])
        whole._energy = np.sum([part._energy for part in parts])
        return whole

    def _reduce(self, lights: Array, projected: Array, energy: Array) -> None:
        gram = lights @ lights.T
        self._strength, self._basis, self._gram = (like(a, projected) for a in (*np.linalg.eigh(gram), gram))
        self._projected = projected
        self._energy = energy

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return to_numpy(self._gram)

    def alone(self, control: Control) -> Fit:
        return Fit(namespace(self._gram).linalg.solve(self._gram, self._projected.T).T)

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        rotated = (self._projected + pull) @ self._basis
        return (rotated / (self._strength + weight[..., None])) @ self._basis.T

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return symmetric_entries(self._gram)[None], self._projected

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        terms = (normals @ self._gram) * normals - 2.0 * normals * self._projected
        return terms.sum((-2, -1)) + self._energy

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array | None:
        terms = (normals @ self._gram) * normals - 2.0 * normals * self._projected
        return (terms.sum(-1) + self._energies).clip(0.0) / self._freedom
