"""The OUT folder of a solve: arrays, pictures, surface, report and ``summary.json``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.io.atomic import replacing_directory, write_json
from photostereo.io.memory import give_back_memory
from photostereo.io.png import write_png
from photostereo.lights.files.table import write_lights
from photostereo.pipeline.settings import OutputSettings, Settings
from photostereo.report.about import check_about, read_about
from photostereo.results.choice import SurfaceChoice
from photostereo.results.maps import write_pictures
from photostereo.solver.opinion import assess
from photostereo.solver.reconstruction import Reconstruction
from photostereo.surface import Surface
from photostereo.surface.integration import check_method


def fill_results(
    folder: Path,
    capture: Capture | None,
    result: Reconstruction,
    settings: Settings,
    *,
    integrate: Callable[[], Surface] | None = None,
    made: Mapping[str, Any] | None = None,
    further: Callable[[], Mapping[str, Any]] | None = None,
    expected: ExpectedError | None = None,
    overlap: bool = False,
    control: Control = SILENT,
) -> dict[str, Any]:
    """Write all files of a result into an empty folder, which the caller moves into place; return the content of
    ``summary.json``.

    ``integrate`` returns the surface, if the caller keeps one. ``made`` records how to repeat the result
    (:func:`.provenance.provenance`); ``further`` returns more facts for the summary once everything else is written. With
    ``overlap`` (needs memory), arrays and pictures are made while the surface is integrated, and meshes beside the page.
    """
    surface, output = settings.surface, settings.output
    size = PixelSize() if surface is None else surface.pixel_size
    # Material and page use the photographs only if all of them are in memory.
    photographs = capture if capture is not None and capture.in_memory else None

    def beside_surface(quiet: Control) -> tuple[dict[str, str], Mapping[str, Any] | None]:
        """Write arrays and pictures; return their descriptions and the part of the page about the photographs."""
        result.save(folder, quiet)
        pictured = None if surface is None else size
        meanings = write_pictures(folder, result, flip_y=output.flip_y, size=pictured, control=quiet)
        if photographs is None or not (output.report and overlap):
            return meanings, None
        from photostereo.report.page import capture_evidence
        from photostereo.report.pictures import frame_around

        return meanings, capture_evidence(result, photographs, frame_around(result.mask), quiet)

    def meshes(watched: Control) -> tuple[Surface, dict[str, Any]]:
        assert surface is not None
        options: dict[str, Any] = {"normal_map": False, "flip_y": output.flip_y, "control": watched}
        return make_surface(folder, result, surface, whole, **options)

    control.stage("arrays and pictures")
    origin = None if capture is None else capture.origin
    about = {**read_about(None if origin is None else origin.path), **check_about(output.about)}
    whole, facts, page, spent = None, None, None, {"integrate": 0.0, "report": 0.0}
    with control.meanwhile(beside_surface) as begun:
        if not overlap:
            control.awaited(begun)
        began = time.perf_counter()
        if surface is not None:
            give_back_memory()
            whole = None if integrate is None else integrate()
        spent["integrate"] = time.perf_counter() - began
        beside = overlap and whole is not None
        if beside:
            control.stage("depth and meshes")
        elif surface is not None:
            whole, facts = meshes(control)
        with control.meanwhile(meshes) if beside else nullcontext() as writing:
            conventions, evidence = control.awaited(begun)
            began = time.perf_counter()
            if output.report:
                from photostereo.report.page import prepare_report

                give_back_memory()
                control.stage("report")
                page = prepare_report(
                    result,
                    photographs,
                    expected=expected,
                    evidence=evidence,
                    pixel_size=size,
                    about=about,
                    control=control,
                    **shown_on_page(whole),
                )
            spent["report"] = time.perf_counter() - began
            if writing is not None:
                _, facts = control.awaited(writing)
    summary = {
        **result.summary(),
        "expected_error": None if expected is None else expected.as_dict(),
        "conventions": conventions,
    }
    if capture is not None:
        summary["strengths"] = result.strengths_summary(origin.files if origin else ())
        _describe_capture(folder, capture, summary)
    if made is not None:
        summary["provenance"] = dict(made)
    if about:
        summary["about"] = about
    if facts is not None:
        summary["conventions"] |= facts.pop("conventions")
        facts["seconds"]["integrate"] += spent["integrate"]
        summary["surface"], summary["seconds"]["surface"] = facts, sum(facts["seconds"].values())
    if output.material is not None:
        from photostereo.results.export import export_result

        how: dict[str, Any] = {"tileable": output.material == "tileable", "texels": output.texels}
        how |= {"pixel_size": size, "capture": photographs, "control": control}
        summary["conventions"] |= export_result(folder, result, ["material"], **how)["conventions"]
    if page is not None:
        page.write(folder / "report.html", **files_to_offer(folder, summary))
        summary["seconds"]["report"] = spent["report"]
    control.check()
    if further is not None:
        summary |= further()
    write_json(folder / "summary.json", summary)
    return summary


def _describe_capture(folder: Path, capture: Capture, summary: dict[str, Any]) -> None:
    """Add facts about the photographs, and about the lights if no light file gave them; write mask and lights."""
    write_png(folder / "mask.png", capture.whole_mask.astype(np.uint8) * np.uint8(255))
    meanings = summary["conventions"]
    meanings["mask.png"] = "White on the object, at the size of the photographs; edit it and use it again."
    height, width = capture.frame
    facts: dict[str, Any] = {"count": len(capture), "height": height, "width": width}
    summary["photographs"] = facts
    facts["mask_pixels"] = capture.pixel_count
    origin = capture.origin
    if origin is None:
        return
    facts["left_out"] = [fault.as_dict() for fault in origin.faults if not fault.used]
    if origin.alignment is not None and len(origin.files) == len(origin.alignment.moves):
        summary["alignment"] = origin.alignment.as_dict(origin.files)
    if origin.calibration is not None:
        write_lights(origin.calibration, folder / "lights.csv")
        said = "Directions from the object to the lights: x right, y up, z toward the camera."
        meanings["lights.csv"] = said
        summary["lights"] = origin.calibration.facts()


def make_surface(
    folder: Path,
    result: Reconstruction,
    choice: SurfaceChoice,
    surface: Surface | None = None,
    *,
    normal_map: bool,
    flip_y: bool = False,
    control: Control = SILENT,
) -> tuple[Surface, dict[str, Any]]:
    """Write depth and meshes of a result, and ``normals.png`` if requested; without a ``surface``, integrate it first.

    Returns the surface and the facts for the summary.
    """
    from photostereo.results.surface_files import write_surface

    give_back_memory()
    return write_surface(
        folder,
        result.normals,
        result.mask,
        result.albedo,
        choice,
        normal_map=normal_map,
        flip_y=flip_y,
        surface=surface,
        name=result.capture,
        control=control,
    )


def shown_on_page(surface: Surface | None) -> dict[str, Any]:
    """Surface data for a page: depth and tears."""
    if surface is None:
        return {}
    tears = surface.torn_right | surface.torn_down if surface.tears else None
    return {"depth": surface.depth.astype(np.float32), "tears": tears}


def files_to_offer(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Files of a result that a page offers for download, with descriptions."""
    meanings = {
        name: said for name, said in summary.get("conventions", {}).items() if (folder / name).is_file()
    }
    for path in sorted(folder.glob("mesh.*")):
        meanings.setdefault(path.name, "")
    meanings["summary.json"] = "Method, parameters, figures and a description of every file."
    return {"files": {name: name for name in meanings}, "meanings": meanings}


def save(
    result: Reconstruction,
    out: str | os.PathLike[str],
    capture: Capture | None = None,
    *,
    surface: str | None = "poisson",
    report: bool = True,
    pixel_size: str | None = None,
    flip_y: bool = False,
    force: bool = False,
    control: Control = SILENT,
) -> Path:
    """Write a result as ``photostereo solve`` does: arrays, pictures, depth, meshes and page; all or nothing.

    Parameters
    ----------
    result : Reconstruction
        The result to write.
    out : path
        The folder to create.
    capture : Capture, optional
        The capture it was computed from; the page then shows the photographs, the lights and the diagnosis.
    surface : {"poisson", "robust", "simchony"} or None
        Integration method for depth and mesh; None for neither.
    report : bool
        Whether to write the page.
    pixel_size : str, optional
        Width of a pixel, such as ``"0.1mm"``, for the scale of meshes.
    flip_y : bool
        Write ``normals.png`` in the DirectX convention.
    force : bool
        Replace an existing folder of results.
    control : Control
        Receives progress.

    Returns
    -------
    Path
        The folder. :meth:`Reconstruction.load` reads it.

    Raises
    ------
    OutputError
        If the folder exists (and ``force`` is not given), contains anything not written by photostereo, or cannot be
        written.

    Examples
    --------
    >>> import tempfile
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> capture = owl(25.0, step=8)
    >>> folder = ps.save(ps.solve(capture, "ls"), tempfile.mkdtemp() + "/owl", capture, report=False)
    >>> sorted(path.name for path in folder.glob("mesh.*"))
    ['mesh.glb', 'mesh.ply']
    >>> ps.Reconstruction.load(folder).method
    'ls'
    """
    if surface is not None:
        check_method(surface)
    choice = None if surface is None else SurfaceChoice(method=surface, pixel_size=PixelSize.of(pixel_size))
    target = Path(out).expanduser()
    settings = Settings(surface=choice, output=OutputSettings(report=report, flip_y=flip_y))
    with replacing_directory(target, force=force) as folder:
        expected = assess(result, capture)
        fill_results(folder, capture, result, settings, expected=expected, control=control)
    return target
