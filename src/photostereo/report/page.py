"""The report of one result: ``report.html``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Kind, as_finding
from photostereo.core.units import PixelSize
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.expected_error import ExpectedError, expected_error
from photostereo.diagnosis.metrics import angular_error, summarize_error
from photostereo.lights.exposure import describe_correction
from photostereo.report import pictures, wording
from photostereo.report.document import Page, files_part, render_page, time_parts
from photostereo.report.learning import atom_pictures, convergence_charts
from photostereo.report.photographs import contact_sheet
from photostereo.report.pictures import Frame
from photostereo.report.plots import color_bar, histogram, light_compass
from photostereo.report.pyramid import PAGE_BYTES, UNKNOWN_SIZE, Layers, view_data
from photostereo.report.surface_parts import surface_parts
from photostereo.solver.reconstruction import Reconstruction

#: What a page says about the capture, and None without one.
OF_THE_CAPTURE = (
    "calibration", "corrected", "diagnosis", "error_map", "first_problem", "photographs", "true_normals",
)  # fmt: skip
#: Kinds of notes about what was wrong with the photographs and was undone.
CORRECTED = (Kind.CORRECTION, Kind.ADJUSTMENT)
#: Characters reserved for the list of files; a usual one has 3,000.
OF_THE_LINKS = 20_000


def write_report(
    path: str | Path,
    result: Reconstruction,
    capture: Capture | None = None,
    *,
    depth: FloatArray | None = None,
    tears: BoolArray | None = None,
    files: Mapping[str, str] | None = None,
    meanings: Mapping[str, str] | None = None,
    expected: ExpectedError | None = None,
    evidence: Mapping[str, Any] | None = None,
    pixel_size: PixelSize = UNKNOWN_SIZE,
    about: Mapping[str, str] | None = None,
    control: Control = SILENT,
) -> None:
    """Write one self-contained page with a result: relighting, surface, evidence, diagnosis.

    Parameters
    ----------
    path : path
        The file to write.
    result : Reconstruction
        The result to show.
    capture : Capture, optional
        Adds the photographs, the lights, the diagnosis and, if the truth is known, the error.
    depth : (H, W) array, optional
        Height toward the camera in pixels, NaN outside the mask; adds the surface.
    tears : (H, W) array of bool, optional
        True where the surface is torn between a pixel and its right or lower neighbors; the view shows a gap.
    files : mapping, optional
        Files to offer for download: labels to paths relative to the page, such as ``{"full mesh": "mesh.ply"}``.
    meanings : mapping, optional
        Descriptions of the numbers in those files, by path.
    expected : ExpectedError, optional
        Expected error of the result; by default the estimate of its method.
    evidence : mapping, optional
        Return value of :func:`capture_evidence`, if already computed.
    pixel_size : PixelSize
        Scale of measurements in the page; without it, lengths are in pixels.
    about : mapping, optional
        ``title`` (the heading; by default the capture's name), ``inventory``, ``credit`` and ``license``.
    control : Control
        Can cancel.

    Raises
    ------
    OutputError
        If the page cannot be written; an existing page is kept.
    ParameterError
        If a linked file is not a relative path.

    Examples
    --------
    >>> import tempfile
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> capture = owl(25.0, step=8)
    >>> page = Path(tempfile.mkdtemp()) / "report.html"
    >>> ps.write_report(page, ps.solve(capture, "ls"), capture)
    >>> page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    shown: dict[str, Any] = {
        "depth": depth,
        "tears": tears,
        "expected": expected,
        "evidence": evidence,
    }
    page = prepare_report(
        result, capture, **shown, pixel_size=pixel_size, about=about, control=control
    )
    page.write(path, files, meanings)


def prepare_report(
    result: Reconstruction,
    capture: Capture | None = None,
    *,
    depth: FloatArray | None = None,
    tears: BoolArray | None = None,
    expected: ExpectedError | None = None,
    evidence: Mapping[str, Any] | None = None,
    pixel_size: PixelSize = UNKNOWN_SIZE,
    about: Mapping[str, str] | None = None,
    control: Control = SILENT,
) -> Page:
    """Make all of a page but the list of files, which may still be being written; arguments as in :func:`write_report`."""
    frame = pictures.frame_around(result.mask)
    normals, known = pictures.shrink_normals(result.normals, result.mask, frame)
    control.check()
    albedo, inside = pictures.albedo_picture(result.albedo, result.mask, frame)
    control.check()
    surface_data, surface = surface_parts(result, frame, depth, tears, pixel_size)
    data: dict[str, Any] = {"identity": identity_of(result)}
    spread = result.maps.get("spread")
    if surface_data is not None:
        data["surface"] = surface_data
    context: dict[str, Any] = {
        **dict.fromkeys(OF_THE_CAPTURE),
        "about": about or {},
        "result": result,
        "capture": capture,
        "expected": expected or expected_error(result),
        "stills": list(pictures.still_pictures(normals, known, albedo)),
        "surface": surface | files_part() | time_parts(result.seconds),
        "normals": pictures.shown(pictures.normals_picture(normals, known)),
        "albedo": pictures.shown(pictures.with_alpha(albedo, inside)),
        "spread": None if spread is None else pictures.map_picture(spread, result.mask, frame),
        "charts": convergence_charts(result.history),
        "atoms": atom_pictures(result),
        "citation": wording.method_words(result.method)[1],
        "color_bar": color_bar,
    }
    if capture is not None and capture.truth is not None:
        context |= error_evidence(result, capture.truth, frame)
    if capture is not None:
        control.check()
        context |= (
            capture_evidence(result, capture, frame, control) if evidence is None else evidence
        )
        # The pictures themselves are already in the page.
        kept = ("number", "name", "light", "words", "verdict")
        data["photographs"] = [{name: one[name] for name in kept} for one in context["photographs"]]
    shown = Layers(frame, result.mask, result.normals, [(result.albedo, 1.0)], depth)
    control.check()
    page = render_page("report.html", data, **context)
    room = page.room(PAGE_BYTES - OF_THE_LINKS)
    data["relight"] = view_data(
        {result.method: (shown, {"folder": ""})},
        shown,
        pixel_size=pixel_size,
        room=room,
        control=control,
    )
    control.check()
    return page


def identity_of(result: Reconstruction) -> str:
    """Return an identifier under which a browser stores the notes of a page."""
    digest = hashlib.sha256(f"{result.digest} {result.method}".encode())
    digest.update(
        np.ascontiguousarray(result.normals[:: max(1, result.normals.shape[0] // 64)]).tobytes()
    )
    return digest.hexdigest()[:20]


def error_evidence(result: Reconstruction, truth: FloatArray, frame: Frame) -> dict[str, Any]:
    error = angular_error(result.normals, truth, result.mask)
    found = summarize_error(result.normals, truth, result.mask)
    marks = {"median": found.median, "mean": found.mean}
    return {
        "true_normals": pictures.shown(
            pictures.normals_picture(*pictures.shrink_normals(truth, result.mask, frame))
        ),
        "error_map": pictures.map_picture(error, result.mask, frame),
        "error_plot": histogram(error[result.mask], pictures.ERROR_TOP, marks),
        "truth_error": found,
    }


def capture_evidence(
    result: Reconstruction, capture: Capture, frame: Frame, control: Control = SILENT
) -> dict[str, Any]:
    diagnosis = diagnose(capture, result, control)
    control.check()
    photographs, verdicts = contact_sheet(
        capture, result, diagnosis.saturation_by_photograph, control
    )
    control.check()
    calibration = None if capture.origin is None else capture.origin.calibration
    notes = [as_finding(note) for note in (() if capture.origin is None else capture.origin.notes)]
    problems = [str(said) for said in (*diagnosis.findings, *notes) if said.severity == "problem"]
    corrected = [wording.sentence(note) for note in notes if note.kind in CORRECTED]
    evidence: dict[str, Any] = {}
    if calibration is not None:
        problems += map(wording.sentence, calibration.warnings)
        evidence["calibration"] = calibration
        evidence["calibration_map"] = pictures.shown(calibration.picture, pictures.png)
        evidence["calibration_error"] = float(np.nanmax(calibration.lights.expected_error))
    dark = diagnosis.dark_count.astype(np.float32)
    return {
        "first_problem": problems[0] if problems else "",
        "photographs": photographs,
        "photographs_left_out": len(capture) - len(photographs),
        "compass": light_compass([(one["light"], one["name"]) for one in photographs]),
        "corrected": [*corrected, *filter(None, [describe_correction(result.strengths)])],
        "verdicts": verdicts,
        "diagnosis": diagnosis,
        "dark_map": pictures.map_picture(
            dark, result.mask, frame, top=float(max(diagnosis.photographs, 1))
        ),
        "residual_map": pictures.map_picture(
            100 * diagnosis.residual, result.mask, frame, top=50.0
        ),
        **evidence,
    }
