"""Pictures of a reconstruction: what people open first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.sixteen_bit import write_png
from photostereo.conventions import encode_normals, srgb_from_linear
from photostereo.reconstruction import Reconstruction


def write_pictures(folder: Path, result: Reconstruction, *, flip_y: bool = False) -> None:
    """``normals.png`` (16-bit; OpenGL, or DirectX with ``flip_y``) and ``albedo.png`` (8-bit, sRGB)."""
    write_png(folder / "normals.png", encode_normals(result.normals, result.mask, flip_y=flip_y))
    write_png(folder / "albedo.png", picture_of_albedo(result.albedo, result.mask))


def picture_of_albedo(albedo: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Albedo for the eye: scaled so that its 99th percentile is white, sRGB-encoded, 8 bits."""
    inside = albedo[mask]
    top = float(np.percentile(inside, 99)) if inside.size else 1.0
    return np.rint(255 * srgb_from_linear(albedo / max(top, 1e-12))).astype(np.uint8)
