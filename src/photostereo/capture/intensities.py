"""The solver's input: the intensities of the mask pixels, scaled to order one, on the device used for solving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from photostereo.capture.capture import SCALE_SHARE, Capture
from photostereo.core.conventions import GRAY_WEIGHTS
from photostereo.runtime.arrays import CPU, Array, Device, contiguous, like
from photostereo.runtime.quantiles import quantiles
from photostereo.runtime.threads import in_turn, processors

#: A GPU selects the mask pixels from whole photographs if these have at most this many times as many pixels: that is
#: faster than the transfer. Above it, most of the transferred data would be unused.
SPARSE = 4


@dataclass(frozen=True)
class Intensities:
    """Intensities of the mask pixels, in row-major order."""

    pixels: Array  #: (N, d) gray, divided by the scale
    scale: float  #: the capture's brightness, see :meth:`Capture.intensity_scale`
    #: (N, d, 3) in color, divided by the same scale; None if the capture is gray or they were not requested
    colors: Array | None = None


def intensities(capture: Capture, device: Device = CPU, *, colors: bool = False) -> Intensities:
    """Return the intensities of a capture on a device; with ``colors`` also in color, if it has any.

    >>> from photostereo.example import owl
    >>> seen = intensities(owl(25.0, step=8), colors=True)
    >>> seen.pixels.shape, seen.colors.shape
    ((1172, 20), (1172, 20, 3))
    """
    in_color = colors and capture.is_color
    if not device.uses_torch:
        scale = capture.intensity_scale()
        return Intensities(
            capture.pixels(scale), scale, capture.colors(scale) if in_color else None
        )
    values = _sent(capture, device)
    gray = values
    if capture.is_color:
        r, g, b = GRAY_WEIGHTS
        gray = r * values[..., 0] + g * values[..., 1] + b * values[..., 2]
    pixels = contiguous(gray.T)
    scale = max(float(quantiles(pixels[:: capture.scale_step], [SCALE_SHARE])[0]), 0.0) or 1.0
    divisor = like(
        np.asarray(scale, np.float32), pixels
    )  # as a scalar, torch would multiply by 1/scale
    pixels /= divisor
    if not in_color:
        return Intensities(pixels, scale)
    tinted = contiguous(values.permute(1, 0, 2))
    tinted /= divisor
    return Intensities(pixels, scale, tinted)


def _sent(capture: Capture, device: Device) -> Any:
    """Values of the mask pixels of each photograph, (d, N) or (d, N, 3), as a tensor."""
    index = np.flatnonzero(capture.mask)
    shape = (len(capture), capture.mask.size, *capture.images.shape[3:])
    frames = capture.images.reshape(shape)
    if len(index) == capture.mask.size:
        return device.put(frames)
    if SPARSE * len(index) >= capture.mask.size:
        return device.put(frames)[:, device.put(index)]
    chosen, send = device.staging((len(frames), len(index), *shape[2:]))

    def gather(number: int) -> None:
        np.take(frames[number], index, axis=0, out=chosen[number], mode="clip")

    for _ in in_turn(gather, len(frames), processors()):
        pass
    return send()
