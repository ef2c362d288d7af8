"""A capture: photographs of one object from one viewpoint under known distant lights.

Everything that any method needs to know about the input is in one frozen, validated object. Whatever is
wrong with the input is found here or in the readers of :mod:`photostereo.capture`, never later inside a method.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.backend import CPU, Array, Device, contiguous, like
from photostereo.conventions import GRAY_WEIGHTS, BoolArray, FloatArray, gray_from_rgb
from photostereo.errors import CaptureError
from photostereo.lights.calibration import Calibration
from photostereo.lights.files import row_lengths

#: The brightness scale is taken from about so many mask pixels, evenly spread.
SAMPLED_PIXELS = 5_000
#: Below this ratio of the smallest to the largest singular value of the lights they count as lying in a
#: plane.
COPLANAR_RATIO = 1e-3


@dataclass(frozen=True)
class Origin:
    """Where a capture came from; for reports only, no method looks at it.

    Attributes
    ----------
    path : the folder or file it was read from
    layout : the name of the format, e.g. ``"DiLiGenT"``
    bit_depth : bits per channel of the photographs on disk, 0 where that has no meaning
    files : names of the photographs, in the order of the lights
    notes : anything the reader noticed that the user should know
    calibration : how the lights were found, where the photographs came without
    """

    path: Path
    layout: str
    bit_depth: int = 0
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    calibration: Calibration | None = None


@dataclass(frozen=True, eq=False)
class Capture:
    """Photographs, lights, mask and perhaps the truth; validated, frozen, arrays read-only.

    Parameters
    ----------
    images : (d, H, W) or (d, H, W, 3) array
        Linear intensities with the lights' strengths divided out. Kept as float32.
    lights : (d, 3) array
        Directions from the object to the lights (x right, y up, z to the camera). Normalised to unit
        length: a light's strength belongs to the photographs, not here.
    mask : (H, W) array of bool, optional
        True on the object. The full frame where it is missing.
    name : str
    truth : (H, W, 3) array, optional
        True unit normals; the zero vector where the truth is unknown.
    truth_depth, truth_albedo : arrays, optional
        True depth (H, W), in pixels towards the camera, and albedo (H, W) or (H, W, 3).
    origin : Origin, optional

    Examples
    --------
    >>> import numpy as np
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> capture = Capture(images=np.ones((3, 4, 5)), lights=lights, name="wall")
    >>> capture
    Capture('wall': 3 photographs, 4 × 5, gray, 20 mask pixels, no truth)
    """

    images: FloatArray
    lights: FloatArray
    mask: BoolArray = None  # type: ignore[assignment]  # the full frame; settled before anyone can look
    name: str = "capture"
    truth: FloatArray | None = None
    truth_depth: FloatArray | None = None
    truth_albedo: FloatArray | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        images = _validated_images(self.images, self.name)
        frame = images.shape[1:3]
        mask = np.ones(frame, dtype=bool) if self.mask is None else _as_array(self.mask, bool)
        _require_frame(mask, (frame,), "mask", self.name)
        if not mask.any():
            raise CaptureError(
                f"The mask of {self.name} is empty: no pixel belongs to the object. Give a mask that is white on "
                "the object and black elsewhere, or no mask at all to use the full frame."
            )
        settled: dict[str, Any] = {
            "images": images,
            "lights": validated_lights(self.lights, len(images), self.name),
            "mask": mask,
        }
        for label, words, shapes in (
            ("truth", "true normals", ((*frame, 3),)),
            ("truth_depth", "true depth", (frame,)),
            ("truth_albedo", "true albedo", (frame, (*frame, 3))),
        ):
            value = getattr(self, label)
            if value is not None:
                value = _as_array(value, np.float32)
                _require_frame(value, shapes, words, self.name)
                settled[label] = value
        for label, value in settled.items():
            value.flags.writeable = False
            object.__setattr__(self, label, value)

    def __repr__(self) -> str:
        height, width = self.frame
        kind = "RGB" if self.is_color else "gray"
        truth = "with truth" if self.truth is not None else "no truth"
        return (
            f"Capture({self.name!r}: {len(self)} photographs, {height} × {width}, {kind}, "
            f"{self.pixel_count} mask pixels, {truth})"
        )

    def __len__(self) -> int:
        """The number of photographs."""
        return int(self.images.shape[0])

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.images.shape[1]), int(self.images.shape[2])

    @property
    def is_color(self) -> bool:
        """Whether the photographs have three channels."""
        return self.images.ndim == 4

    @cached_property
    def pixel_count(self) -> int:
        """The number of mask pixels."""
        return int(self.mask.sum())

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify photographs, lights and mask (not the name or the
        truth)."""
        # One hash per photograph, in threads (hashing releases the interpreter), then a hash of the hashes:
        # in one go the photographs take as long as least squares.
        with ThreadPoolExecutor() as pool:
            return digest_of(self.images.shape, pool.map(hash_of, self.images), self.lights, self.mask)

    def gray(self) -> Capture:
        """The same capture in gray; itself where it is gray already."""
        if not self.is_color:
            return self
        images = np.empty(self.images.shape[:3], dtype=np.float32)
        for target, rgb in zip(images, self.images, strict=True):
            target[:] = gray_from_rgb(rgb)
        return replace(self, images=images)

    def pixels(self, scale: float = 1.0) -> NDArray[np.float32]:
        """Gray intensities of the mask pixels divided by ``scale``: an (N, d) array, pixels in row-major
        order."""
        count = self.pixel_count
        result = np.empty((count, len(self)), dtype=np.float32)
        index = np.flatnonzero(self.mask)
        # Blocks keep the transposing copy inside the cache and its temporary small.
        block = 4096
        flat = self.images.reshape(len(self), -1, 3) if self.is_color else self.images.reshape(len(self), -1)
        for first in range(0, count, block):
            chosen = index[first : first + block]
            values = flat[:, chosen]
            if self.is_color:
                values = gray_from_rgb(values)
            result[first : first + block] = values.T
        if scale != 1.0:
            result /= np.float32(scale)
        return result

    def frames_in_mask(self, scale: float = 1.0) -> Iterator[NDArray[np.float32]]:
        """The columns of :meth:`pixels`, one photograph after another."""
        index = np.flatnonzero(self.mask)
        for image in self.images:
            yield gray_of(image, index) / np.float32(scale)

    def colours(self, scale: float = 1.0) -> NDArray[np.float32]:
        """Intensities of the mask pixels in colour, divided by ``scale``: an (N, d, 3) array.

        A gray capture has three equal channels, and they are not copied.
        """
        if not self.is_color:
            gray = self.pixels(scale)
            return np.broadcast_to(gray[..., None], (*gray.shape, 3))
        result = np.empty((self.pixel_count, len(self), 3), dtype=np.float32)
        for number, image in enumerate(self.images):
            result[:, number] = image[self.mask]
        if scale != 1.0:
            result /= np.float32(scale)
        return result

    def intensity_scale(self) -> float:
        """One brightness for the whole capture: the 99th percentile of the gray intensities inside the mask.

        Robust to highlights, which the maximum is not. Dividing by it makes λ and μ mean the same on every
        capture. Large captures are sampled evenly over the pixels (all photographs of each), which changes
        nothing that matters.
        """
        index = np.flatnonzero(self.mask)
        index = index[:: self._scale_step]
        flat = self.images.reshape(len(self), -1, 3) if self.is_color else self.images.reshape(len(self), -1)
        values = flat[:, index]
        scale = float(np.percentile(gray_from_rgb(values) if self.is_color else values, 99))
        return scale if scale > 0 else 1.0

    def scaled_pixels(self, device: Device = CPU) -> tuple[Array, float]:
        """:meth:`pixels` divided by :meth:`intensity_scale`, on a device, and that scale."""
        if not device.uses_torch or 2 * self.pixel_count < self.mask.size:
            # Also where most of what would travel to a GPU is outside the mask.
            scale = self.intensity_scale()
            return device.put(self.pixels(scale)), scale
        # A GPU gathers and transposes faster than the photographs arrive.
        values = device.put(self.images.reshape(len(self), self.mask.size, -1))
        values = values[:, device.put(np.flatnonzero(self.mask))]
        if self.is_color:
            r, g, b = GRAY_WEIGHTS
            values = r * values[..., 0] + g * values[..., 1] + b * values[..., 2]
        pixels = contiguous(values.reshape(len(self), -1).T)
        scale = percentile_99(pixels[:: self._scale_step]) or 1.0
        pixels /= like(
            np.asarray(scale, dtype=np.float32), pixels
        )  # by an array: torch multiplies by 1/number
        return pixels, scale

    def require_light(self) -> None:
        """Raise a :class:`CaptureError` where all photographs are black inside the mask: nothing can be solved."""
        # The first photograph that is not black ends the search.
        if not any((image[self.mask] > 0).any() for image in self.images):
            raise CaptureError(
                f"All {len(self)} photographs of {self.name} are black inside the mask, so nothing can be seen of "
                "the object. Check the exposure, the files and the mask."
            )

    @property
    def _scale_step(self) -> int:
        return max(1, self.pixel_count // SAMPLED_PIXELS)

    def take(
        self, which: int | Sequence[int] | NDArray[Any], rng: np.random.Generator | int | None = None
    ) -> Capture:
        """A subset of the photographs: so many drawn at random (in their original order), or those listed.

        Examples
        --------
        >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1], [-0.5, 0, 1]])
        >>> capture = Capture(images=np.ones((4, 2, 2)), lights=lights, name="wall")
        >>> len(capture.take(3, rng=0)), len(capture.take([0, 2, 3]))
        (3, 3)
        """
        if isinstance(which, (int, np.integer)):
            if not 3 <= which <= len(self):
                raise CaptureError(
                    f"{which} photographs were asked for, but {self.name} has {len(self)} and at least 3 are needed. "
                    f"Choose a number from 3 to {len(self)}."
                )
            generator = np.random.default_rng(rng)
            chosen = np.sort(generator.choice(len(self), size=int(which), replace=False))
        else:
            chosen = np.asarray(which)
        origin = self.origin
        if origin is not None and len(origin.files) == len(self):
            origin = replace(origin, files=tuple(np.asarray(origin.files)[chosen].tolist()))
        return replace(self, images=self.images[chosen], lights=self.lights[chosen], origin=origin)

    def crop_to_mask(self, margin: int = 0) -> Capture:
        """The smallest frame that holds the mask and ``margin`` pixels around it (as far as the frame
        reaches)."""
        rows, cols = np.flatnonzero(self.mask.any(axis=1)), np.flatnonzero(self.mask.any(axis=0))
        box = (
            slice(max(rows[0] - margin, 0), rows[-1] + 1 + margin),
            slice(max(cols[0] - margin, 0), cols[-1] + 1 + margin),
        )
        truths: dict[str, Any] = {
            label: None if getattr(self, label) is None else getattr(self, label)[box]
            for label in ("truth", "truth_depth", "truth_albedo")
        }
        return replace(self, images=self.images[:, box[0], box[1]], mask=self.mask[box], **truths)


def gray_of(photograph: NDArray[Any], index: NDArray[Any]) -> NDArray[np.float32]:
    """Gray values of pixels (flat numbers) of one photograph."""
    if photograph.ndim == 2:
        return np.asarray(photograph.reshape(-1)[index], dtype=np.float32)
    return np.asarray(gray_from_rgb(photograph.reshape(-1, 3)[index]), dtype=np.float32)


def digest_of(
    shape: tuple[int, ...], photographs: Iterable[bytes], lights: FloatArray, mask: BoolArray
) -> str:
    """The digest of a capture, from the :func:`hash_of` its photographs."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr((shape, np.dtype(np.float32).str)).encode())
    for array in (lights, mask):
        state.update(repr((array.shape, array.dtype.str)).encode())
    for part in (*photographs, hash_of(lights), hash_of(mask)):
        state.update(part)
    return state.hexdigest()


def hash_of(array: NDArray[Any]) -> bytes:
    """Of the content of an array."""
    # SHA-256 has instructions of its own on today's processors: twice as fast as BLAKE2 there.
    return hashlib.sha256(np.ascontiguousarray(array).data).digest()


def _as_array(value: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A C-contiguous array of the wanted type that the caller cannot change under us; copied only where
    needed."""
    array = np.ascontiguousarray(value, dtype=dtype)
    if array is value and array.flags.writeable:
        # The caller keeps a handle: freezing a view leaves his array writable, and costs no copy.
        array = array.view()
    return array


def _validated_images(value: ArrayLike, name: str) -> NDArray[np.float32]:
    images = _as_array(value, np.float32)
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise CaptureError(
            f"The photographs of {name} have the shape {images.shape}; expected (photographs, height, width) for gray "
            "or (photographs, height, width, 3) for colour. Stack them along the first axis."
        )
    if len(images) < 3:
        raise CaptureError(
            f"{name} has {len(images)} photograph(s), but photometric stereo needs at least three under different "
            "lights (ten or more for good results). Add photographs."
        )
    # A sum that is finite has finite terms, costs a fraction of a test of each value and needs no temporary. One
    # that is not may merely have overflowed, so it is followed by the test itself.
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = [number for number, image in enumerate(images) if not np.isfinite(image.sum())]
    for number in suspects:
        bad = int((~np.isfinite(images[number])).sum())
        if bad:
            raise CaptureError(
                f"Photograph {number + 1} of {name} has {bad} values that are NaN or infinite. Export it again "
                "without undefined pixels, or leave it out together with its light."
            )
    return images


def validated_lights(value: ArrayLike, count: int, name: str) -> NDArray[np.float64]:
    lights = np.array(value, dtype=np.float64)
    if lights.ndim != 2 or lights.shape[1] != 3:
        raise CaptureError(
            f"The lights of {name} have the shape {lights.shape}; expected one row x y z per photograph, ({count}, 3)."
        )
    if len(lights) != count:
        raise CaptureError(
            f"{name} has {count} photographs but {len(lights)} light directions. Each photograph needs exactly one "
            "light, in the same order: add the missing ones or remove the extra ones."
        )
    if not np.isfinite(lights).all():
        row = int(np.flatnonzero(~np.isfinite(lights).all(axis=1))[0])
        raise CaptureError(
            f"Light {row + 1} of {name} has a value that is NaN or infinite. Correct the light file."
        )
    length = row_lengths(lights)
    if (length < 1e-12).any():
        row = int(np.flatnonzero(length < 1e-12)[0])
        raise CaptureError(
            f"Light {row + 1} of {name} is the zero vector, which has no direction. Correct the light file, or leave "
            "out that photograph together with its light."
        )
    # A vector that is unit already keeps its bits, so that a capture read back has the same digest.
    length[np.abs(length - 1) < 1e-14] = 1.0
    lights /= length[:, None]
    spread = np.linalg.svd(lights, compute_uv=False)
    if spread[-1] < COPLANAR_RATIO * spread[0]:
        raise CaptureError(
            f"The lights of {name} lie in a plane (or nearly: smallest to largest singular value "
            f"{spread[-1] / spread[0]:.1e}), so one direction of the normals cannot be seen. Add a photograph with the "
            "light well outside that plane, for instance from above."
        )
    return lights


def _require_frame(array: NDArray[Any], shapes: Sequence[tuple[int, ...]], words: str, name: str) -> None:
    if array.shape not in shapes:
        expected = " or ".join(" × ".join(map(str, shape)) for shape in shapes)
        raise CaptureError(
            f"The {words} of {name} measure {' × '.join(map(str, array.shape))} (rows × columns) but to fit the "
            f"photographs {expected} are needed. Scale or crop one of them so that they agree."
        )


def percentile_99(values: Any) -> float:
    """As ``np.percentile(values, 99)`` of a tensor: two order statistics, and NumPy's own way between them."""
    flat = values.reshape(-1)
    position = 0.99 * (flat.numel() - 1)
    below = int(position)
    around = [float(flat.kthvalue(min(k, flat.numel())).values) for k in (below + 1, below + 2)]
    return max(float(np.percentile(np.array(around, dtype=np.float32), 100 * (position - below))), 0.0)
