"""Estimate the alignment of photographs from reduced pictures of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.photographs.alignment.alignment import Alignment
from photostereo.photographs.alignment.motion import estimate_motion

#: Fewer photographs do not predict each other.
FEWEST = 4
#: Smaller frames, in pixels, have too few tiles to agree on anything.
SMALLEST = 64


def find_alignment(pictures: NDArray[np.float32], scale: float, control: Control = SILENT) -> Alignment:
    """Estimate how far the camera moved between photographs; see :class:`photostereo.photographs.survey.Survey`."""
    if len(pictures) < FEWEST or min(pictures.shape[1:]) < SMALLEST:
        return Alignment.still(len(pictures))
    return Alignment.of(estimate_motion(pictures, scale, control))
