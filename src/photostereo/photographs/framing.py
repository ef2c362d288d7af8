"""Crop, reduce and move pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.errors import ParameterError


@dataclass(frozen=True)
class Framing:
    """The part of the photographs that is used, and its scale."""

    #: (x, y, width, height) in pixels of the photographs from their top left corner; None for all of it
    crop: tuple[int, int, int, int] | None = None
    scale: float = 1.0  #: factor of both sides, at most 1; areas are averaged

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise ParameterError(
                f"The scale must be above 0 and at most 1; it is {self.scale}.",
                code="bad-scale",
                scale=self.scale,
            )

    @property
    def changes(self) -> bool:
        """Whether photographs are cropped or scaled."""
        return self.crop is not None or self.scale != 1.0

    def box(self, full: tuple[int, int]) -> tuple[slice, slice]:
        """Rows and columns of the part in photographs of this height and width."""
        height, width = full
        if self.crop is None:
            return slice(0, height), slice(0, width)
        x, y, w, h = self.crop
        if x < 0 or y < 0 or w < 1 or h < 1 or x + w > width or y + h > height:
            raise ParameterError(
                f"The crop {x},{y},{w},{h} (x, y, width, height) does not lie inside the "
                f"photographs, which are {width} pixels wide and {height} high.",
                code="crop-outside",
                crop=self.crop,
                x=x,
                y=y,
                w=w,
                h=h,
                width=width,
                height=height,
            )
        return slice(y, y + h), slice(x, x + w)

    def frame(self, full: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the part after scaling."""
        rows, cols = self.box(full)
        sides = (rows.stop - rows.start, cols.stop - cols.start)
        if self.scale == 1.0:
            return sides
        return max(1, round(sides[0] * self.scale)), max(1, round(sides[1] * self.scale))

    def picture(self, values: NDArray[Any]) -> NDArray[Any]:
        """Crop and scale a whole picture."""
        full = (int(values.shape[0]), int(values.shape[1]))
        part = values[self.box(full)]
        (height, width) = self.frame(full)
        if part.shape[:2] == (height, width):
            return part
        return np.asarray(cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA))

    def mask(self, mask: BoolArray) -> BoolArray:
        """Crop and scale a mask: it keeps pixels of which at least half lies inside."""
        if not self.changes:
            return mask
        return np.asarray(self.picture(mask.astype(np.float32)) >= 0.5)

    def mask_in_full(self, mask: BoolArray, full: tuple[int, int]) -> BoolArray:
        """Convert a mask of the part to one of the whole photographs."""
        whole = np.zeros(full, dtype=bool)
        box = self.box(full)
        size = (box[1].stop - box[1].start, box[0].stop - box[0].start)
        whole[box] = (
            cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_LINEAR) >= 0.5
        )
        return whole

    def positions(self, positions: NDArray[Any], full: tuple[int, int]) -> NDArray[Any]:
        """Convert positions (d, 3) in pixels from the middle of the photographs to those from the middle of the part."""
        rows, cols = self.box(full)
        x = 0.5 * (cols.start + cols.stop - full[1])
        y = 0.5 * (full[0] - rows.start - rows.stop)
        return np.asarray((positions - np.array([x, y, 0.0])) * self.scale)

    def truth(self, label: str, values: NDArray[Any]) -> NDArray[Any]:
        """Crop and scale true normals (renormalized), depth (in the new pixels) or albedo."""
        if not self.changes:
            return values
        small = self.picture(np.asarray(values, dtype=np.float32))
        if self.scale == 1.0:
            return small
        if label == "truth_depth":
            return small * np.float32(self.scale)
        if label == "truth":
            length = np.linalg.norm(small, axis=-1, keepdims=True)
            return np.asarray(
                np.where(length > 0.5, small / np.maximum(length, 1e-6), 0.0), dtype=np.float32
            )
        return small


def resized(picture: Float32, factor: float) -> Float32:
    """Reduce a picture by a factor, by averaging areas."""
    if factor == 1.0:
        return picture
    return np.asarray(cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA))


def coarse(picture: Float32, longest: int) -> Float32:
    """Reduce a picture so that its longer side has at most this many pixels."""
    return resized(picture, min(1.0, longest / max(picture.shape)))


def moved_back(picture: Float32, move: FloatArray) -> Float32:
    """Undo the displacement (columns, rows) and the turn about the center (radians, clockwise) of a picture."""
    if not np.any(move):
        return picture
    size = picture.shape[1::-1]
    turn = np.array([[np.cos(move[2]), -np.sin(move[2])], [np.sin(move[2]), np.cos(move[2])]])
    middle = 0.5 * (np.array(size) - 1)
    onto = np.column_stack([turn, middle + move[:2] - turn @ middle])
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(picture, onto, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    )
