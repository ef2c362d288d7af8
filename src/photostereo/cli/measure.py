"""``photostereo measure``: height parameters by ISO 25178, and profiles, of a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import photostereo as ps
from photostereo.cli.command import argument, option
from photostereo.cli.export import size_of_result
from photostereo.cli.options import numbers
from photostereo.cli.terminal import Terminal
from photostereo.core.units import PixelSize

if TYPE_CHECKING:
    from photostereo.core.conventions import Float64


def measure(
    terminal: Terminal,
    source: Path = argument("Results of a solve.", "RESULT"),
    region: str | None = option(
        "Measure a rectangle: left, top, width and height in pixels.", metavar="X,Y,W,H"
    ),
    level: list[str] | None = option(
        "Level by the plane through three or more points; by default by that of the region.",
        metavar="X,Y",
    ),
    raw: bool = option("Measure the heights as they are, without leveling.", default=False),
    s_filter: str | None = option("Remove waves shorter than this.", metavar="LENGTH"),
    l_filter: str | None = option("Remove waves longer than this.", metavar="LENGTH"),
    profile: str | None = option("Write the heights along a line.", metavar="X1,Y1,X2,Y2"),
    pixel_size: str | None = option(
        "Width of a pixel, such as 0.1mm; by default that of the result.", metavar="LENGTH"
    ),
    out: Path | None = option(
        "Table of the profile (default: RESULT-profile.csv).", metavar="FILE", flags="--out -o"
    ),
    force: bool = option("Replace an existing table.", default=False),
) -> dict[str, Any]:
    """Measure heights: Sa, Sq, Sz and more by ISO 25178, and profiles."""
    from photostereo.io.atomic import replacing_file, write_text
    from photostereo.surface import topography

    box = numbers(region, 4, "--region", whole=True)
    ends = numbers(profile, 4, "--profile")
    points = None
    if level:
        points = [(x, y) for x, y in (numbers(text, 2, "--level") or () for text in level)]
    size = PixelSize.of(pixel_size)
    if not size.known:
        size = size_of_result(source)
    scale = size.millimeters if size.known else None
    depth = _heights(source)
    inside = topography.region_mask(box, depth.shape)
    statistics = topography.height_statistics(
        depth,
        inside,
        points=points,
        leveled=not raw,
        s_filter=_nesting_index(s_filter, size),
        l_filter=_nesting_index(l_filter, size),
        pixel_size=scale,
    )
    values = statistics.as_dict()
    if ends is not None:
        if not raw:
            depth = topography.level(depth, inside, points=points)
        x1, y1, x2, y2 = ends
        line = topography.profile(depth, (x1, y1), (x2, y2), pixel_size=scale)
        target = out or source.with_name(f"{source.resolve().name}-profile.csv")
        with replacing_file(target, force=force) as partial:
            write_text(partial, line.to_csv())
        values["out"] = str(target.absolute())
    for name in ("sa", "sq", "sz", "sp", "sv"):
        terminal.say(f"{name.capitalize():4} {values[name]:.5g} {statistics.unit}")
    for name in ("ssk", "sku"):
        terminal.say(f"{name.capitalize():4} {values[name]:.3g}")
    terminal.say(f"Of {statistics.pixels} pixels: {statistics.filter}.")
    if ends is not None:
        terminal.say(f"Profile: {target} ({len(line.height)} points in {line.unit})")
    return values


def _heights(source: Path) -> Float64:
    """Return the heights of a result in pixels; integrate its normals if it has none."""
    import numpy as np

    from photostereo.solver.result_files import read_depth

    result = ps.Reconstruction.load(source)
    depth = read_depth(source, result.mask.shape)
    if depth is None:
        return ps.integrate(result.normals, result.mask).depth
    return np.where(result.mask, depth.astype(np.float64), np.nan)


def _nesting_index(text: str | None, size: PixelSize) -> float | None:
    """Return the nesting index of a filter, in millimeters if the pixel size is known, or pixels."""
    if text is None:
        return None
    if size.known:
        return PixelSize.of(text).millimeters
    (value,) = numbers(text, 1, "--s-filter or --l-filter") or (0.0,)
    return value
