"""The field of corrections over an object, and its effect on the network's normals.

The correction is computed once, on a fixed number of cells across the object, so its cost does not
depend on the resolution. It is a witness like the others: it replaces the network's, with its own
expected error, and is averaged with the matte fit. A pixel that the matte fit explains does not
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, Float32, Indices
from photostereo.reflectance.learned.context.features import (
    BRIGHTNESS,
    NAMES,
    constants_of,
    features_of,
)
from photostereo.reflectance.learned.context.network import predict
from photostereo.reflectance.learned.evidence import PixelEvidence
from photostereo.reflectance.learned.matte import Witness, combine
from photostereo.runtime.arrays import Array, cast, like, namespace, to_numpy
from photostereo.runtime.illumination import mean_lights, some_lights

#: Cells along a side of the square.
SIDE = 80
#: Ratio of the side of the square to the longer side of the mask; the training scenes have 1.05 to
#: 1.17.
MARGIN = 1.11
#: Pixels per batch of features.
AT_ONCE = 8192


@dataclass(frozen=True)
class Square:
    """The square around an object, divided into SIDE × SIDE cells."""

    row: float  #: of its center
    column: float  #: of its center
    cell: float  #: side of a cell in pixels, at least one

    @classmethod
    def around(cls, mask: BoolArray) -> Square:
        """Return the square around the object of a mask, with a margin."""
        rows = np.flatnonzero(mask.any(1))
        columns = np.flatnonzero(mask.any(0))
        longer = max(rows[-1] - rows[0], columns[-1] - columns[0]) + 1
        return cls(
            row=float(rows[0] + rows[-1]) / 2,
            column=float(columns[0] + columns[-1]) / 2,
            cell=max(1.0, MARGIN * float(longer) / SIDE),
        )

    @property
    def pixels(self) -> Float32:
        """Number of pixels, of the object or not, in each cell (SIDE, SIDE).

        It varies if cells are small.
        """
        reach = int(SIDE * self.cell)

        def along(middle: float) -> Float32:
            places = np.arange(int(middle) - reach, int(middle) + reach)
            cells = np.floor((places - middle) / self.cell + SIDE / 2).astype(np.intp)
            inside = cells[(cells >= 0) & (cells < SIDE)]
            return np.bincount(inside, minlength=SIDE).astype(np.float32)

        return np.outer(along(self.row), along(self.column))

    def places(self, rows: Indices, columns: Indices) -> tuple[Float32, Float32]:
        """Return positions of pixels, in units of a cell from the top left corner of the square."""
        down = (rows - self.row) / self.cell + SIDE / 2
        right = (columns - self.column) / self.cell + SIDE / 2
        return down.astype(np.float32), right.astype(np.float32)

    def average(self, rows: Indices, columns: Indices, values: Array) -> tuple[Float32, Float32]:
        """Average values over the pixels of each cell.

        Parameters
        ----------
        rows, columns : array of int (N,)
            The pixels.
        values : array (N, K)

        Returns
        -------
        means : array (SIDE, SIDE, K)
        count : array (SIDE, SIDE)
            The number of pixels.
        """
        down, right = self.places(rows, columns)
        # Rounding may put a pixel of the margin just outside.
        r = np.clip(down.astype(np.intp), 0, SIDE - 1)
        c = np.clip(right.astype(np.intp), 0, SIDE - 1)
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
        self, rows: Indices, columns: Indices, maps: Float32, occupied: BoolArray
    ) -> Float32:
        """Interpolate maps at pixels, bilinearly between the centers of occupied cells.

        Parameters
        ----------
        rows, columns : array of int (N,)
            The pixels.
        maps : array (SIDE, SIDE, K)
        occupied : array of bool (SIDE, SIDE)

        Returns
        -------
        array (N, K)
        """
        # Empty cells have no value: they must not pull on their neighbors.
        weight = occupied.astype(np.float32)[..., None]
        flat = np.concatenate([maps * weight, weight], -1).reshape(SIDE * SIDE, -1)
        top, left = (np.clip(place - 0.5, 0, SIDE - 1) for place in self.places(rows, columns))
        r, c = (np.minimum(place.astype(np.intp), SIDE - 2) for place in (top, left))
        down = (top - r)[:, None]
        right = (left - c)[:, None]
        total = np.zeros((len(r), flat.shape[1]), np.float32)
        for dr, row_share in ((0, 1 - down), (1, down)):
            for dc, column_share in ((0, 1 - right), (1, right)):
                total += row_share * column_share * flat[(r + dr) * SIDE + c + dc]
        return np.asarray(total[:, :-1] / np.maximum(total[:, -1:], 1e-3), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Correction:
    """Correction of the network's witness."""

    shift: Float32  #: (N, 3), added to the unit normals
    factor: Float32  #: (N,), on their variance

    @classmethod
    def none(cls, count: int) -> Correction:
        """Return a correction that changes nothing."""
        return cls(np.zeros((count, 3), np.float32), np.ones(count, np.float32))

    def some(self, which: slice) -> Correction:
        """Return a copy for some of the pixels."""
        return Correction(self.shift[which] + 0, self.factor[which] + 0)

    def combine(self, network: Witness, matte: Witness) -> Witness:
        """Combine the network's corrected witness with the matte fit.

        Against it, the correction never has more weight than the network, and less the farther it
        moves the normal: by at most v / (2 · the network's expected error), with v the variance of
        the matte fit.
        """
        if not self.shift.any():
            return combine(network, matte)
        xp = namespace(network.variance)
        normals = network.normals + like(self.shift, network.normals)
        normals = normals / (xp.sqrt((normals * normals).sum(-1))[:, None] + 1e-12)
        factor = like(self.factor, network.variance)
        moved = ((normals - network.normals) ** 2).sum(-1)
        corrected = Witness(normals, network.variance * factor.clip(1.0) + moved)
        precision = 1.0 / (network.variance * factor) + 1.0 / matte.variance
        return Witness(combine(corrected, matte).normals, 1.0 / precision)


@dataclass(frozen=True, eq=False)
class Field:
    """Corrections in the cells of a square."""

    square: Square
    maps: Float32  #: (SIDE, SIDE, 4) shift, and half the logarithm of the factor
    occupied: BoolArray  #: (SIDE, SIDE) whether a cell contains pixels of the object

    def at(self, rows: Indices, columns: Indices) -> Correction:
        """Return the correction at pixels of the picture."""
        values = self.square.spread(rows, columns, self.maps, self.occupied)
        return Correction(values[:, :3], np.exp(2.0 * values[:, 3]))


def find_field(evidence: PixelEvidence, mask: BoolArray, weights: Mapping[str, Float32]) -> Field:
    """Compute the field of an object.

    Parameters
    ----------
    evidence : PixelEvidence
        Of its pixels.
    mask : array of bool (H, W)
        Their positions, row by row.
    weights : mapping of str to array
        Of the context network.
    """
    lights = evidence.observations.lights
    square = Square.around(mask)
    rows, columns = np.nonzero(mask)
    values, count = square.average(rows, columns, pixel_maps(evidence))
    occupied = count > 0
    # Relative to the object: the network must not depend on exposure.
    brightness = values[..., BRIGHTNESS]
    brightness -= (brightness * count).sum() / max(float(count.sum()), 1.0)
    constants = constants_of(mean_lights(lights), lights.shape[-1])
    everywhere = np.broadcast_to(constants, (SIDE, SIDE, len(constants)))
    # The share of a cell that the object covers tells the network where its border is.
    cover = count / np.maximum(square.pixels, 1.0)
    maps = np.concatenate([values, everywhere, cover[..., None]], -1) * occupied[..., None]
    return Field(square, predict(weights, maps.astype(np.float32)), occupied)


def pixel_maps(evidence: PixelEvidence) -> Array:
    """Return the features (N, len(NAMES)) of all pixels."""
    pixels, _, lights = evidence.observations
    directions = like(lights.astype(np.float32), pixels)
    parts = []
    for first in range(0, len(pixels), AT_ONCE):
        which = slice(first, first + AT_ONCE)
        some = evidence.some(which)
        gray, colors, _ = some.observations
        parts.append(
            features_of(
                gray,
                colors,
                some_lights(directions, which),
                cast(some.noise, "float32"),
                combine(some.network, some.matte),
                some.matte,
            )
        )
    return namespace(pixels).concatenate(parts) if parts else np.zeros((0, len(NAMES)), np.float32)
