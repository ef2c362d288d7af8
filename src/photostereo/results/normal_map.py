"""Read normal maps from other tools: a picture, with an optional mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import decode_normals
from photostereo.core.errors import CaptureError
from photostereo.io.images import decode_image
from photostereo.masks.reading import read_mask


def read_normal_map(
    png_path: str | Path, mask_path: str | Path | None = None, flip_y: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Read unit normals (H, W, 3) and the mask, by default the alpha channel or every pixel that has a normal."""
    source = Path(png_path)
    picture = decode_image(source, alpha=True)
    if picture.ndim != 3 or picture.shape[2] not in (3, 4):
        raise CaptureError(code="normal-map-is-gray", file=source)
    if picture.dtype not in (np.uint8, np.uint16):
        raise CaptureError(code="normal-map-type", file=source, dtype=picture.dtype)
    colors = np.ascontiguousarray(picture[..., :3])
    top = float(np.iinfo(picture.dtype).max)
    empty = (np.abs(colors / top - 0.5) < 0.02).all(axis=-1) | (colors == 0).all(axis=-1)
    if mask_path is not None:
        inside, _ = read_mask(Path(mask_path), (colors.shape[0], colors.shape[1]))
    elif picture.shape[2] == 4:
        inside = picture[..., 3] > top / 2
    else:
        inside = ~empty
    if not inside.any():
        raise CaptureError(
            f"No pixel of {mask_path or source} is inside the mask. Is the mask inverted?",
            code="empty-mask",
            file=mask_path or source,
        )
    normals = np.asarray(decode_normals(colors, flip_y=flip_y), dtype=np.float32)
    normals[empty | ~inside] = 0
    return normals, np.asarray(inside, dtype=np.bool_)
