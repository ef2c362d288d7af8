"""``photostereo mesh``: depth and mesh of a former solve, or of any normal map."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from photostereo.commands.terminal import Terminal
from photostereo.core.errors import CaptureError
from photostereo.io.atomic import replacing_directory
from photostereo.io.ownership import MARK
from photostereo.io.safe import exists
from photostereo.pipeline.folder import (
    SurfaceChoice,
    files_to_offer,
    make_surface,
    record_surface,
    write_summary,
)
from photostereo.report import renew_surface
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import read_summary

#: What this command makes again in the folder of a solve; everything else there stays.
SURFACE_FILES = frozenset(
    [
        *(f"mesh{end}" for end in (".ply", ".glb", ".obj", ".stl", ".mtl", "_albedo.png", "_normal.png")),
        *("tears.npy", "depth.npy", "depth.png", "depth.tiff", "depth.exr", "normals.exr"),
    ]
)


def run(
    source: Path,
    choice: SurfaceChoice,
    *,
    mask: Path | None,
    out: Path | None,
    flip_y: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Into the folder of the solve (its other files stay), or into a folder of its own."""
    if not exists(source):
        raise CaptureError(f"{source} does not exist. Give the OUT folder of a solve, or a normal-map PNG.")
    in_place = source.is_dir() and (out is None or out.resolve() == source.resolve())
    with Terminal(quiet=quiet) as terminal:
        if source.is_dir():
            result = Reconstruction.load(source)
            target = out or source
            # The old surface goes only when the new one is complete: everything else is copied beside it.
            replace = force or in_place
            summary = read_summary(source)
        else:
            result = _from_picture(source, mask, flip_y)
            target = out or source.with_name(f"{source.stem}-mesh")
            replace, summary = force, {"capture": source.stem, "method": "normal map"}
        used = [] if in_place else [source, *([mask] if mask is not None else [])]
        renewed = SURFACE_FILES if in_place else None
        with replacing_directory(target, force=replace, keep=used, renew=renewed) as folder:
            if in_place:
                _copy_all_but_surface(source, folder)
            summary["conventions"] = {
                name: said
                for name, said in summary.get("conventions", {}).items()
                if (folder / name).exists()
            }
            facts, shown = make_surface(
                folder, result, choice, normal_map=not in_place, flip_y=flip_y, control=terminal
            )
            record_surface(summary, facts)
            write_summary(folder, summary)
            page = folder / "report.html"
            if page.is_file() and not renew_surface(
                page,
                result,
                **shown,
                **files_to_offer(folder, summary),
                pixel_size=choice.pixel_size,
            ):
                terminal.say(
                    "The report in this folder is of another making and still shows the old surface."
                )
    facts = summary["surface"]
    terminal.say(f"{facts['method']}: {facts['vertices']} vertices, {facts['triangles']} triangles")
    if "note" in facts:
        terminal.say(facts["note"])
    terminal.say(f"Results: {target}")


def _copy_all_but_surface(source: Path, folder: Path) -> None:
    for path in source.iterdir():
        if path.name in SURFACE_FILES or path.name == MARK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, folder / path.name, symlinks=True)
        else:
            shutil.copy2(path, folder / path.name, follow_symlinks=False)


def _from_picture(source: Path, mask: Path | None, flip_y: bool) -> Reconstruction:
    from photostereo.results.normal_map import read_normal_map

    normals, inside = read_normal_map(source, mask, flip_y=flip_y)
    return Reconstruction(
        normals=normals,
        albedo=np.where(inside, np.float32(0.8), np.float32(0)),
        mask=inside,
        method="normal map",
        parameters={},
        capture=source.stem,
    )
