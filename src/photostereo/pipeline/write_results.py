"""The OUT folder of a solve: arrays, pictures, surface, report and ``summary.json``."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.findings import by_code
from photostereo.core.units import PixelSize
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.io.atomic import replacing_directory, write_json
from photostereo.io.memory import give_back_memory
from photostereo.io.png import write_png
from photostereo.lights.files.table import write_lights
from photostereo.photographs.source import hash_of
from photostereo.pipeline.settings import Settings
from photostereo.report.about import check_about, read_about
from photostereo.results.choice import SurfaceChoice
from photostereo.results.maps import write_pictures
from photostereo.solver.estimate_error import assess
from photostereo.solver.near import camera_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.surface import Surface, integrate
from photostereo.surface.integration import check_method

#: What :func:`fill_results` and its threads use and nothing before them imports: our own modules, then libraries that these
#: import when they first need them.
NEEDED_FOR_SURFACE = (
    "photostereo.results.surface_files",
    "photostereo.surface.adaptive",
    "photostereo.surface.poisson",
    "photostereo.surface.robust",
    "scipy.fft",
    "tifffile",
    "scipy.sparse.csgraph",
    "scipy.spatial",
    "fast_simplification",
)
NEEDED_FOR_PAGE = ("photostereo.report.page", "PIL.ImagePalette", "PIL.WebPImagePlugin")


def import_before_threads(settings: Settings) -> None:
    """Import what :func:`fill_results` needs while its threads run.

    A thread must not import: if two threads import modules that import each other, one of them may see a module that is
    only half there, and fail.
    """
    names: tuple[str, ...] = ()
    if settings.surface is not None:
        names += NEEDED_FOR_SURFACE
    if settings.report:
        names += NEEDED_FOR_PAGE
    for name in names:
        import_module(name)
    if settings.report:
        from PIL import Image

        from photostereo.report.document import templates

        Image.preinit()  # otherwise the first picture imports the common formats
        templates().get_template("plots.html")  # imports a codec


def fill_results(
    folder: Path,
    capture: Capture | None,
    result: Reconstruction,
    settings: Settings,
    *,
    integrated: Callable[[], Surface],
    made: Mapping[str, Any] | None = None,
    further: Callable[[], Mapping[str, Any]] | None = None,
    expected: ExpectedError | None = None,
    overlap: bool = False,
    on_disk: Capture | None = None,
    since: float | None = None,
    control: Control = SILENT,
) -> dict[str, Any]:
    """Write all files of a result into an empty folder, which the caller moves into place; return the content of
    ``summary.json``.

    ``integrated`` returns the surface. ``made`` records how to repeat the result (:func:`provenance`); ``further``
    returns more facts for the summary once everything else is written. With ``overlap`` (needs memory), arrays and
    pictures are made while the surface is integrated, and meshes beside the page. ``on_disk`` is the capture without its
    photographs in memory, which are released once the page has small copies of them. ``since``: when the work began.
    """
    since = time.perf_counter() if since is None else since
    surface = settings.surface
    size = PixelSize() if surface is None else surface.pixel_size
    # Material and page use the photographs only if all of them are in memory.
    photographs = capture if capture is not None and capture.in_memory else None

    def beside_surface(quiet: Control) -> tuple[dict[str, str], Mapping[str, Any] | None]:
        """Write arrays and pictures; return their descriptions and the part of the page about the photographs."""
        result.save(folder, quiet)
        pictured = None if surface is None else size
        meanings = write_pictures(
            folder, result, flip_y=settings.flip_y, size=pictured, control=quiet
        )
        if photographs is None or not (settings.report and overlap):
            return meanings, None
        from photostereo.report.page import capture_evidence
        from photostereo.report.pictures import frame_around

        return meanings, capture_evidence(result, photographs, frame_around(result.mask), quiet)

    def beside_page(watched: Control) -> dict[str, Any] | None:
        """Write depth and meshes; return the facts about them."""
        if surface is None:
            return None
        from photostereo.results.formats import Job
        from photostereo.results.surface_files import write_surface

        give_back_memory()
        job = Job(
            folder=folder,
            result=result,
            choice=surface,
            integrated=whole,
            flip_y=settings.flip_y,
            control=watched,
        )
        return write_surface(job)

    import_before_threads(settings)
    control.stage("arrays and pictures")
    origin = None if capture is None else capture.origin
    about = {**read_about(None if origin is None else origin.path), **check_about(settings.about)}
    whole = None
    page = None
    with control.meanwhile(beside_surface, really=overlap) as begun:
        began = time.perf_counter()
        if surface is not None:
            give_back_memory()
            whole = integrated()
            if overlap:  # else the meshes report it
                control.stage("depth and meshes")
        integrating = time.perf_counter() - began
        with control.meanwhile(beside_page, really=overlap) as writing:
            waiting = {"surface": time.perf_counter() - began}
            conventions, evidence = control.awaited(begun)
            if on_disk is not None and evidence is not None and settings.material is None:
                capture = photographs = on_disk
            began = time.perf_counter()
            if settings.report:
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
            facts = control.awaited(writing)
            waiting["report"] = time.perf_counter() - began
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
        facts["seconds"]["integrate"] += integrating
        summary["surface"] = facts
    if settings.material is not None:
        from photostereo.results.export import export_result

        how: dict[str, Any] = {
            "tileable": settings.material == "tileable",
            "texels": settings.texels,
        }
        how |= {"pixel_size": size, "capture": photographs, "control": control}
        summary["conventions"] |= export_result(folder, result, ["material"], **how)["conventions"]
    control.finish()
    seconds = summary["seconds"] = summary["seconds"] | waiting
    seconds["other"] = max(0.0, time.perf_counter() - since - sum(seconds.values()))
    if page is not None:
        page.write(folder / "report.html", **files_to_offer(folder, summary), seconds=seconds)
    control.check()
    if further is not None:
        summary |= further()
    write_json(folder / "summary.json", summary)
    return summary


def _describe_capture(folder: Path, capture: Capture, summary: dict[str, Any]) -> None:
    """Add facts about the photographs, and about the lights if no light file gave them; write mask and lights."""
    write_png(folder / "mask.png", capture.whole_mask.astype(np.uint8) * np.uint8(255))
    meanings = summary["conventions"]
    meanings["mask.png"] = (
        "White on the object, at the size of the photographs; edit it and use it again."
    )
    height, width = capture.frame
    facts: dict[str, Any] = {"count": len(capture), "height": height, "width": width}
    summary["photographs"] = facts
    facts["mask_pixels"] = capture.pixel_count
    origin = capture.origin
    if origin is None:
        return
    facts["left_out"] = [fault.as_dict() for fault in origin.faults if not fault.used]
    failures = [note.as_dict() for note in origin.notes if note.code == "check-failed"]
    if failures:
        summary["failed_checks"] = failures
    if origin.alignment is not None and len(origin.files) == len(origin.alignment.moves):
        summary["alignment"] = origin.alignment.as_dict(origin.files)
    summary["strengths"]["corrected"] |= "strengths-vary" in by_code(origin.notes)
    if origin.calibration is not None:
        write_lights(origin.calibration, folder / "lights.csv")
        said = "Directions from the object to the lights: x right, y up, z toward the camera."
        meanings["lights.csv"] = said
        summary["lights"] = origin.calibration.facts()


def provenance(
    capture: Capture,
    path: Path,
    settings: Settings,
    digests: Mapping[Path, str],
    command: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Describe the input of a solve for ``summary.json``: command, path, layout, reading options, mask and lights with
    their digests, the random choice of photographs, and name and SHA-256 of each photograph used.

    Only files without an entry in ``digests`` are read.
    """
    origin = capture.origin
    place = path.absolute()
    names = origin.files if origin is not None else ()
    root = origin.path if origin is not None else place
    words = ["photostereo", *sys.argv[1:]] if command is None else list(command)
    home = root if root.is_dir() else root.parent
    paths = [home / name for name in names]
    files: list[dict[str, Any]] = [
        {"file": file.name, "sha256": digests.get(file) or file_digest(file)} for file in paths
    ]
    if root.is_file() and not any(
        file.is_file() for file in paths
    ):  # an archive contains the photographs
        files = [{"file": root.name, "sha256": file_digest(root), "photographs": list(names)}]
    return {
        "command": shlex.join(words),
        "path": str(place),
        "layout": origin.layout if origin is not None else "in memory",
        "reading": {
            name: value
            if value is None or isinstance(value, (bool, int, float, str))
            else str(value)
            for name, value in vars(settings.reading).items()
            if name != "workers"
        },
        "mask": {"pixels": capture.pixel_count, "sha256": hash_of(capture.mask).hex()},
        "lights": {"count": len(capture), "sha256": hash_of(capture.lights.directions).hex()},
        "images": settings.images,
        "seed": settings.seed,
        "photographs": files,
    }


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file in hexadecimal digits; None if it cannot be read (any longer)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def shown_on_page(surface: Surface | None) -> dict[str, Any]:
    """Surface data for a page: depth and tears."""
    if surface is None:
        return {}
    tears = surface.torn_right | surface.torn_down if surface.tears else None
    return {"depth": surface.depth.astype(np.float32), "tears": tears}


def files_to_offer(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Files of a result that a page offers for download, with descriptions."""
    said = summary.get("conventions", {})
    meanings = {name: meaning for name, meaning in said.items() if (folder / name).is_file()}
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
    if surface is None:
        choice = None
    else:
        choice = SurfaceChoice(method=surface, pixel_size=PixelSize.of(pixel_size))
    target = Path(out).expanduser()
    settings = Settings(surface=choice, report=report, flip_y=flip_y)
    camera = None if capture is None else camera_of(capture)

    def integrated() -> Surface:
        return integrate(
            result.normals, result.mask, method=str(surface), camera=camera, control=control
        )

    with replacing_directory(target, force=force) as folder:
        facts: dict[str, Any] = {"integrated": integrated, "expected": assess(result, capture)}
        fill_results(folder, capture, result, settings, **facts, control=control)
    return target
