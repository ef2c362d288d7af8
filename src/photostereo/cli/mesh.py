"""``photostereo mesh``: rebuild depth and meshes with other options, or from any normal map."""

from __future__ import annotations

import shutil
from os.path import exists
from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.options import names
from photostereo.cli.terminal import Terminal
from photostereo.core.units import PixelSize


def mesh(
    terminal: Terminal,
    source: Path,
    method: str = "poisson",
    formats: str = "ply,glb",
    pixel_size: str | None = None,
    decimate: int | None = None,
    full: bool = False,
    watertight: bool = False,
    highpass: float | None = None,
    exr: bool = False,
    mask: Path | None = None,
    out: Path | None = None,
    flip_y: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Rebuild depth and meshes with other options, or from any normal map."""
    from photostereo.io.atomic import replacing_directory, write_json
    from photostereo.io.ownership import MARK
    from photostereo.pipeline.write_results import files_to_offer, shown_on_page
    from photostereo.report import renew_surface
    from photostereo.results.choice import SurfaceChoice
    from photostereo.results.formats import SURFACE_FILES, Job
    from photostereo.results.maps import describe_normals, write_normal_png
    from photostereo.results.surface_files import write_surface
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
        raise ps.CaptureError(
            f"{source} does not exist. Give the OUT folder of a solve, or a normal-map PNG.",
            code="missing-result",
            file=source,
        )
    in_place = source.is_dir() and (out is None or out.resolve() == source.resolve())
    if source.is_dir():
        result = ps.Reconstruction.load(source)
        target = out or source
        summary = read_summary(source)
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
            name: said
            for name, said in summary.get("conventions", {}).items()
            if (folder / name).exists()
        }
        job = Job(folder=folder, result=result, choice=choice, flip_y=flip_y, control=terminal)
        facts = write_surface(job)
        summary["conventions"] |= facts.pop("conventions")
        if not in_place:
            write_normal_png(
                folder / "normals.png",
                job.unit_normals,
                job.surface.mask,
                flip_y=flip_y,
                size=choice.pixel_size,
            )
            facts["files"] = sorted([*facts["files"], "normals.png"])
            summary["conventions"]["normals.png"] = describe_normals(flip_y, signed=False)
        summary["surface"] = facts
        write_json(folder / "summary.json", summary)
        page = folder / "report.html"
        offered = {
            **shown_on_page(job.surface),
            **files_to_offer(folder, summary),
            "pixel_size": choice.pixel_size,
        }
        if page.is_file() and not renew_surface(page, result, **offered):
            terminal.say(
                "report.html was not written by this version and still shows the old surface."
            )
    facts = summary["surface"]
    terminal.say(f"{facts['method']}: {facts['vertices']} vertices, {facts['triangles']} triangles")
    if "note" in facts:
        terminal.say(facts["note"])
    terminal.say(f"Results: {target}")
    return {"out": str(target.absolute()), "surface": facts}


def _from_picture(source: Path, mask: Path | None, flip_y: bool) -> ps.Reconstruction:
    import numpy as np

    from photostereo.results.maps import read_normal_map

    normals, inside = read_normal_map(source, mask, flip_y=flip_y)
    return ps.Reconstruction(
        normals=normals,
        albedo=np.where(inside, np.float32(0.8), np.float32(0)),
        mask=inside,
        method="normal map",
        parameters={},
        capture=source.stem,
    )
