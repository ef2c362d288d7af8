"""Parts of the page that show the surface, between marks, so that another surface can replace them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.units import PixelSize
from photostereo.io.safe import read_text
from photostereo.report.document import files_part, parse_page, render_part
from photostereo.report.pictures import Frame, depth_picture, frame_around, resize, spread_beyond
from photostereo.report.plots import color_bar
from photostereo.report.pyramid import UNKNOWN_SIZE, Layers, encode_level, pixel_data
from photostereo.solver.reconstruction import Reconstruction

#: Maximum number of vertices in a page: more are not worth their bytes, and the full mesh is linked.
MAX_VERTICES = 160_000
PARTS = ("surface-entry", "surface-section", "depth-map")


def surface_parts(
    result: Reconstruction,
    frame: Frame,
    depth: FloatArray | None,
    tears: BoolArray | None,
    pixel_size: PixelSize = UNKNOWN_SIZE,
) -> tuple[dict[str, Any] | None, dict[str, Markup]]:
    """Return the viewer's data (None without a surface) and the parts of the page by name, but for the files."""
    data = depth_map = None
    step = 1
    if depth is not None and np.isfinite(depth[result.mask]).any():
        grid = pack_heights(depth, result.mask, frame, tears=tears)
        data = {"grids": {result.method: grid}}
        step = int(grid["step"])
        depth_map = depth_picture(depth, result.mask, frame, pixel_size)
    facts = {
        "has_depth": data is not None,
        "grid_step": step,
        "depth_map": depth_map,
        "color_bar": color_bar,
    }
    return data, {name: render_part(name, **facts) for name in PARTS}


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
    cut_depth = frame.cut(depth)
    known = frame.cut(mask & np.isfinite(depth))
    height, width = cut_depth.shape
    step = max(1, int(np.ceil(np.sqrt(height * width / max_vertices))))
    # Incomplete cells at the lower and right edges are padded with holes.
    pad = ((0, -height % step), (0, -width % step))
    rows = -(-height // step)
    cols = -(-width // step)
    cover, total = (
        resize(np.pad(part, pad), rows, cols) for part in (known, np.where(known, cut_depth, 0))
    )
    means, filled = spread_beyond(total / np.maximum(cover, 1e-6), cover > 0, 1)
    heights = np.where(filled, means, np.nan)
    if filled.any():
        low, high = (float(np.nanmin(heights)), float(np.nanmax(heights)))
    else:
        low, high = (0.0, 0.0)
    span = high - low if high > low else 1.0
    codes = np.where(filled, 1 + np.rint((np.nan_to_num(heights) - low) / span * 65534), 0).astype(
        "<u2"
    )
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


def renew_surface(
    path: str | Path,
    result: Reconstruction,
    *,
    depth: FloatArray,
    tears: BoolArray | None = None,
    files: Mapping[str, str] | None = None,
    meanings: Mapping[str, str] | None = None,
    pixel_size: PixelSize = UNKNOWN_SIZE,
) -> bool:
    """Replace the surface in a page written by :func:`photostereo.write_report`; photographs and evidence stay.

    Returns False, and changes nothing, if the page is not such a report of this result.
    """
    page = parse_page(read_text(Path(path), "report", remedy="Solve again."))
    if result.method not in (page.data.get("relight") or {"sets": {}})["sets"]:
        return False
    frame = frame_around(result.mask)
    surface, parts = surface_parts(result, frame, depth, tears, pixel_size)
    renewed = page.with_parts(parts | files_part(files, meanings))
    if renewed is None:
        return False
    renewed.data.pop("surface", None)
    if surface is not None:
        renewed.data["surface"] = surface
    relight = renewed.data["relight"]
    relight["pixel"] = pixel_data(pixel_size)
    # The tiles of the heights, at the levels that the page already holds.
    layers = Layers(frame, result.mask, depth=depth)
    shown = relight["sets"][result.method]
    levels = range(int(relight["held"]), layers.levels)
    tiles = {str(level): encode_level([(layers, "depth")], level)[0] for level in levels}
    shown["channels"]["depth"] = tiles
    shown["low"], shown["high"] = layers.heights
    renewed.write(path)
    return True
