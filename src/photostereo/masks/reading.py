"""Masks from a picture, from the brightness of the photographs, or from an array."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from os.path import exists
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.images import decode_image
from photostereo.photographs.develop import upright


def read_mask(
    path: Path, frame: tuple[int, int], orientation: int = 1
) -> tuple[BoolArray, tuple[Finding, ...]]:
    """Read a mask picture as bool, with notes. Everything brighter than half of its brightest value is the object.

    With the EXIF ``orientation`` of the photographs, a mask stored sideways like their pixels is
    rotated.
    """
    if not exists(path):
        raise CaptureError(
            f'The mask {path} does not exist. Give a picture, "auto" (found in the photographs), '
            '"bright" or "full".',
            code="no-mask-file",
            file=path,
        )
    try:
        values = decode_image(path)
        if orientation > 4 and values.shape[:2] == frame[::-1] != frame:
            values = upright(values, orientation)
        return mask_from_values(values, f"The mask {path}", frame)
    except CaptureError as error:
        raise error.about(path) from error


def mask_from_values(
    values: NDArray[Any], label: str, frame: tuple[int, int]
) -> tuple[BoolArray, tuple[Finding, ...]]:
    """Convert any array to a mask, as for :func:`read_mask`; ``label`` names the source at the start of a message."""
    if values.ndim == 3 and values.shape[2] > 0:
        values = values.max(axis=2)
    if values.shape != tuple(frame):
        size = " × ".join(map(str, values.shape))
        (height, width) = frame
        raise CaptureError(
            f"{label} is {size} pixels (rows × columns) but the photographs are {height} × "
            f"{width}. Paint it on a photograph at full size.",
            code="mask-size",
            label=label,
            size=size,
            height=height,
            width=width,
        )
    # Floats avoid an overflow in 2 * values of the stored type.
    values = np.nan_to_num(values.astype(np.float64), nan=0.0)
    top = values.max()
    if not top > 0:
        words = f"{label} is empty (completely black). Paint the object white."
        raise CaptureError(words, code="empty-mask", remedy="whole-frame")
    soft = int(((values > 0) & (values < top)).sum())
    note = Finding("soft-mask", mask=label, count=soft)
    return np.asarray(values > 0.5 * top), (note,) if soft else ()


def mask_from_brightness(
    images: Iterable[NDArray[Any]], without: BoolArray | None = None
) -> BoolArray:
    """Find a bright object in front of a dark background: Otsu's threshold on each pixel's largest value.

    The threshold is found on the square root of the maximum over the photographs, so that dim parts of the object
    count; holes are filled and specks below one percent of the largest part dropped. It needs a background that
    stays dark under every light, and fails if the background reflects as much as the object; then paint a mask.

    N. Otsu, "A threshold selection method from gray-level histograms", 1979. doi:10.1109/TSMC.1979.4310076
    """
    brightest = reduce(np.maximum, images)
    brightest = brightest.max(axis=2) if brightest.ndim == 3 else brightest
    brightest = brightest if without is None else np.where(without, 0, brightest)
    # Keep a few glints from squeezing the rest of the histogram into its first bins.
    top = float(np.percentile(brightest, 99))
    if top <= 0:
        return np.zeros(brightest.shape, dtype=bool)
    levels = np.rint(np.sqrt(np.clip(brightest / top, 0, 1)) * 255).astype(np.uint8)
    _, binary = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    outlines, _ = cv2.findContours(binary, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros_like(binary)
    cv2.drawContours(filled, outlines, -1, 255, thickness=cv2.FILLED)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(filled, connectivity=8)
    areas = np.append(0, stats[1:, cv2.CC_STAT_AREA])
    return np.asarray((areas >= max(0.01 * areas.max(), 1))[labels])
