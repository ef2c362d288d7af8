"""Parts of the page that show the surface, between marks, so that another surface can replace them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.units import PixelSize
from photostereo.io.safe import read_text
from photostereo.io.schema import check_facts
from photostereo.report.document import json_for_script, safe_links, templates, write_page
from photostereo.report.figures import depth_picture
from photostereo.report.packing import pack_heights
from photostereo.report.pictures import Frame, frame_around
from photostereo.report.plots import color_bar
from photostereo.report.pyramid import Layers
from photostereo.report.view_data import UNKNOWN_SIZE, Channel, pixel_data
from photostereo.solver.reconstruction import Reconstruction

PARTS = ("surface-entry", "surface-section", "depth-map")
#: Schema of the data that is read back from a page.
PAGE_DATA = {"relight?": {"sets": {str: {"channels": dict, "folder?": str}}, "held": int}}
_DATA = re.compile(r'(?<=<script type="application/json" id="data">).*?(?=</script>)', re.DOTALL)


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
        data, step = {"grids": {result.method: grid}}, int(grid["step"])
        depth_map = depth_picture(depth, result.mask, frame, pixel_size)
    facts = {
        "has_depth": data is not None,
        "grid_step": step,
        "depth_map": depth_map,
        "color_bar": color_bar,
    }
    return data, {name: _part(name, **facts) for name in PARTS}


def files_part(
    files: Mapping[str, str] | None = None, meanings: Mapping[str, str] | None = None
) -> dict[str, Markup]:
    """Return the part of the page that offers files."""
    return {"files": _part("files", links=safe_links(files or {}, meanings))}


def replace_parts(page: str, parts: Mapping[str, Markup]) -> str | None:
    """Replace parts of a page by name; None if the page does not have each of them once."""
    for name, part in parts.items():
        page, count = _marks(name).subn(lambda _, part=part: str(part), page)  # type: ignore[misc]
        if count != 1:
            return None
    return page


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
    page = read_text(Path(path), "report", remedy="Solve again.")
    data = page_data(page)
    if result.method not in (data.get("relight") or {"sets": {}})["sets"]:
        return False
    frame = frame_around(result.mask)
    surface, parts = surface_parts(result, frame, depth, tears, pixel_size)
    renewed = replace_parts(page, parts | files_part(files, meanings))
    if renewed is None:
        return False
    data.pop("surface", None)
    if surface is not None:
        data["surface"] = surface
    _renew_heights(data["relight"], result, depth)
    data["relight"]["pixel"] = pixel_data(pixel_size)
    write_page(path, _DATA.sub(lambda _: str(json_for_script(data)), renewed))
    return True


def page_data(page: str) -> dict[str, Any]:
    """Read the data of a page's script; empty if photostereo did not write the page."""
    found = _DATA.search(page)
    try:
        data = json.loads(found.group()) if found else {}
        check_facts(data, PAGE_DATA, ValueError)
    except (ValueError, RecursionError):
        return {}
    return dict(data)


def _renew_heights(relight: dict[str, Any], result: Reconstruction, depth: FloatArray) -> None:
    """Replace the tiles of the heights, at the levels that the page already holds."""
    layers = Layers(frame_around(result.mask), result.mask, depth=depth)
    channel, shown = Channel(layers, "depth"), relight["sets"][result.method]
    for level in range(int(relight["held"]), layers.layout.levels):
        channel.hold(level)
    shown["channels"]["depth"] = channel.data
    shown["low"], shown["high"] = layers.heights


def _part(name: str, **facts: Any) -> Markup:
    # No name from outside can forge a mark: templates escape "<".
    text = templates().get_template("surface.html").render(part=name, **facts)
    return Markup(f"<!-- {name} -->\n{text}<!-- end of {name} -->")


def _marks(name: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
