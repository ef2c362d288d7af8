"""Photographs with the camera's movement undone as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.photographs.alignment.alignment import Alignment
from photostereo.photographs.alignment.motion import LONGEST, estimate_motion, shifted
from photostereo.photographs.source import Float32, Photographs

#: Fewer photographs do not predict each other.
FEWEST = 4
#: Rows beyond the displacement that cubic interpolation reads.
REACH = 2


def find_alignment(source: Photographs, control: Control = SILENT) -> Alignment:
    """Estimate how far the camera moved between photographs; each is decoded once."""
    count, (height, width) = source.shape[0], source.shape[1:3]
    if count < FEWEST:
        return Alignment.still(count)
    scale = min(1.0, LONGEST / max(height, width))
    control.stage("photographs", count)
    pictures = []
    for frame in source.frames():
        gray = gray_from_rgb(frame) if frame.ndim == 3 else frame
        # Brighter parts count no more than others: the root evens them out as a tone curve does.
        small = (
            cv2.resize(gray, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else gray
        )
        pictures.append(np.sqrt(np.maximum(small, 0)))
        control.advance()
    return Alignment.of(estimate_motion(pictures, scale, control))


class AlignedPhotographs:
    """A source of photographs, each with its movement undone.

    Parameters
    ----------
    source : Photographs
    corrected : (d, 2) array
        Displacement of each photograph in columns and rows; still photographs are passed on as they are.
    """

    def __init__(self, source: Photographs, corrected: NDArray[np.float64]) -> None:
        self.source, self.corrected = source, corrected

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def take(self, chosen: Sequence[int]) -> AlignedPhotographs:
        return AlignedPhotographs(self.source.take(chosen), self.corrected[list(chosen)])

    def frames(self) -> Iterator[Float32]:
        for frame, move in zip(self.source.frames(), self.corrected, strict=True):
            yield shifted(frame, move)

    def rows(self, first: int, last: int, which: slice = slice(None)) -> Float32:
        chosen = range(self.shape[0])[which]
        moves = self.corrected[which]
        reach = int(np.ceil(np.abs(moves[:, 1]).max(initial=0.0))) + REACH if moves.any() else 0
        top, bottom = max(first - reach, 0), min(last + reach, self.shape[1])
        wide = self.source.rows(top, bottom, which)
        if not moves.any():
            return wide
        cut = np.empty((len(chosen), last - first, *wide.shape[2:]), dtype=np.float32)
        for target, part, move in zip(cut, wide, moves, strict=True):
            target[:] = shifted(part, move)[first - top : last - top]
        return cut

    def all(self) -> Float32:
        images = self.source.all()
        if not self.corrected.any():
            return images
        return np.stack([shifted(image, move) for image, move in zip(images, self.corrected, strict=True)])

    def keep_decoded(self) -> None:
        self.source.keep_decoded()
