"""A capture: photographs of one object from one viewpoint, each under one light.

One frozen, validated object holds all the input that a method needs. Problems with the input are detected here or in the
readers of :mod:`photostereo.capture`, never later inside a method.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray, gray_from_rgb
from photostereo.core.display import Displayed
from photostereo.core.errors import EMPTY_MASK, CaptureError
from photostereo.core.findings import Finding, distinct
from photostereo.lights.lights import Lights
from photostereo.photographs.frames import (
    Frames,
    FramesInMemory,
    digest_of,
    hash_of,
    require_finite,
)
from photostereo.runtime.illumination import PixelLights
from photostereo.runtime.threads import in_turn, processors

if TYPE_CHECKING:
    from photostereo.capture.ball_check import BallCheck
    from photostereo.lights.ball.calibration import Calibration
    from photostereo.photographs.alignment.alignment import Alignment
    from photostereo.photographs.faults import Fault
    from photostereo.photographs.framing import Framing

#: The brightness scale is computed from about this many evenly spread mask pixels; more change its fourth digit.
SAMPLED_PIXELS = 5_000
#: The scale is this quantile of the intensities, which is robust to highlights.
SCALE_SHARE = 0.99


@dataclass(frozen=True)
class Origin:
    """Where a capture came from; for reports only, no method uses it."""

    path: Path  #: the folder or file it was read from
    layout: str  #: the name of the format, e.g. ``"DiLiGenT"``
    bit_depth: int = 0  #: bits per channel of the photographs on disk, 0 if not applicable
    files: tuple[str, ...] = ()  #: names of the photographs, in the order of the lights
    notes: tuple[Finding, ...] = ()  #: notes of the reader for the user
    doubts: tuple[Finding, ...] = ()  #: what may be wrong and was not corrected
    calibration: Calibration | None = None  #: the calibration from a ball, or None
    #: comparison of the light file with a ball, or None
    ball_check: BallCheck | None = field(default=None, compare=False)
    #: camera movement between the photographs, if estimated
    alignment: Alignment | None = field(default=None, compare=False)
    faults: tuple[Fault, ...] = ()  #: photographs left out, with reasons
    #: framing, full_frame: the part of the photographs that is used, and their height and width
    framing: Framing | None = field(default=None, compare=False)
    full_frame: tuple[int, int] | None = field(default=None, compare=False)
    axes: str = ""  #: axes set by the user, e.g. ``"x,-y,z"``
    straightened: bool = False  #: whether a tone curve was undone


@dataclass(frozen=True, eq=False, init=False)
class Capture(Displayed):
    """Photographs, lights, mask and, if known, the truth; validated, frozen, with read-only arrays.

    Parameters
    ----------
    images : (d, H, W) or (d, H, W, 3) array, or a source of photographs that stay on disk
        Linear intensities with the lights' strengths divided out. Kept as float32; numbers of 8 or
        16 bits are divided by their largest value (255 or 65535).
    lights : Lights or (d, 3) array, optional
        Directions from the object to the lights (x right, y up, z toward the camera). Their strengths are divided
        out of the photographs. None if they are not known yet: any use of them then raises a
        :class:`CaptureError` with the code ``"no-lights"``.
    mask : (H, W) array of bool, optional
        True on the object; by default the whole frame.
    name : str
        Used in messages, reports and file names.
    truth : (H, W, 3) array, optional
        True unit normals; the zero vector where the truth is unknown.
    truth_depth, truth_albedo : arrays, optional
        True depth (H, W), in pixels toward the camera, and albedo (H, W) or (H, W, 3).
    origin : Origin, optional
        The layout it was read from, its bit depth, and notes.

    Attributes
    ----------
    photographs : Frames
        The photographs, in memory or on disk: one by one, or in bands of rows. :attr:`images` is the whole stack.

    Examples
    --------
    >>> import numpy as np
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> capture = Capture(images=np.ones((3, 4, 5)), lights=lights, name="wall")
    >>> capture
    Capture('wall': 3 photographs, 4 × 5, gray, 20 mask pixels, no truth)
    """

    photographs: Frames
    lights: Lights
    mask: BoolArray
    name: str
    truth: FloatArray | None
    truth_depth: FloatArray | None
    truth_albedo: FloatArray | None
    origin: Origin | None

    def __init__(
        self,
        images: ArrayLike | Frames | None = None,
        lights: Lights | ArrayLike | None = None,
        mask: ArrayLike | None = None,
        name: str = "capture",
        truth: ArrayLike | None = None,
        truth_depth: ArrayLike | None = None,
        truth_albedo: ArrayLike | None = None,
        origin: Origin | None = None,
        *,
        photographs: Frames | None = None,  # set by dataclasses.replace
    ) -> None:
        source = as_source(photographs if images is None else images, name)
        count, *frame = source.shape[:3]
        whole = tuple(frame)
        vectors = (*frame, 3)
        covered = np.ones(whole, dtype=bool) if mask is None else mask
        parts: dict[str, Any] = {
            "photographs": source,
            "mask": _part(covered, bool, (whole,), "a mask", name),
            "name": name,
            "truth": _part(truth, np.float32, (vectors,), "true normals", name),
            "truth_depth": _part(truth_depth, np.float32, (whole,), "true depth", name),
            "truth_albedo": _part(truth_albedo, np.float32, (whole, vectors), "true albedo", name),
            "origin": origin,
        }
        if not parts["mask"].any():
            raise CaptureError(
                f"The mask of {name} {EMPTY_MASK}",
                code="empty-mask",
                remedy="whole-frame",
                name=name,
            )
        lights = lights if isinstance(lights, Lights) else Lights(lights, count=count)
        parts["lights"] = lights.require_usable(count, name)
        for label, part in parts.items():
            object.__setattr__(self, label, part)

    @property
    def whole_mask(self) -> BoolArray:
        """The mask at the full size of the photographs on disk; the mask itself if they are used whole."""
        origin = self.origin
        if origin is None or origin.framing is None or origin.full_frame is None:
            return self.mask
        if origin.framing.frame(origin.full_frame) != self.frame:
            return self.mask
        return origin.framing.mask_in_full(self.mask, origin.full_frame)

    def __repr__(self) -> str:
        height, width = self.frame
        kind = "RGB" if self.is_color else "gray"
        truth = "with truth" if self.truth is not None else "no truth"
        place = "" if self.in_memory else " on disk"
        return (
            f"Capture({self.name!r}: {len(self)} photographs{place}, {height} × {width}, {kind}, "
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

    @property
    def in_memory(self) -> bool:
        """Whether the whole stack is in memory; otherwise every access decodes the photographs."""
        return isinstance(self.photographs, FramesInMemory)

    @property
    def stack_bytes(self) -> int:
        """Size of the whole stack in memory, in bytes."""
        return 4 * math.prod(self.photographs.shape)

    @cached_property
    def images(self) -> Float32:
        """The whole stack, (d, H, W) or (d, H, W, 3); photographs on disk are decoded on first access and kept."""
        images = self.photographs.all()
        images.flags.writeable = False
        return images

    def loaded(self, control: Control = SILENT, images: Float32 | None = None) -> Capture:
        """Return the capture with its photographs in memory; findings from decoding are added to the notes.

        ``images`` are the photographs, if they are already decoded.
        """
        if self.in_memory:
            return self
        source = self.photographs
        origin = self.origin
        images = source.all(control) if images is None else images
        if origin is not None and source.bit_depth:
            notes = distinct((*origin.notes, *source.notes))
            origin = replace(origin, bit_depth=source.bit_depth, notes=notes)
        return replace(self, photographs=FramesInMemory(images), origin=origin)

    def lights_at(self, index: NDArray[Any]) -> PixelLights:
        """Lights at the given pixels (row-major indices into the frame)."""
        near = index if self.lights.is_near else index[:0]  # distant lights are the same everywhere
        return self.lights.over(*np.divmod(near, self.frame[1]), self.frame)

    def evened(self) -> Capture:
        """Return the capture in memory with the fall-off of near lights removed; itself if the lights are distant."""
        if not self.lights.is_near:
            return self
        fall_off = self.lights_at(np.arange(self.mask.size)).fall_off
        assert fall_off is not None
        by_frame = fall_off.T.reshape(len(self), *self.frame, *(1,) * self.is_color)
        return replace(self, photographs=FramesInMemory(self.images / by_frame))

    @cached_property
    def pixel_count(self) -> int:
        """The number of mask pixels."""
        return int(np.count_nonzero(self.mask))

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify photographs, lights and mask (not the name or the truth)."""
        directions = self.lights.directions if self.lights.known else np.empty((0, 3))
        hashes: Iterable[bytes] = map(hash_of, self.photographs.frames())
        if self.in_memory:  # in threads: else as slow as least squares
            hashes = in_turn(lambda number: hash_of(self.images[number]), len(self), processors())
        return digest_of(self.photographs.shape, hashes, directions, self.mask)

    def gray(self) -> Capture:
        """The same capture in gray; itself if it is gray already."""
        if not self.is_color:
            return self
        images = np.empty(self.images.shape[:3], dtype=np.float32)
        for target, rgb in zip(images, self.images, strict=True):
            target[:] = gray_from_rgb(rgb)
        return replace(self, photographs=FramesInMemory(images))  # already validated

    def with_images(self, images: ArrayLike | Frames) -> Capture:
        """Return a capture with other photographs of the same object under the same lights."""
        return replace(self, photographs=as_source(images, self.name))

    def pixels(self, scale: float = 1.0) -> Float32:
        """Gray intensities of the mask pixels divided by ``scale``: an (N, d) array with pixels in row-major
        order."""
        result = np.empty((self.pixel_count, len(self)), dtype=np.float32)
        index = np.flatnonzero(self.mask)
        flat = self.images.reshape(len(self), self.mask.size, *self.images.shape[3:])
        # Blocks keep the transposing copy inside the cache. Rows of 2ⁿ bytes would map to the same few cache lines.
        block = 1000
        for first in range(0, len(index), block):
            values = np.take(flat, index[first : first + block], axis=1, mode="clip")
            gray = gray_from_rgb(values) if self.is_color else values
            result[first : first + block] = gray.T / np.float32(scale)
        return result

    def colors(self, scale: float = 1.0) -> Float32:
        """Intensities of the mask pixels in color, divided by ``scale``: an (N, d, 3) array.

        A gray capture has three equal channels, which are not copied.
        """
        if not self.is_color:
            gray = self.pixels(scale)
            return np.broadcast_to(gray[..., None], (*gray.shape, 3))
        result = np.empty((self.pixel_count, len(self), 3), dtype=np.float32)
        for number, image in enumerate(self.photographs.frames()):
            result[:, number] = image[self.mask] / np.float32(scale)
        return result

    def intensity_scale(self) -> float:
        """One brightness for the whole capture: the 99th percentile of the gray intensities inside the mask.

        Unlike the maximum, it is robust to highlights. Dividing by it makes λ and μ mean the same on every
        capture. Large captures are sampled evenly over the pixels (all photographs of each), which has no
        noticeable effect.
        """
        index = np.flatnonzero(self.mask)[
            :: self.scale_step
        ].copy()  # a view would keep the full array alive
        values = np.stack([gray_of(photograph, index) for photograph in self.photographs.frames()])
        scale = float(np.quantile(values, SCALE_SHARE))
        return scale if scale > 0 else 1.0

    def require_light(self) -> None:
        """Raise a :class:`CaptureError` ``"black-photographs"`` if all photographs are black inside the mask."""
        # Stops at the first photograph that is not black.
        if not any((image[self.mask] > 0).any() for image in self.photographs.frames()):
            raise CaptureError(
                f"All {len(self)} photographs of {self.name} are black inside the mask, so the "
                "object is not visible. Check the exposure, the files and the mask.",
                code="black-photographs",
                photographs=len(self),
                name=self.name,
            )

    @property
    def scale_step(self) -> int:
        """Step n: the brightness scale uses every n-th mask pixel."""
        return max(1, self.pixel_count // SAMPLED_PIXELS)

    def take(
        self,
        which: int | Sequence[int] | NDArray[Any],
        rng: np.random.Generator | int | None = None,
    ) -> Capture:
        """Return a subset of the photographs: N chosen at random (in their original order), or those listed.

        >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1], [-0.5, 0, 1]])
        >>> capture = Capture(images=np.ones((4, 2, 2)), lights=lights, name="wall")
        >>> len(capture.take(3, rng=0)), len(capture.take([0, 2, 3]))
        (3, 3)
        """
        if isinstance(which, (int, np.integer)):
            if not 3 <= which <= len(self):
                raise CaptureError(
                    f"{int(which)} photographs were requested, but {self.name} has {len(self)} "
                    f"and at least 3 are needed. Choose a number from 3 to {len(self)}.",
                    code="photograph-count",
                    requested=int(which),
                    available=len(self),
                    name=self.name,
                )
            generator = np.random.default_rng(rng)
            chosen = np.sort(generator.choice(len(self), size=int(which), replace=False))
        else:
            chosen = np.asarray(which)
        origin = self.origin
        if origin is not None and len(origin.files) == len(self):
            origin = replace(origin, files=tuple(np.asarray(origin.files)[chosen].tolist()))
        source = self.photographs.take(chosen.tolist())
        return replace(self, photographs=source, lights=self.lights.take(chosen), origin=origin)


def as_source(images: ArrayLike | Frames | None, name: str) -> Frames:
    """Return a source of photographs: from a stack of at least three with finite values, or the source itself."""
    if isinstance(images, Frames):
        return images
    numbers = np.asarray(() if images is None else images)
    stack = np.ascontiguousarray(numbers, dtype=np.float32)
    if numbers.dtype in (np.uint8, np.uint16):
        # As cameras store them; other integers have no largest value that means anything.
        stack = stack / np.float32(np.iinfo(numbers.dtype).max)
    if stack.ndim not in (3, 4) or (stack.ndim == 4 and stack.shape[3] != 3):
        raise CaptureError(
            f"The photographs of {name} have the shape {stack.shape}; expected (photographs, "
            "height, width) for gray or (photographs, height, width, 3) for color. Stack them "
            "along the first axis.",
            code="photographs-shape",
            shape=stack.shape,
            name=name,
        )
    require_count(len(stack), name)
    for number, image in enumerate(stack, 1):
        require_finite(image, None, f"Photograph {number} of {name}")
    return FramesInMemory(stack)


def photographs_of_seed(seed: int) -> np.random.Generator:
    """Random generator for choosing photographs: the same for a solve, ``corrupt`` and a sweep, whatever the noise."""
    return np.random.default_rng([seed, 1])


def require_count(count: int, name: str, file: Path | None = None) -> None:
    """Raise a :class:`CaptureError` ``"too-few-photographs"`` if there are fewer than three."""
    if count < 3:
        raise CaptureError(
            "Photometric stereo needs at least three photographs under different lights (ten or "
            f"more for good results); {name} has {count}. Add photographs.",
            code="too-few-photographs",
            file=file,
            found=count,
            name=name,
        )


def _part(value: Any, dtype: Any, shapes: Sequence[tuple[int, ...]], words: str, name: str) -> Any:
    """Return a read-only array of one of these shapes, copied only if needed; None for None."""
    if value is None:
        return None
    array = np.ascontiguousarray(value, dtype=dtype).view()  # the caller's array stays writable
    array.flags.writeable = False
    if array.shape not in shapes:
        expected = " or ".join(" × ".join(map(str, shape)) for shape in shapes)
        size = " × ".join(map(str, array.shape))
        facts: dict[str, Any] = {"found": array.shape, "expected": shapes[0]}
        raise CaptureError(
            f"{name}: the photographs need {words} of {expected} (rows × columns), not {size}. "
            "Scale or crop one of them so that they match.",
            code="frame-mismatch",
            name=name,
            part=words,
            needed=expected,
            size=size,
            **facts,
        )
    return array


def gray_of(photograph: NDArray[Any], index: NDArray[Any]) -> Float32:
    """Gray values of the pixels of one photograph at these flat indices."""
    if photograph.ndim == 3:
        return np.asarray(gray_from_rgb(photograph.reshape(-1, 3)[index]), np.float32)
    return np.take(photograph, index, mode="clip")  # avoids the extra copy of mode="raise"
