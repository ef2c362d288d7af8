"""Lambertian shading after a share of each pixel's mean, the haze, has been taken away."""

from __future__ import annotations

import numpy as np

from photostereo.core.control import Control
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import Array, like, namespace, to_numpy
from photostereo.runtime.illumination import gram_of, projected, shading


class HalfLambert(Model):
    """min over n of |y − h mean(y) − Lᵀ n|², h the haze."""

    def __init__(self, pixels: Array, lights: Array, *, haze: float = 0.0) -> None:
        clear = pixels - haze * pixels.mean(1)[:, None]
        columns = like(np.asarray(lights, dtype=to_numpy(pixels[:1]).dtype), pixels)
        self._gram = like(gram_of(lights), pixels)  # of each pixel, if it has lights of its own
        self._moment = projected(clear, columns) * like(np.ones(1), pixels)  # in double precision
        self._energy = (clear * clear).sum()

    def mean_hessian(self, unknowns: Unknowns) -> np.ndarray:
        return to_numpy(self._gram).reshape(-1, 3, 3).mean(0)

    def alone(self, control: Control) -> Fit:
        return Fit(namespace(self._gram).linalg.solve(self._gram, self._moment[..., None])[..., 0])

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        identity = like(np.eye(3), self._gram)
        systems = self._gram + weight[..., None, None] * identity
        return namespace(self._gram).linalg.solve(systems, (self._moment + pull)[..., None])[..., 0]

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return (shading(normals, self._gram) * normals - 2.0 * normals * self._moment).sum(
            (-2, -1)
        ) + self._energy
