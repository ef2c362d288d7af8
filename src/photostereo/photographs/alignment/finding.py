"""Estimate the alignment of photographs from their source."""

from __future__ import annotations

import cv2
import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.photographs.alignment.alignment import Alignment
from photostereo.photographs.alignment.motion import LONGEST, estimate_motion
from photostereo.photographs.source import Photographs

#: Fewer photographs do not predict each other.
FEWEST = 4
#: Smaller frames, in pixels, have too few tiles to agree on anything.
SMALLEST = 64


def find_alignment(source: Photographs, control: Control = SILENT) -> Alignment:
    """Estimate how far the camera moved between photographs; each is decoded once."""
    count, (height, width) = source.shape[0], source.shape[1:3]
    if count < FEWEST or min(height, width) < SMALLEST:
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
