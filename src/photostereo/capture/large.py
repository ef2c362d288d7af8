"""A capture whose photographs stay on disk: what is solved band by band where the whole does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from photostereo.capture.capture import Capture, Origin, validated_lights
from photostereo.capture.photographs import PhotographFiles, Photographs, PhotographsInMemory
from photostereo.conventions import BoolArray, FloatArray
from photostereo.errors import CaptureError


@dataclass(frozen=True, eq=False)
class LargeCapture:
    """Like :class:`~photostereo.capture.Capture`, with a source of photographs in place of the stack.

    Examples
    --------
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> capture = LargeCapture.of(Capture(images=np.ones((3, 40, 50)), lights=lights, name="wall"))
    >>> capture.band(10, 20).frame
    (10, 50)
    """

    photographs: Photographs
    lights: FloatArray
    mask: BoolArray
    name: str = "capture"
    truth: FloatArray | None = None
    truth_depth: FloatArray | None = None
    truth_albedo: FloatArray | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lights", validated_lights(self.lights, len(self), self.name))
        if not self.mask.any():
            raise CaptureError(
                f"The mask of {self.name} is empty: no pixel belongs to the object. Give a mask that is white on "
                "the object and black elsewhere, or no mask at all to use the full frame."
            )

    @classmethod
    def of(cls, capture: Capture) -> LargeCapture:
        """A capture in memory, as a source."""
        return cls(
            PhotographsInMemory(np.asarray(capture.images)),
            capture.lights,
            capture.mask,
            capture.name,
            capture.truth,
            capture.truth_depth,
            capture.truth_albedo,
            capture.origin,
        )

    def __repr__(self) -> str:
        height, width = self.frame
        kind = "RGB" if self.is_color else "gray"
        truth = "with truth" if self.truth is not None else "no truth"
        return (
            f"LargeCapture({self.name!r}: {len(self)} photographs, {height} × {width}, {kind}, "
            f"{self.pixel_count} mask pixels, {truth})"
        )

    def __len__(self) -> int:
        """The number of photographs."""
        return int(self.photographs.shape[0])

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.photographs.shape[1]), int(self.photographs.shape[2])

    @property
    def is_color(self) -> bool:
        """Whether the photographs have three channels."""
        return len(self.photographs.shape) == 4

    @cached_property
    def pixel_count(self) -> int:
        """The number of mask pixels."""
        return int(np.count_nonzero(self.mask))

    def band(self, first: int, last: int) -> Capture:
        """These rows, in memory; without the truth."""
        return Capture(
            images=self.photographs.rows(first, last),
            lights=self.lights,
            mask=self.mask[first:last],
            name=self.name,
        )

    def take(self, which: int | Sequence[int], rng: np.random.Generator | int | None = None) -> LargeCapture:
        """A subset of the photographs, drawn as by :meth:`Capture.take`."""
        chosen: list[int]
        if isinstance(which, int):
            if not 3 <= which <= len(self):
                raise CaptureError(
                    f"{which} photographs were asked for, but {self.name} has {len(self)} and at least 3 are needed. "
                    f"Choose a number from 3 to {len(self)}."
                )
            generator = np.random.default_rng(rng)
            chosen = np.sort(generator.choice(len(self), size=which, replace=False)).tolist()
        else:
            chosen = list(which)
        if isinstance(self.photographs, PhotographFiles):
            source: Photographs = self.photographs.take(chosen)
        else:
            source = PhotographsInMemory(np.stack([*self.photographs.frames()])[chosen])
        origin = self.origin
        if origin is not None and len(origin.files) == len(self):
            origin = replace(origin, files=tuple(np.asarray(origin.files)[chosen].tolist()))
        return replace(self, photographs=source, lights=self.lights[chosen], origin=origin)


def bytes_of_stack(shape: tuple[int, ...]) -> int:
    """What the photographs would take in memory."""
    return 4 * int(np.prod(shape, dtype=np.int64))
