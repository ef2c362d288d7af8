"""``photostereo mesh``: rebuild depth and meshes with other options, or from any normal map."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.command import argument, option
from photostereo.cli.options import FLIP_Y, FORCE, PIXEL_SIZE, names
from photostereo.cli.terminal import Terminal


def mesh(
    terminal: Terminal,
    source: Path = argument("Results of a solve, or a normal map (PNG).", "OUT"),
    method: str = option("poisson, robust or simchony.", flags="--method -m", default="poisson"),
    formats: str = option(
        "Comma-separated: ply, glb, obj, stl. Other meshes in OUT are deleted.",
        flags="--format",
        default="ply,glb",
    ),
    pixel_size: str | None = PIXEL_SIZE,
    decimate: int | None = option("Reduce to about N triangles.", metavar="N", min=4),
    full: bool = option("Use every pixel in PLY and STL, even above two million triangles.", default=False),
    watertight: bool = option("Close the mesh with walls and a base, for printing.", default=False),
    highpass: float | None = option("Flatten shapes wider than this.", metavar="PIXELS"),
    exr: bool = option("Also write normals and depth as EXR (needs the extra `exr`).", default=False),
    mask: Path | None = option("Mask picture for a normal map."),
    out: Path | None = option(
        "Output folder (default: OUT itself, or NAME-mesh for a normal map).", flags="--out -o"
    ),
    flip_y: bool = FLIP_Y,
    force: bool = FORCE,
) -> dict[str, Any]:
    """Rebuild depth and meshes with other options, or from any normal map."""
    from photostereo.core.units import PixelSize
    from photostereo.io.atomic import replacing_directory, write_json
    from photostereo.io.ownership import MARK
    from photostereo.io.safe import exists
    from photostereo.pipeline.folder import files_to_offer, make_surface, shown_on_page
    from photostereo.report import renew_surface
    from photostereo.results.choice import SurfaceChoice
    from photostereo.results.formats import SURFACE_FILES
    from photostereo.solver.result_files import read_summary

    choice = SurfaceChoice(
        method=method,
        formats=tuple(name.lower() for name in names(formats) or ()),
        pixel_size=PixelSize.of(pixel_size),
        decimate=decimate,
        full=full,
        watertight=watertight,
        exr=exr,
        options={} if highpass is None else {"highpass": highpass},
    )
    if not exists(source):
        raise ps.CaptureError(code="missing-result", file=source)
    in_place = source.is_dir() and (out is None or out.resolve() == source.resolve())
    if source.is_dir():
        result = ps.Reconstruction.load(source)
        target, summary = out or source, read_summary(source)
    else:
        result = _from_picture(source, mask, flip_y)
        target = out or source.with_name(f"{source.stem}-mesh")
        summary = {"capture": source.stem, "method": "normal map"}
    used = [] if in_place else [source, *([mask] if mask is not None else [])]
    renewed = SURFACE_FILES if in_place else None
    # The old surface is removed only once the new one is complete: everything else is copied next to it.
    with replacing_directory(target, force=force or in_place, keep=used, renew=renewed) as folder:
        if in_place:
            replaced = {*SURFACE_FILES, MARK}
            shutil.copytree(
                source,
                folder,
                symlinks=True,
                dirs_exist_ok=True,
                ignore=lambda place, _: replaced if Path(place) == source else (),
            )
        summary["conventions"] = {
            name: said for name, said in summary.get("conventions", {}).items() if (folder / name).exists()
        }
        surface, facts = make_surface(
            folder, result, choice, normal_map=not in_place, flip_y=flip_y, control=terminal
        )
        summary["conventions"] |= facts.pop("conventions")
        summary["surface"] = facts
        write_json(folder / "summary.json", summary)
        page = folder / "report.html"
        offered = {
            **shown_on_page(surface),
            **files_to_offer(folder, summary),
            "pixel_size": choice.pixel_size,
        }
        if page.is_file() and not renew_surface(page, result, **offered):
            terminal.say("report.html was not written by this version and still shows the old surface.")
    facts = summary["surface"]
    terminal.say(f"{facts['method']}: {facts['vertices']} vertices, {facts['triangles']} triangles")
    if "note" in facts:
        terminal.say(facts["note"])
    terminal.say(f"Results: {target}")
    return {"out": str(target.absolute()), "surface": facts}


def _from_picture(source: Path, mask: Path | None, flip_y: bool) -> ps.Reconstruction:
    import numpy as np

    from photostereo.results.normal_map import read_normal_map

    normals, inside = read_normal_map(source, mask, flip_y=flip_y)
    return ps.Reconstruction(
        normals=normals,
        albedo=np.where(inside, np.float32(0.8), np.float32(0)),
        mask=inside,
        method="normal map",
        parameters={},
        capture=source.stem,
    )
