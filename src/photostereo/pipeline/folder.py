"""The OUT folder of a solve: arrays, pictures, surface, report and ``summary.json``, complete or not at
all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.diagnosis.expected_error import expected_error
from photostereo.io.atomic import write_json
from photostereo.lights.files.writing import write_lights
from photostereo.results.pictures import write_pictures
from photostereo.solver.reconstruction import Reconstruction


@dataclass(frozen=True)
class SurfaceChoice:
    """How depth and mesh are made; see :func:`photostereo.results.surface_files.write_surface`."""

    method: str = "poisson"
    formats: tuple[str, ...] = ("ply", "glb")
    pixel_size: PixelSize = field(default_factory=PixelSize)
    decimate: int | None = None
    full: bool = False
    watertight: bool = False
    exr: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


#: Bytes of a pixel of the frame while its surface is integrated, with the arrays of the result; while meshes are made;
#: and while the page is. And of a triangle of the mesh.
OF_A_SURFACE = {"poisson": 110, "simchony": 110, "robust": 140}
OF_A_RESULT, OF_A_MESH, OF_A_PAGE = 50, 110, 90
OF_A_TRIANGLE = 100


def bytes_of_results(
    frame: tuple[int, int], channels: int, surface: SurfaceChoice | None, *, report: bool
) -> int:
    """What writing a result takes, once the photographs are solved.

    >>> bytes_of_results((4000, 6000), 1, SurfaceChoice(), report=True) // 10**6
    2840
    """
    area = frame[0] * frame[1]
    need = area * (OF_A_PAGE if report else OF_A_RESULT)
    if surface is not None:
        from photostereo.surface.mesh import MOST_TRIANGLES

        need = max(need, area * OF_A_SURFACE[surface.method])
        triangles = 2 * area if surface.full else min(2 * area, MOST_TRIANGLES)
        if surface.formats:
            need = max(need, area * OF_A_MESH + OF_A_TRIANGLE * triangles)
    return need + area * 4 * (channels - 1)


class Filled(NamedTuple):
    """What was written: the summary, and the surface as a page shows it (``depth``, ``tears``; empty without one)."""

    summary: dict[str, Any]
    shown: dict[str, Any]


def fill_results(
    folder: Path,
    capture: Capture | None,
    result: Reconstruction,
    *,
    surface: SurfaceChoice | None,
    report: bool,
    material: str | None = None,
    flip_y: bool = False,
    made: Mapping[str, Any] | None = None,
    control: Control = SILENT,
) -> Filled:
    """Write everything that belongs to a result into an existing folder that the caller moves into place.

    ``material`` asks for the maps of a flat sample, ``"tileable"`` for such that wrap.
    ``made`` (see :func:`.provenance.provenance`) enters the summary, so that the result can be repeated.
    """
    control.stage("arrays and pictures", 2)
    result.save(folder)
    control.advance()
    size = None if surface is None else surface.pixel_size
    said = write_pictures(folder, result, flip_y=flip_y, size=size)
    control.advance()
    expected = expected_error(result)
    summary = {
        **result.summary(),
        "expected_error": None if expected is None else expected.as_dict(),
        "conventions": said,
    }
    if capture is not None:
        summary["strengths"] = result.strengths_summary(capture.origin.files if capture.origin else ())
        height, width = capture.frame
        summary["photographs"] = {
            "count": len(capture),
            "height": height,
            "width": width,
            "mask_pixels": capture.pixel_count,
        }
    calibration = None if capture is None or capture.origin is None else capture.origin.calibration
    if calibration is not None:
        write_lights(calibration, folder / "lights.csv")
        said["lights.csv"] = "Directions from the object to the lamps: x right, y up, z towards the camera."
        summary["lights"] = {
            "found_from": sorted(set(calibration.found_from)),
            "strengths_from": calibration.strengths_from,
            "warnings": list(calibration.warnings),
        }
    if made is not None:
        summary["provenance"] = dict(made)
    shown: dict[str, Any] = {}
    if surface is not None:
        began = time.perf_counter()
        control.stage("surface")
        facts, shown = make_surface(folder, result, surface, normal_map=False, flip_y=flip_y, control=control)
        record_surface(summary, facts)
        summary["seconds"]["surface"] = time.perf_counter() - began
    # What material and page take from the photographs needs all of them in memory.
    photographs = capture if capture is not None and capture.in_memory else None
    if material is not None:
        from photostereo.results.export import write_material

        control.stage("material")
        wraps = material == "tileable"
        summary["conventions"] |= write_material(
            folder, result, size or PixelSize(), capture=photographs, tileable=wraps
        )
    if report:
        from photostereo.report import write_report

        began = time.perf_counter()
        control.stage("report")
        files = files_to_offer(folder, summary)
        pixel_size = PixelSize() if size is None else size
        write_report(folder / "report.html", result, photographs, pixel_size=pixel_size, **shown, **files)
        summary["seconds"]["report"] = time.perf_counter() - began
    write_summary(folder, summary)
    return Filled(summary, shown)


def make_surface(
    folder: Path,
    result: Reconstruction,
    choice: SurfaceChoice,
    *,
    normal_map: bool,
    flip_y: bool = False,
    control: Control = SILENT,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Depth and meshes of a result, and ``normals.png`` where it is not there yet.

    Returns the facts for the summary, and what a page shows of the surface: depth and tears.
    """
    from photostereo.results.surface_files import write_surface

    surface, facts = write_surface(
        folder,
        result.normals,
        result.mask,
        result.albedo,
        method=choice.method,
        formats=choice.formats,
        pixel_size=choice.pixel_size,
        decimate=choice.decimate,
        full=choice.full,
        watertight=choice.watertight,
        normal_map=normal_map,
        flip_y=flip_y,
        exr=choice.exr,
        control=control,
        **choice.options,
    )
    tears = surface.torn_right | surface.torn_down if surface.tears else None
    return facts, {"depth": surface.depth.astype(np.float32), "tears": tears}


def record_surface(summary: dict[str, Any], facts: dict[str, Any]) -> None:
    """Enter the facts of a surface; what its files mean joins what the others mean."""
    said = facts.pop("conventions")
    summary["conventions"] = {**summary.get("conventions", {}), **said}
    summary["surface"] = facts


def files_to_offer(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Files of a result that a page offers for download, and what each of them means."""
    meanings = {
        name: said for name, said in summary.get("conventions", {}).items() if (folder / name).is_file()
    }
    for path in sorted(folder.glob("mesh.*")):
        meanings.setdefault(path.name, "")
    meanings["summary.json"] = "Method, parameters, figures and what every file means."
    return {"files": {name: name for name in meanings}, "meanings": meanings}


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """``summary.json``, replaced at once."""
    write_json(folder / "summary.json", summary)
