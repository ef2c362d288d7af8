"""What is wrong with the parts of a capture, said before anything is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.errors import CaptureError
from photostereo.lights.files.table import row_lengths

#: Below this ratio of the smallest to the largest singular value of the lights they count as lying in a
#: plane.
COPLANAR_RATIO = 1e-3


def as_array(value: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A C-contiguous array of the wanted type that the caller cannot change under us; copied only where
    needed."""
    array = np.ascontiguousarray(value, dtype=dtype)
    if array is value and array.flags.writeable:
        # The caller keeps a handle: freezing a view leaves his array writable, and costs no copy.
        array = array.view()
    return array


def validated_images(value: ArrayLike, name: str) -> NDArray[np.float32]:
    """A stack of at least three photographs as float32, all values finite; an error that names the bad one otherwise."""
    images = as_array(value, np.float32)
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise CaptureError(
            f"The photographs of {name} have the shape {images.shape}; expected (photographs, height, width) for gray "
            "or (photographs, height, width, 3) for color. Stack them along the first axis."
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
    """Unit directions, one for each of so many photographs, not all in a plane; an error that says what to do otherwise."""
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


def require_frame(array: NDArray[Any], shapes: Sequence[tuple[int, ...]], words: str, name: str) -> None:
    """An error in ``words`` where an array does not fit the photographs."""
    if array.shape not in shapes:
        expected = " or ".join(" × ".join(map(str, shape)) for shape in shapes)
        raise CaptureError(
            f"The {words} of {name} measure {' × '.join(map(str, array.shape))} (rows × columns) but to fit the "
            f"photographs {expected} are needed. Scale or crop one of them so that they agree."
        )
