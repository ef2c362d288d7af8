"""``photostereo export``: write a result in formats that other programs open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.command import option
from photostereo.cli.terminal import Terminal
from photostereo.core.units import PixelSize
from photostereo.results.choice import FORMAT_NAMES


def export(
    terminal: Terminal,
    source: Path,
    to: str = option(
        f"Comma-separated formats: {', '.join(FORMAT_NAMES)}.", default="glb,tiff,ptm,relight"
    ),
    out: Path | None = None,
    pixel_size: str | None = None,
    photographs: Path | None = None,
    tileable: bool = False,
    texels: int | None = None,
    stretch: bool = False,
    linear: bool = False,
    flip_y: bool = False,
    surface_method: str = "poisson",
    decimate: int | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Export a result for other programs."""
    from photostereo.io.atomic import replacing_directory, write_json
    from photostereo.results.export import export_result
    from photostereo.results.formats import FORMATS, check_formats
    from photostereo.surface.integration import check_method

    kinds = check_formats(to.split(","))
    check_method(surface_method)
    size = PixelSize.of(pixel_size)
    result = ps.Reconstruction.load(source)
    target = out or source.with_name(f"{source.resolve().name}-export")
    used = [source, *([] if photographs is None else [photographs])]
    with replacing_directory(target, force=force, keep=used) as folder:
        facts = export_result(
            folder,
            result,
            kinds,
            pixel_size=size if size.known else size_of_result(source),
            capture=None if photographs is None else ps.load(photographs),
            tileable=tileable,
            texels=texels,
            stretch=stretch,
            linear=linear,
            flip_y=flip_y,
            surface_method=surface_method,
            decimate=decimate,
            control=terminal,
        )
        origin = {
            "capture": result.capture,
            "digest": result.digest,
            "method": result.method,
            **facts,
        }
        known = {name: value for name, value in origin.items() if value is not None}
        write_json(folder / "summary.json", known)
    for note in facts["notes"]:
        terminal.say(note)
    entries = [FORMATS[kind] for kind in kinds]
    width = max(len("Files"), *(len(entry.title) for entry in entries)) + 1
    for entry in entries:
        terminal.say(f"{entry.title + ':':{width}} {entry.purpose}")
    count = len(facts["files"])
    terminal.say(f"{'Files:':{width}} {target} ({count}, described in summary.json)")
    return {"out": str(target.absolute()), **facts}


def size_of_result(source: Path) -> PixelSize:
    from photostereo.solver.result_files import read_summary

    facts = read_summary(source).get("surface") or {}
    return PixelSize.of(facts.get("pixel_size") if facts.get("unit") == "mm" else None)
