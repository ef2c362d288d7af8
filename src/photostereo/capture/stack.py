"""All photographs of a capture as one float32 stack, decoded in parallel, each touched once.

For a photograph with stored values v (full scale M) under a light of strength s_c in channel c, the gray
intensity is

    I = Σ_c  w_c / (M s_c) · v_c

so full scale, light strength and luma weights are one vector of three numbers, applied in one pass straight
into the stack. The only temporaries are those of the photographs that are being decoded at the moment.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture.images import decode_image
from photostereo.conventions import GRAY_WEIGHTS, linear_from_srgb
from photostereo.errors import CaptureError
from photostereo.files.memory import require_memory


@dataclass(frozen=True)
class Stack:
    """Photographs on one linear scale and what was noticed on the way.

    Attributes
    ----------
    images : (d, H, W) or (d, H, W, 3) float32
    bit_depth : bits per channel on disk (the largest where they differ)
    notes : what the user should know
    """

    images: NDArray[np.float32]
    bit_depth: int
    notes: tuple[str, ...]


def read_stack(
    files: Sequence[Path],
    *,
    intensities: NDArray[Any] | None = None,
    color: bool = False,
    srgb: bool = False,
    gray_limit: float | None = None,
    workers: int | None = None,
) -> Stack:
    """Decode photographs in parallel to linear intensities with the lights' strengths divided out.

    Parameters
    ----------
    files : the photographs, in the order of the lights
    intensities : (d,) or (d, 3) strengths of the lights, positive; ones where missing
    color : keep three channels (gray photographs stay gray)
    srgb : undo the sRGB curve first (for photographs that a camera encoded for viewing)
    gray_limit : intensities are clipped from above so that the gray value is at most this; with ``color`` all
        three channels are scaled alike, so that the colour stays and the gray value of the result is the
        clipped one
    workers : threads; as many as there are processors where missing

    Raises
    ------
    CaptureError
        If a photograph is unreadable, of another size than the first, gray among colour ones, or has NaN or
        infinite values; the message names it.
    """
    strengths = (
        np.ones((len(files), 3))
        if intensities is None
        else _as_rgb(np.asarray(intensities, dtype=np.float64))
    )
    first = decode_image(files[0])
    frame, is_color = first.shape[:2], first.ndim == 3
    shape = (len(files), *frame, 3) if color and is_color else (len(files), *frame)
    require_memory(
        4 * math.prod(shape),
        f"The {len(files)} photographs of {frame[1]} × {frame[0]} pixels in {files[0].parent}",
        "Scale them down, crop them, or use fewer.",
    )
    images = np.empty(shape, dtype=np.float32)

    def develop(number: int, stored: NDArray[Any] | None = None) -> np.dtype[Any]:
        path = files[number]
        stored = decode_image(path) if stored is None else stored
        if stored.shape[:2] != frame:
            raise CaptureError(
                f"{path} measures {stored.shape[0]} × {stored.shape[1]} pixels (rows × columns) but "
                f"{files[0].name} {frame[0]} × {frame[1]}. All photographs must come from the same camera "
                "position and have the same size: export them again without cropping or rotating."
            )
        if (stored.ndim == 3) != is_color:
            here, there = ("RGB", "gray") if not is_color else ("gray", "RGB")
            raise CaptureError(
                f"{path} is {here} but {files[0].name} is {there}. Export all photographs in the same mode."
            )
        _develop_into(images[number], stored, strengths[number], srgb, gray_limit)
        if stored.dtype.kind == "f" and not np.isfinite(images[number].sum(dtype=np.float64)):
            bad = int((~np.isfinite(stored)).sum())
            raise CaptureError(
                f"{path} has {bad} values that are NaN or infinite. Export it again without undefined "
                "pixels, or leave it out together with its light."
            )
        return stored.dtype

    kinds = [develop(0, first)]
    del first
    with ThreadPoolExecutor(max_workers=workers or processors()) as pool:
        pending = [pool.submit(develop, number) for number in range(1, len(files))]
        try:
            kinds += [
                job.result() for job in pending
            ]  # in the order of the files: the first bad one is named
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Stack(
        images, max(kind.itemsize * 8 for kind in kinds), _notes(kinds, files, is_color, color, srgb)
    )


def _develop_into(
    target: NDArray[np.float32],
    stored: NDArray[Any],
    strength: NDArray[Any],
    srgb: bool,
    gray_limit: float | None,
) -> None:
    top = 1.0 if stored.dtype.kind == "f" else float(np.iinfo(stored.dtype).max)
    values: NDArray[np.float32]
    if srgb:
        values, top = _decoded_srgb(stored), 1.0
    else:
        values = stored.astype(np.float32, copy=False)
    weights = np.asarray(GRAY_WEIGHTS)
    if stored.ndim == 2:
        # A gray photograph was weighted by the camera; the light's strength gets the same weights.
        np.multiply(values, np.float32(1.0 / (top * float(weights @ strength))), out=target)
    elif target.ndim == 2:
        cv2.transform(values, (weights / (top * strength)).astype(np.float32)[None], dst=target)
    else:
        np.multiply(values, (1.0 / (top * strength)).astype(np.float32), out=target)
    if gray_limit is None:
        return
    if target.ndim == 2:
        np.minimum(target, np.float32(gray_limit), out=target)
    else:
        gray = cv2.transform(target, weights.astype(np.float32)[None])
        above = gray > gray_limit
        target[above] *= (gray_limit / gray[above])[:, None]


def _decoded_srgb(stored: NDArray[Any]) -> NDArray[np.float32]:
    if stored.dtype in (np.uint8, np.uint16):
        return np.asarray(np.take(_srgb_table(stored.dtype.str), stored))
    top = 1.0 if stored.dtype.kind == "f" else float(np.iinfo(stored.dtype).max)
    return np.asarray(linear_from_srgb(stored.astype(np.float32) / np.float32(top)))


@lru_cache(maxsize=2)
def _srgb_table(dtype: str) -> NDArray[np.float32]:
    top = np.iinfo(np.dtype(dtype)).max
    return np.asarray(linear_from_srgb(np.arange(top + 1) / top), dtype=np.float32)


def _as_rgb(strengths: NDArray[Any]) -> NDArray[Any]:
    return np.repeat(strengths[:, None], 3, axis=1) if strengths.ndim == 1 else strengths


def _notes(
    kinds: list[np.dtype[Any]], files: Sequence[Path], is_color: bool, color: bool, srgb: bool
) -> tuple[str, ...]:
    notes = []
    if len(set(kinds)) > 1:
        other = next(number for number, kind in enumerate(kinds) if kind != kinds[0])
        notes.append(
            f"photographs of different bit depth: {files[0].name} is {kinds[0]}, {files[other].name} "
            f"{kinds[other]}; each is divided by its own full scale"
        )
    if color and not is_color:
        notes.append("colour was asked for but the photographs are gray")
    if not srgb and files[0].suffix.lower() in (".jpg", ".jpeg"):
        notes.append(
            "the photographs are JPEG and taken as linear; most cameras put the sRGB curve into JPEG "
            "files, which srgb (--srgb) undoes"
        )
    return tuple(notes)


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1
