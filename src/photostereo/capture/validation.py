"""Checks of the parts of a capture, before anything is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.errors import CaptureError
from photostereo.photographs.source import bad_values


def as_array(value: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A C-contiguous array of a type, copied only if needed."""
    array = np.ascontiguousarray(value, dtype=dtype)
    if array is value and array.flags.writeable:
        # Freezing a view leaves the caller's array writable and costs no copy.
        array = array.view()
    return array


def validated_images(value: ArrayLike, name: str) -> NDArray[np.float32]:
    """A stack of at least three photographs as float32, all values finite."""
    images = as_array(value, np.float32)
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise CaptureError(code="photographs-shape", shape=images.shape, name=name)
    require_count(len(images), name)
    for number, image in enumerate(images):
        if bad := bad_values(image):
            raise CaptureError(
                f"Photograph {number + 1} of {name} has {bad} values that are NaN, infinite or beyond 1e15. Export it again "
                "without undefined pixels, or leave it out together with its light.",
                code="photograph-not-finite",
                photograph=number + 1,
                found=bad,
            )
    return images


def require_count(count: int, name: str, file: Path | None = None) -> None:
    """Raise a :class:`CaptureError` ``"too-few-photographs"`` if there are fewer than three."""
    if count < 3:
        raise CaptureError(code="too-few-photographs", file=file, found=count, name=name)


def require_frame(array: NDArray[Any], shapes: Sequence[tuple[int, ...]], words: str, name: str) -> None:
    """Check that an array has one of the given shapes; raises a :class:`CaptureError` ``"frame-mismatch"``."""
    if array.shape not in shapes:
        expected = " or ".join(" × ".join(map(str, shape)) for shape in shapes)
        raise CaptureError(
            f"{name}: the photographs need {words} of {expected} (rows × columns), not "
            f"{' × '.join(map(str, array.shape))}. Scale or crop one of them so that they agree.",
            code="frame-mismatch",
            part=words,
            found=array.shape,
            expected=shapes[0],
        )
