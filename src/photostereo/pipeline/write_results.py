"""The OUT folder of a solve: arrays, pictures, surface, report and ``summary.json``."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.findings import Finding, by_code
from photostereo.core.units import PixelSize
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.io.atomic import replacing_directory, write_json
from photostereo.io.memory import give_back_memory
from photostereo.io.png import write_png
from photostereo.lights.files.table import write_lights
from photostereo.photographs.frames import hash_of
from photostereo.pipeline.parts import Answer, make_part
from photostereo.pipeline.settings import Settings
from photostereo.report.about import check_about, read_about
from photostereo.results.choice import SurfaceChoice
from photostereo.results.maps import write_pictures
from photostereo.solver.estimate_error import assess
from photostereo.solver.near import camera_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.surface import Surface, integrate
from photostereo.surface.integration import check_method

if TYPE_CHECKING:
    from photostereo.report.document import Page

#: Descriptions of files in ``summary.json``.
MEANING_OF_MASK = "White on the object, at the size of the photographs; edit it and use it again."
MEANING_OF_LIGHTS = "Directions from the object to the lights: x right, y up, z toward the camera."
#: What :class:`ResultWriter` and its threads use and nothing before them imports: our own modules, then libraries that these
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
    """Import what a :class:`ResultWriter` needs while its threads run.

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


@dataclass
class ResultWriter:
    """Writes a result into an empty folder, which the caller moves into place.

    Arrays and ``summary.json`` come first. Everything else is made beside them: if a part fails, the others are written all
    the same, and the failure is a finding. Only a failure of the arrays, a cancellation, or an exception raised by a
    callback of the control ends the work.
    """

    folder: Path
    result: Reconstruction
    settings: Settings
    integrate: Callable[
        [], Surface
    ]  #: returns the surface; called only if the settings ask for one
    #: the capture, with its photographs in memory if they fit; None if only the result is known
    capture: Capture | None = None
    #: the same capture without its photographs in memory: they are released once the page has small copies of them
    on_disk: Capture | None = None
    expected: ExpectedError | None = None
    #: whether arrays and pictures are made while the surface is integrated, and meshes beside the page; needs memory
    overlaps: bool = False
    control: Control = SILENT
    failures: list[Finding] = field(default_factory=list)  #: what could not be made

    def write(
        self,
        *,
        made: Mapping[str, Any] | None = None,
        further: Callable[[], Mapping[str, Any]] | None = None,
        since: float,
    ) -> dict[str, Any]:
        """Write all files and return the content of ``summary.json``.

        Parameters
        ----------
        made : mapping, optional
            How to repeat the result: see :func:`provenance`.
        further : callable, optional
            Returns more facts for the summary; called once everything else is written.
        since : float
            When the work began, a value of :func:`time.perf_counter`.
        """
        self._attempt("loading of libraries", partial(import_before_threads, self.settings))
        seconds: dict[str, float] = {}
        conventions, mesh_facts, page = self._make_files(seconds)
        summary = self.result.summary()
        summary["expected_error"] = None if self.expected is None else self.expected.as_dict()
        summary["conventions"] = conventions
        self._attempt("description of the photographs", partial(self._describe_capture, summary))
        if made is not None:
            summary["provenance"] = dict(made)
        about = self._about()
        if about:
            summary["about"] = about
        if mesh_facts is not None:
            summary["conventions"] |= mesh_facts.pop("conventions")
            summary["surface"] = mesh_facts
        if self.settings.material is not None:
            meanings = self._attempt("material", self._write_material)
            summary["conventions"] |= meanings or {}
        self.control.finish()
        seconds = {**summary["seconds"], **seconds}
        seconds["other"] = max(0.0, time.perf_counter() - since - sum(seconds.values()))
        summary["seconds"] = seconds
        if page is not None:
            self._attempt("page", partial(self._write_page, page, summary))
        self.control.check()
        if further is not None:
            summary |= self._attempt("further figures", further) or {}
        if self.failures:
            summary["missing_parts"] = [failure.as_dict() for failure in self.failures]
        write_json(self.folder / "summary.json", summary)
        return summary

    def _make_files(
        self, seconds: dict[str, float]
    ) -> tuple[dict[str, str], dict[str, Any] | None, Page | None]:
        """Write arrays, pictures, depth and meshes, and make the page, side by side if there is memory.

        Parameters
        ----------
        seconds : dict
            Receives the times of ``surface`` and ``report``.

        Returns
        -------
        conventions : dict of str
            The meaning of each file.
        mesh_facts : dict or None
            The entry of the surface in ``summary.json``.
        page : Page or None
            The page, which still lacks the list of files.
        """
        surface: Surface | None = None
        page: Page | None = None
        self.control.stage("arrays and pictures")
        with self.control.meanwhile(self._write_arrays, really=self.overlaps) as arrays:
            began = time.perf_counter()
            if self.settings.surface is not None:
                surface = self._integrated()
            integrating = time.perf_counter() - began
            write_meshes = partial(self._write_meshes, surface)
            with self.control.meanwhile(write_meshes, really=self.overlaps) as meshes:
                seconds["surface"] = time.perf_counter() - began
                conventions, evidence = self.control.awaited(arrays)
                if evidence is not None and self.settings.material is None:
                    self._release_photographs()
                began = time.perf_counter()
                if self.settings.report:
                    self.control.stage("report")
                    page = self._attempt("page", partial(self._prepare_page, surface, evidence))
                mesh_facts = self.control.awaited(meshes)
                seconds["report"] = time.perf_counter() - began
        if mesh_facts is not None:
            mesh_facts["seconds"]["integrate"] += integrating
        return conventions, mesh_facts, page

    def _attempt(self, part: str, work: Callable[[], Answer]) -> Answer | None:
        return make_part(part, work, self.failures)

    @property
    def _photographs(self) -> Capture | None:
        """The capture if material and page can use its photographs: if all of them are in memory."""
        if self.capture is not None and self.capture.in_memory:
            return self.capture
        return None

    @property
    def _pixel_size(self) -> PixelSize:
        surface = self.settings.surface
        return PixelSize() if surface is None else surface.pixel_size

    def _about(self) -> dict[str, str]:
        """Information about the object, from the folder of the photographs and from the settings."""
        path = None
        if self.capture is not None and self.capture.origin is not None:
            path = self.capture.origin.path
        beside = self._attempt("information about the object", partial(read_about, path))
        return {**(beside or {}), **check_about(self.settings.about)}

    def _write_arrays(self, control: Control) -> tuple[dict[str, str], Mapping[str, Any] | None]:
        """Write arrays and pictures; return their descriptions and the part of the page about the photographs."""
        self.result.save(self.folder, control)
        pictures = partial(
            write_pictures,
            self.folder,
            self.result,
            flip_y=self.settings.flip_y,
            size=None if self.settings.surface is None else self._pixel_size,
            control=control,
        )
        meanings = self._attempt("pictures", pictures) or {}
        evidence = self._evidence(control) if self.overlaps else None
        return meanings, evidence

    def _evidence(self, control: Control) -> Mapping[str, Any] | None:
        """The part of the page about the photographs; None if they are not in memory, or if it fails."""
        capture = self._photographs
        if capture is None or not self.settings.report:
            return None
        from photostereo.report.page import capture_evidence
        from photostereo.report.pictures import frame_around

        frame = frame_around(self.result.mask)
        part = partial(capture_evidence, self.result, capture, frame, control)
        return self._attempt("contact sheet", part)

    def _integrated(self) -> Surface | None:
        give_back_memory()
        surface = self._attempt("surface", self.integrate)
        if self.overlaps:  # otherwise the meshes report it
            self.control.stage("depth and meshes")
        return surface

    def _write_meshes(self, surface: Surface | None, control: Control) -> dict[str, Any] | None:
        """Write depth and meshes of a surface; return the facts about them."""
        choice = self.settings.surface
        if surface is None or choice is None:
            return None
        from photostereo.results.formats import Job
        from photostereo.results.surface_files import write_surface

        give_back_memory()
        job = Job(
            folder=self.folder,
            result=self.result,
            choice=choice,
            integrated=surface,
            flip_y=self.settings.flip_y,
            control=control,
        )
        return self._attempt("depth and meshes", partial(write_surface, job))

    def _release_photographs(self) -> None:
        if self.on_disk is not None:
            self.capture = self.on_disk

    def _prepare_page(self, surface: Surface | None, evidence: Mapping[str, Any] | None) -> Page:
        from photostereo.report.page import prepare_report

        give_back_memory()
        if not self.overlaps:
            evidence = self._evidence(self.control)
        return prepare_report(
            self.result,
            None if evidence is None else self.capture,
            expected=self.expected,
            evidence=evidence,
            pixel_size=self._pixel_size,
            about=self._about(),
            control=self.control,
            **shown_on_page(surface),
        )

    def _write_page(self, page: Page, summary: Mapping[str, Any]) -> None:
        files = files_to_offer(self.folder, summary)
        page.write(self.folder / "report.html", **files, seconds=summary["seconds"])

    def _write_material(self) -> dict[str, str]:
        """Write the maps of a flat sample; return their descriptions."""
        from photostereo.results.export import export_result

        facts = export_result(
            self.folder,
            self.result,
            ["material"],
            tileable=self.settings.material == "tileable",
            texels=self.settings.texels,
            pixel_size=self._pixel_size,
            capture=self._photographs,
            control=self.control,
        )
        meanings: dict[str, str] = facts["conventions"]
        return meanings

    def _describe_capture(self, summary: dict[str, Any]) -> None:
        """Add facts about the photographs, and about the lights if no light file gave them; write mask and lights."""
        capture = self.capture
        if capture is None:
            return
        origin = capture.origin
        meanings = summary["conventions"]
        summary["strengths"] = self.result.strengths_summary(origin.files if origin else ())
        height, width = capture.frame
        facts: dict[str, Any] = {
            "count": len(capture),
            "height": height,
            "width": width,
            "mask_pixels": capture.pixel_count,
        }
        summary["photographs"] = facts
        mask = capture.whole_mask.astype(np.uint8) * np.uint8(255)
        write_png(self.folder / "mask.png", mask)
        meanings["mask.png"] = MEANING_OF_MASK
        if origin is None:
            return
        facts["left_out"] = [fault.as_dict() for fault in origin.faults if not fault.used]
        failed = [note.as_dict() for note in origin.notes if note.code == "check-failed"]
        if failed:
            summary["failed_checks"] = failed
        if origin.alignment is not None and len(origin.files) == len(origin.alignment.moves):
            summary["alignment"] = origin.alignment.as_dict(origin.files)
        summary["strengths"]["corrected"] |= "strengths-vary" in by_code(origin.notes)
        if origin.calibration is not None:
            summary["lights"] = origin.calibration.facts()
            write_lights(origin.calibration, self.folder / "lights.csv")
            meanings["lights.csv"] = MEANING_OF_LIGHTS


def provenance(
    capture: Capture,
    path: Path,
    settings: Settings,
    digests: Mapping[Path, str],
    command: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Describe the input of a solve for ``summary.json``.

    Parameters
    ----------
    capture : Capture
        The capture that was solved.
    path : path
        Its folder or file.
    settings : Settings
        The settings, with the corrections stored beside the capture.
    digests : mapping of path to str
        SHA-256 of files that have been read; only other files are read here.
    command : sequence of str, optional
        The command line; by default that of this process.

    Returns
    -------
    dict
        Command, path, layout, reading options, mask and lights with their digests, the random choice of photographs,
        and name and SHA-256 of each photograph used.
    """
    origin = capture.origin
    words = ["photostereo", *sys.argv[1:]] if command is None else list(command)
    return {
        "command": shlex.join(words),
        "path": str(path.absolute()),
        "layout": "in memory" if origin is None else origin.layout,
        "reading": {
            name: value if isinstance(value, (bool, int, float, str, NoneType)) else str(value)
            for name, value in vars(settings.reading).items()
            if name != "workers"
        },
        "mask": {"pixels": capture.pixel_count, "sha256": hash_of(capture.mask).hex()},
        "lights": {"count": len(capture), "sha256": hash_of(capture.lights.directions).hex()},
        "images": settings.images,
        "seed": settings.seed,
        "photographs": _photographs_used(capture, path, digests),
    }


def _photographs_used(
    capture: Capture, path: Path, digests: Mapping[Path, str]
) -> list[dict[str, Any]]:
    """Name and SHA-256 of each photograph, or of the archive that contains them."""
    origin = capture.origin
    names = () if origin is None else origin.files
    root = path.absolute() if origin is None else origin.path
    home = root if root.is_dir() else root.parent
    files = [home / name for name in names]
    if root.is_file() and not any(file.is_file() for file in files):
        return [{"file": root.name, "sha256": file_digest(root), "photographs": list(names)}]
    return [{"file": file.name, "sha256": digests.get(file) or file_digest(file)} for file in files]


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

    since = time.perf_counter()
    failures: list[Finding] = []

    def integrated() -> Surface:
        return integrate(
            result.normals, result.mask, method=str(surface), camera=camera, control=control
        )

    with replacing_directory(target, force=force) as folder:
        expected = make_part("expected error", partial(assess, result, capture), failures)
        ResultWriter(
            folder,
            result,
            settings,
            integrated,
            capture=capture,
            expected=expected,
            control=control,
            failures=failures,
        ).write(since=since)
    return target
