"""The field of corrections over an object, and its effect on the network's normals.

The correction is computed once, on a fixed number of cells across the object, so its cost does not depend on the
resolution. It is a witness like the others: it replaces the network's, with its own expected error, and is averaged with
the matte fit. A pixel that the matte fit explains does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.learned.context.cells import SIDE, Square
from photostereo.reflectance.learned.context.features import BRIGHTNESS, NAMES, constants_of, features_of
from photostereo.reflectance.learned.context.network import predict
from photostereo.reflectance.learned.evidence import Evidence
from photostereo.reflectance.learned.witnesses import Witness, combine
from photostereo.runtime.arrays import Array, cast, like, namespace
from photostereo.runtime.illumination import mean_lights, some_lights

#: Pixels per batch of features.
AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Correction:
    """Additive correction of the network's unit normals (N, 3), and the factor on their variance (N,)."""

    shift: NDArray[np.float32]
    factor: NDArray[np.float32]

    @classmethod
    def none(cls, count: int) -> Correction:
        """Return a correction that changes nothing."""
        return cls(np.zeros((count, 3), np.float32), np.ones(count, np.float32))

    def some(self, which: slice) -> Correction:
        """Return the correction of some of the pixels."""
        return Correction(self.shift[which], self.factor[which])

    def together(self, network: Witness, matte: Witness) -> Witness:
        """Combine the network's corrected witness with the matte fit.

        Against the matte fit, the correction never has more weight than the network, and less the farther it moves the
        normal: it moves a pixel with a matte fit of variance v by at most v / (2 · the network's expected error).
        """
        if not self.shift.any():
            return combine(network, matte)
        xp = namespace(network.variance)
        normals = network.normals + like(self.shift, network.normals)
        normals = normals / (xp.sqrt((normals * normals).sum(-1))[:, None] + 1e-12)
        factor = like(self.factor, network.variance)
        moved = ((normals - network.normals) ** 2).sum(-1)
        found = combine(Witness(normals, network.variance * factor.clip(1.0) + moved), matte)
        return Witness(found.normals, 1.0 / (1.0 / (network.variance * factor) + 1.0 / matte.variance))


@dataclass(frozen=True, eq=False)
class Field:
    """Corrections of the cells (SIDE, SIDE, 4) of a square, and the cells that contain pixels of the object."""

    square: Square
    maps: NDArray[np.float32]
    known: NDArray[np.bool_]

    def at(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Correction:
        """Return the correction at pixels of the picture."""
        found = self.square.spread(rows, columns, self.maps, self.known)
        return Correction(found[:, :3], np.exp(2.0 * found[:, 3]))


def find_field(
    evidence: Evidence,
    lights: NDArray[np.floating],
    mask: NDArray[np.bool_],
    weights: Mapping[str, NDArray[np.float32]],
) -> Field:
    """Compute the field of an object from the evidence of its mask pixels under (3, d) lights."""
    square, (rows, columns) = Square.around(mask), np.nonzero(mask)
    values, count = square.average(rows, columns, pixel_maps(evidence, lights))
    known = count > 0
    brightness = values[..., BRIGHTNESS]
    brightness -= (brightness * count).sum() / max(float(count.sum()), 1.0)
    constants = np.broadcast_to(constants_of(mean_lights(lights), lights.shape[-1]), (SIDE, SIDE, 5))
    cover = count / np.maximum(square.pixels, 1.0)
    maps = np.concatenate([values, constants, cover[..., None]], -1) * known[..., None]
    return Field(square, predict(weights, maps.astype(np.float32)), known)


def pixel_maps(evidence: Evidence, lights: NDArray[np.floating]) -> Array:
    """Return the features (N, len(NAMES)) of all pixels."""
    there, parts = like(lights.astype(np.float32), evidence.pixels), []
    for first in range(0, len(evidence.pixels), AT_ONCE):
        which = slice(first, first + AT_ONCE)
        some, noise = evidence.some(which), cast(evidence.noise[which], "float32")
        own = some_lights(there, which)
        parts.append(features_of(some.pixels, some.colors, own, noise, some.both(), some.matte))
    xp = namespace(evidence.pixels)
    return xp.concatenate(parts) if parts else np.zeros((0, len(NAMES)), np.float32)
