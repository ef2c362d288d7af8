"""The Lambertian model: intensity = albedo × (light · normal)."""

from __future__ import annotations

import numpy as np

from photostereo.backend import like, namespace, to_numpy
from photostereo.monitor import Monitor
from photostereo.reflectance.model import Array, Fit, Unknowns
from photostereo.reflectance.projection import project, squared_lengths


class Lambertian:
    r"""Least squares on the Lambertian model (Woodham 1980).

    .. math:: \min_n \; \sum_{px} \| y_{px} - L^T n_{px} \|^2

    The photographs are reduced once to ``L y`` (three numbers per pixel), ``|y|²`` and the shared 3 × 3
    matrix ``L Lᵀ = U diag(s) Uᵀ``. With the pull (λ, c, r) of a prior the exact minimiser is pixelwise,

        (L Lᵀ + λ c I) n = L y + λ r,   so   n = U [ Uᵀ(L y + λ r) / (s + λ c) ].

    Parameters
    ----------
    pixels : (N, d) intensities
    lights : (3, d) unit columns

    References
    ----------
    R. J. Woodham, Photometric method for determining surface orientation from multiple images,
    Optical Engineering 19(1), 1980, doi:10.1117/12.7972479.

    Examples
    --------
    >>> L = np.array([[0, 0.6, 0], [0, 0, 0.6], [1, 0.8, 0.8]])
    >>> n = np.array([[0.1, 0.2, 0.9]])
    >>> bool(np.allclose(Lambertian(n @ L, L).alone(Monitor()).normals, n))
    True
    """

    def __init__(self, pixels: Array, lights: Array) -> None:
        gram = lights @ lights.T
        self._strength, self._basis, self._gram = (like(a, pixels) for a in (*np.linalg.eigh(gram), gram))
        self._projected = project(pixels, lights)
        self._energy = squared_lengths(pixels).sum()

    @property
    def noise(self) -> None:
        return None

    def mean_hessian(self, unknowns: Unknowns) -> Array:
        return to_numpy(self._gram)

    def alone(self, monitor: Monitor) -> Fit:
        return Fit(namespace(self._gram).linalg.solve(self._gram, self._projected.T).T)

    def start(self, monitor: Monitor) -> tuple[Array, Unknowns]:
        return self.alone(monitor).normals, {}

    def update_normals(self, unknowns: Unknowns, lam: float, count: Array, pull: Array) -> Array:
        rotated = (self._projected + lam * pull) @ self._basis
        return (rotated / (self._strength + lam * count[..., None])) @ self._basis.T

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        return unknowns

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        terms = (normals @ self._gram) * normals - 2.0 * normals * self._projected
        return terms.sum((-2, -1)) + self._energy

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        return {}
