"""Pictures of a reconstruction: what people open first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import row_bands, srgb_from_linear
from photostereo.core.units import PixelSize
from photostereo.io.atomic import write_bytes
from photostereo.io.png import encode_png
from photostereo.results.maps import describe_normals, write_normal_png
from photostereo.solver.reconstruction import Reconstruction

#: What the numbers of the arrays mean, for ``summary.json``.
ARRAYS = {
    "normals.npy": "Unit normals: x right, y up, z towards the camera; 0 outside the mask.",
    "albedo.npy": "Linear albedo in the units of the photographs; 0 outside the mask.",
    "mask.npy": "True on the object.",
    "dictionary.npy": "The atoms that were learned, one in each row: the patch of x, that of y, that of z, each by rows.",
    "extras.npz": "What else the method has found, by name: map_* are pictures of the object, array_* are not.",
}
ALBEDO = "Albedo, sRGB; its 99th percentile is white; black outside the mask."


def write_pictures(
    folder: Path,
    result: Reconstruction,
    *,
    flip_y: bool = False,
    size: PixelSize | None = None,
    control: Control = SILENT,
) -> dict[str, str]:
    """``normals.png`` (16-bit; OpenGL, or DirectX with ``flip_y``) and ``albedo.png`` (8-bit, sRGB); what the
    numbers of each file mean, also of the arrays beside them.
    """
    write_normal_png(
        folder / "normals.png", result.normals, result.mask, flip_y=flip_y, size=size, control=control
    )

    def albedo() -> bytes:
        return encode_png(picture_of_albedo(result.albedo, result.mask), size=size, comment=ALBEDO)

    write_bytes(folder / "albedo.png", control.aside(albedo))
    arrays = {name: said for name, said in ARRAYS.items() if (folder / name).is_file()}
    return {**arrays, "normals.png": describe_normals(flip_y, signed=False), "albedo.png": ALBEDO}


def picture_of_albedo(albedo: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Albedo for the eye: scaled so that its 99th percentile is white, sRGB-encoded, 8 bits."""
    inside = albedo[mask]
    top = float(np.percentile(inside, 99)) if inside.size else 1.0
    picture = np.empty(albedo.shape, np.uint8)
    for rows in row_bands(*mask.shape):
        picture[rows] = np.rint(255 * srgb_from_linear(albedo[rows] / max(top, 1e-12)))
    return picture
