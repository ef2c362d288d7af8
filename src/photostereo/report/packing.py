"""Normals and heights packed for the viewers in the page."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.report.pictures import Frame, resize, scaled_size, spread_beyond

#: Maximum number of vertices in a page: more are not worth their bytes, and the full mesh is linked.
MAX_VERTICES = 160_000


def pack_normals(normals: FloatArray, inside: BoolArray) -> NDArray[np.uint8]:
    """Pack unit normals into three bytes: octahedral, 2 × 12 bits (within 0.06°); black means unknown.

    Eight bits per component, at the same size, would cause rings in a highlight on a smooth surface.

    References
    ----------
    Z. H. Cigolle et al., A survey of efficient representations for independent unit vectors, JCGT 3(2), 2014.
    """
    x, y, z = np.moveaxis(np.asarray(normals, np.float64), -1, 0)
    total = np.maximum(np.abs(x) + np.abs(y) + np.abs(z), 1e-12)
    u, v = x / total, y / total
    # Fold the lower half of the octahedron over the diagonals of the square.
    folded_u, folded_v = (1 - np.abs(v)) * _sign(u), (1 - np.abs(u)) * _sign(v)
    u, v = np.where(z < 0, folded_u, u), np.where(z < 0, folded_v, v)
    a = np.rint((u * 0.5 + 0.5) * 4095).astype(np.uint32)
    b = np.rint((v * 0.5 + 0.5) * 4095).astype(np.uint32)
    # All corners mean "straight away from the camera"; black is reserved for "unknown".
    corner = (a == 0) & (b == 0)
    a, b = np.where(corner, 4095, a), np.where(corner, 4095, b)
    packed = np.stack([a >> 4, (a & 15) << 4 | b >> 8, b & 255], axis=-1).astype(np.uint8)
    packed[~inside] = 0
    return packed


def unpack_normals(packed: NDArray[np.uint8]) -> FloatArray:
    """Unpack normals as the viewer's shader does; zero where unknown."""
    r, g, b = np.moveaxis(packed.astype(np.int64), -1, 0)
    u, v = (r << 4 | g >> 4) / 4095 * 2 - 1, ((g & 15) << 8 | b) / 4095 * 2 - 1
    z = 1 - np.abs(u) - np.abs(v)
    fold = np.maximum(-z, 0)
    normals = np.stack([u - fold * _sign(u), v - fold * _sign(v), z], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[~packed.any(axis=-1)] = 0
    return normals


def _sign(values: FloatArray) -> FloatArray:
    return np.where(values >= 0, 1.0, -1.0)


def pack_heights(
    depth: FloatArray,
    mask: BoolArray,
    frame: Frame,
    *,
    tears: BoolArray | None = None,
    max_vertices: int = MAX_VERTICES,
) -> dict[str, Any]:
    """Crop, downsample and quantize a depth map for the viewer.

    Returns ``cols`` and ``rows`` of vertices, ``step`` pixels apart, the first at ``step / 2`` from the upper left corner
    of the picture of ``width`` × ``height`` pixels; ``codes`` (base64, 16 bits, little-endian, row by row): 0 is a hole, 1
    and 65535 are the heights ``low`` and ``high``; ``cuts`` (base64, a byte per vertex): 1 if the cell to its lower right
    is torn open, empty without tears.

    Heights are averaged over cells of whole pixels and extended by one cell beyond the rim: the viewer trims
    the outline with the normal map, which is finer than the grid.
    """
    cut_depth, known = frame.cut(depth), frame.cut(mask & np.isfinite(depth))
    height, width = cut_depth.shape
    step = max(1, int(np.ceil(np.sqrt(height * width / max_vertices))))
    # Incomplete cells at the lower and right edges are padded with holes.
    pad = ((0, -height % step), (0, -width % step))
    rows, cols = -(-height // step), -(-width // step)
    cover, total = (resize(np.pad(part, pad), rows, cols) for part in (known, np.where(known, cut_depth, 0)))
    means, filled = spread_beyond(total / np.maximum(cover, 1e-6), cover > 0, 1)
    heights = np.where(filled, means, np.nan)
    low, high = (float(np.nanmin(heights)), float(np.nanmax(heights))) if filled.any() else (0.0, 0.0)
    span = high - low if high > low else 1.0
    codes = np.where(filled, 1 + np.rint((np.nan_to_num(heights) - low) / span * 65534), 0).astype("<u2")
    cuts = ""
    if tears is not None:
        torn = resize(np.pad(frame.cut(tears), pad), rows, cols) > 0
        cuts = base64.b64encode(torn.astype(np.uint8).tobytes()).decode("ascii")
    return {
        "cols": codes.shape[1],
        "rows": codes.shape[0],
        "step": float(step),
        "low": low,
        "high": low + span,
        "codes": base64.b64encode(codes.tobytes()).decode("ascii"),
        "cuts": cuts,
        "width": width,
        "height": height,
    }


def small_map(values: FloatArray, side: int) -> NDArray[np.float32]:
    """Shrink a map so that its longer side has at most ``side`` pixels."""
    height, width = values.shape[:2]
    factor = min(1.0, side / max(height, width))
    return resize(values, *scaled_size(height, width, factor))
