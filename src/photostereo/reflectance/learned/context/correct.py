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

from photostereo.core.conventions import BoolArray, Float32
from photostereo.reflectance.learned.context.features import (
    BRIGHTNESS,
    NAMES,
    constants_of,
    features_of,
)
from photostereo.reflectance.learned.context.network import predict
from photostereo.reflectance.learned.evidence import Evidence
from photostereo.reflectance.learned.matte import Witness, combine
from photostereo.runtime.arrays import Array, cast, like, namespace, to_numpy
from photostereo.runtime.illumination import mean_lights, some_lights

#: Cells along a side of the square.
SIDE = 80
#: Ratio of the side of the square to the longer side of the mask; the training scenes have 1.05 to 1.17.
MARGIN = 1.11
#: Pixels per batch of features.
AT_ONCE = 8192


@dataclass(frozen=True)
class Square:
    """The square around an object: its center (row, column) and the side of a cell in pixels, at least one."""

    row: float
    column: float
    cell: float

    @classmethod
    def around(cls, mask: BoolArray) -> Square:
        rows = np.flatnonzero(mask.any(1))
        columns = np.flatnonzero(mask.any(0))
        longer = max(rows[-1] - rows[0], columns[-1] - columns[0]) + 1
        return cls(
            float(rows[0] + rows[-1]) / 2,
            float(columns[0] + columns[-1]) / 2,
            max(1.0, MARGIN * float(longer) / SIDE),
        )

    @property
    def pixels(self) -> Float32:
        """Number of pixels, of the object or not, in each cell (SIDE, SIDE); it varies if cells are small."""
        reach = int(SIDE * self.cell)

        def along(middle: float) -> Float32:
            places = np.arange(int(middle) - reach, int(middle) + reach)
            places = np.floor((places - middle) / self.cell + SIDE / 2).astype(np.intp)
            return np.bincount(places[(places >= 0) & (places < SIDE)], minlength=SIDE).astype(
                np.float32
            )

        return np.outer(along(self.row), along(self.column))

    def places(
        self, rows: NDArray[np.integer], columns: NDArray[np.integer]
    ) -> tuple[Float32, Float32]:
        """Positions of pixels, in units of a cell from the top left corner of the square."""
        down = ((rows - self.row) / self.cell + SIDE / 2).astype(np.float32)
        return down, ((columns - self.column) / self.cell + SIDE / 2).astype(np.float32)

    def average(
        self, rows: NDArray[np.integer], columns: NDArray[np.integer], values: Array
    ) -> tuple[Float32, Float32]:
        """Means (SIDE, SIDE, K) of (N, K) values over the pixels of each cell, and the number of pixels (SIDE, SIDE)."""
        r, c = (np.clip(part.astype(np.intp), 0, SIDE - 1) for part in self.places(rows, columns))
        index = r * SIDE + c
        count = np.bincount(index, minlength=SIDE * SIDE).astype(np.float32)
        if isinstance(values, np.ndarray):
            total = np.stack([np.bincount(index, column, SIDE * SIDE) for column in values.T], -1)
        else:
            zero = values.new_zeros(SIDE * SIDE, values.shape[1])
            total = to_numpy(zero.index_add_(0, like(index, values), values))
        mean = total / np.maximum(count, 1.0)[:, None]
        return mean.astype(np.float32).reshape(SIDE, SIDE, -1), count.reshape(SIDE, SIDE)

    def spread(
        self,
        rows: NDArray[np.integer],
        columns: NDArray[np.integer],
        maps: Float32,
        known: BoolArray,
    ) -> Float32:
        """Interpolate maps (SIDE, SIDE, K) at the pixels (N, K): bilinear between the centers of known cells."""
        weight = known.astype(np.float32)[..., None]
        flat = np.concatenate([maps * weight, weight], -1).reshape(SIDE * SIDE, -1)
        top, left = (np.clip(part - 0.5, 0, SIDE - 1) for part in self.places(rows, columns))
        r, c = (np.minimum(part.astype(np.intp), SIDE - 2) for part in (top, left))
        down = (top - r)[:, None]
        right = (left - c)[:, None]
        total = np.zeros((len(r), flat.shape[1]), np.float32)
        for dr, row_share in ((0, 1 - down), (1, down)):
            for dc, column_share in ((0, 1 - right), (1, right)):
                total += row_share * column_share * flat[(r + dr) * SIDE + c + dc]
        return np.asarray(total[:, :-1] / np.maximum(total[:, -1:], 1e-3), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Correction:
    """Additive correction of the network's unit normals (N, 3), and the factor on their variance (N,)."""

    shift: Float32
    factor: Float32

    @classmethod
    def none(cls, count: int) -> Correction:
        """Return a correction that changes nothing."""
        return cls(np.zeros((count, 3), np.float32), np.ones(count, np.float32))

    def some(self, which: slice) -> Correction:
        """Return a copy for some of the pixels."""
        return Correction(self.shift[which] + 0, self.factor[which] + 0)

    def together(self, network: Witness, matte: Witness) -> Witness:
        """Combine the network's corrected witness with the matte fit. Against it, the correction never has more weight than
        the network, and less the farther it moves the normal: by at most v / (2 · the network's expected error), with v
        the variance of the matte fit."""
        if not self.shift.any():
            return combine(network, matte)
        xp = namespace(network.variance)
        normals = network.normals + like(self.shift, network.normals)
        normals = normals / (xp.sqrt((normals * normals).sum(-1))[:, None] + 1e-12)
        factor = like(self.factor, network.variance)
        moved = ((normals - network.normals) ** 2).sum(-1)
        found = combine(Witness(normals, network.variance * factor.clip(1.0) + moved), matte)
        return Witness(
            found.normals, 1.0 / (1.0 / (network.variance * factor) + 1.0 / matte.variance)
        )


@dataclass(frozen=True, eq=False)
class Field:
    """Corrections of the cells (SIDE, SIDE, 4) of a square, and the cells that contain pixels of the object."""

    square: Square
    maps: Float32
    known: BoolArray

    def at(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Correction:
        """Return the correction at pixels of the picture."""
        found = self.square.spread(rows, columns, self.maps, self.known)
        return Correction(found[:, :3], np.exp(2.0 * found[:, 3]))


def find_field(evidence: Evidence, mask: BoolArray, weights: Mapping[str, Float32]) -> Field:
    """Compute the field of an object from the evidence of its mask pixels."""
    lights = evidence.seen.lights
    square = Square.around(mask)
    (rows, columns) = np.nonzero(mask)
    values, count = square.average(rows, columns, pixel_maps(evidence))
    known = count > 0
    brightness = values[..., BRIGHTNESS]
    brightness -= (brightness * count).sum() / max(float(count.sum()), 1.0)
    constants = np.broadcast_to(
        constants_of(mean_lights(lights), lights.shape[-1]), (SIDE, SIDE, 5)
    )
    cover = count / np.maximum(square.pixels, 1.0)
    maps = np.concatenate([values, constants, cover[..., None]], -1) * known[..., None]
    return Field(square, predict(weights, maps.astype(np.float32)), known)


def pixel_maps(evidence: Evidence) -> Array:
    """Return the features (N, len(NAMES)) of all pixels."""
    pixels, _, lights = evidence.seen
    there = like(lights.astype(np.float32), pixels)
    parts = []
    for first in range(0, len(pixels), AT_ONCE):
        which = slice(first, first + AT_ONCE)
        some = evidence.some(which)
        noise = cast(evidence.noise[which], "float32")
        both = combine(some.network, some.matte)
        own = some_lights(there, which)
        parts.append(features_of(some.seen.pixels, some.seen.colors, own, noise, both, some.matte))
    return namespace(pixels).concatenate(parts) if parts else np.zeros((0, len(NAMES)), np.float32)
