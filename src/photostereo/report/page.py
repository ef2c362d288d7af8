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
from photostereo.core.units import PixelSize
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.expected_error import ExpectedError, expected_error
from photostereo.diagnosis.metrics import angular_error
from photostereo.lights.strengths import describe_correction
from photostereo.report import figures, pictures, wording
from photostereo.report.about import about_lines
from photostereo.report.document import render_page, write_page
from photostereo.report.learning import Chart, atom_figures, convergence_charts
from photostereo.report.photographs import contact_sheet
from photostereo.report.pictures import Frame
from photostereo.report.plots import color_bar, histogram, light_compass
from photostereo.report.pyramid import Layers
from photostereo.report.surface_parts import surface_parts
from photostereo.report.view_data import PAGE_BYTES, UNKNOWN_SIZE, Shown, view_data
from photostereo.solver.reconstruction import Reconstruction

#: What the relighting view can show of one result.
MODES = (
    ("albedo", "Albedo"),
    ("clay", "Clay"),
    ("normals", "Normals"),
    ("slope", "Slope"),
    ("curvature", "Curved"),
    ("depth", "Depth"),
    ("occlusion", "Sky"),
)


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
    pixel_size: PixelSize = UNKNOWN_SIZE,
    about: Mapping[str, str] | None = None,
    control: Control = SILENT,
) -> None:
    """Write one self-contained page that shows a result: relighting, surface, evidence, diagnosis.

    Parameters
    ----------
    path : path
        The file to write.
    result : Reconstruction
        What to show.
    capture : Capture, optional
        Adds the photographs, the lights, the diagnosis and, if the truth is known, the error.
    depth : (H, W) array, optional
        Height towards the camera in pixels, NaN outside the mask; adds the surface.
    tears : (H, W) array of bool, optional
        True where the surface is torn between a pixel and its right or lower neighbors; left open in the
        view.
    files : mapping, optional
        Files to offer for download: labels to paths relative to the page, such as ``{"full mesh": "mesh.ply"}``.
    meanings : mapping, optional
        Those paths to a description of their numbers.
    expected : ExpectedError, optional
        How sure the result is; by default what its method says of itself.
    pixel_size : PixelSize
        Scale of measurements in the page; lengths are in pixels if it is not known.
    about : mapping, optional
        ``title`` (the heading; by default the capture's name), ``inventory``, ``credit`` and ``license``.
    control : Control
        Can cancel the work.

    Raises
    ------
    OutputError
        If the page cannot be written; an old one is then still in place.
    ParameterError
        If a linked file is not a relative path.

    Examples
    --------
    >>> import tempfile
    >>> import photostereo as ps
    >>> scene = ps.render_scene("sphere", size=32)
    >>> page = Path(tempfile.mkdtemp()) / "report.html"
    >>> ps.write_report(page, ps.solve(scene, "ls"), scene)
    >>> page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    frame = pictures.frame_around(result.mask)
    normals, known = pictures.shrink_normals(result.normals, result.mask, frame)
    albedo, inside = pictures.albedo_picture(result.albedo, result.mask, frame)
    control.check()
    surface_data, surface = surface_parts(result, frame, depth, tears, files, meanings, pixel_size)
    data: dict[str, Any] = {"identity": identity_of(result)}
    maps = [figures.normals_figure(normals, known), figures.albedo_figure(albedo, inside)]
    control.check()
    if capture is not None and capture.truth is not None:
        truth, truth_known = pictures.shrink_normals(capture.truth, result.mask, frame)
        maps.insert(1, figures.normals_figure(truth, truth_known, title="True normals"))
    if "spread" in result.maps:
        maps.append(figures.spread_figure(result.maps["spread"], result.mask, frame))
    if surface_data is not None:
        data["surface"] = surface_data
    context: dict[str, Any] = {
        "title": (about or {}).get("title") or result.capture,
        "about": about_lines(about or {}),
        "kicker": wording.kicker(result, capture),
        "verdict": wording.verdict(result, expected or expected_error(result)),
        "first_problem": "",
        "key_figures": wording.key_figures(result, capture),
        "stills": figures.still_figures(normals, known, albedo),
        "surface": surface,
        "maps": maps,
        "error": error_evidence(result, capture, frame),
        "photographs": [],
        "compass": "",
        "calibration": None,
        "charts": convergence_charts(result.history),
        "atoms": atom_figures(result),
        "diagnosis": None,
        "settings": wording.settings(result),
        "origins": wording.origins(result, capture),
        "citation": wording.method_words(result.method)[1],
        "method": result.method,
        "modes": MODES,
    }
    if capture is not None:
        control.check()
        context |= capture_evidence(result, capture, frame, control)
        data["photographs"] = [photograph.as_data() for photograph in context["photographs"]]
    shown = Layers(frame, result.mask, result.normals, [(result.albedo, 1.0)], depth)
    control.check()
    page = render_page("report.html", **context)
    room = page.room(data, PAGE_BYTES)
    data["relight"] = view_data(
        {result.method: Shown(shown)}, shown, pixel_size=pixel_size, room=room, control=control
    )
    control.check()
    write_page(path, page.text(data))


def identity_of(result: Reconstruction) -> str:
    """A name for what a page shows, by which a browser keeps its notes apart."""
    digest = hashlib.sha256(f"{result.digest} {result.method}".encode())
    digest.update(np.ascontiguousarray(result.normals[:: max(1, result.normals.shape[0] // 64)]).tobytes())
    return digest.hexdigest()[:20]


def error_evidence(result: Reconstruction, capture: Capture | None, frame: Frame) -> dict[str, Any] | None:
    """Error map, histogram and figures if the truth is known."""
    if capture is None or capture.truth is None:
        return None
    error = angular_error(result.normals, capture.truth, result.mask)
    inside = error[result.mask]
    mean, median = float(inside.mean()), float(np.median(inside))
    chart = Chart(
        "How large the errors are",
        histogram(
            inside,
            top=figures.ERROR_TOP,
            marks=[("median", median), ("mean", mean)],
            x_label="angular error",
            scale="ember",
            summary=f"Histogram of the angular error: median {median:.1f}, mean {mean:.1f} degrees",
        ),
        note=f"Errors beyond {figures.ERROR_TOP:.0f}° are counted in the last bar.",
    )
    unknown = int((~capture.truth[result.mask].any(axis=-1)).sum())
    rows = [
        ("Mean", f"{mean:.2f}°"),
        ("Median", f"{median:.2f}°"),
        ("90 % are below", f"{np.percentile(inside, 90):.1f}°"),
        ("Within 5°", f"{100 * (inside <= 5).mean():.1f} %"),
        ("Within 10°", f"{100 * (inside <= 10).mean():.1f} %"),
        ("Within 30°", f"{100 * (inside <= 30).mean():.1f} %"),
    ]
    if unknown:
        rows.append(("Without a truth, counted as 90°", str(unknown)))
    return {
        "map": figures.error_figure(error, result.mask, frame),
        "chart": chart,
        "rows": [{"label": label, "value": value} for label, value in rows],
    }


def calibration_evidence(capture: Capture) -> dict[str, Any] | None:
    """How the lights were found if there was no light file: a picture to check them, and warnings."""
    calibration = None if capture.origin is None else capture.origin.calibration
    if calibration is None or calibration.picture is None:
        return None
    picture = figures.MapFigure(
        title="Where the lights were",
        note=(
            "Left: the outline of the ball, and its highlight in each photograph. Right: t"
            if calibration.balls
            else "T"
        )
        + "he lights above the object; the middle is the camera, numbers on the rings are degrees above the image plane. "
        "Red is doubtful.",
        address=pictures.png(calibration.picture),
        alt=("The ball with its outline and highlights, and t" if calibration.balls else "T")
        + "he directions of the lights on a hemisphere",
        width=calibration.picture.shape[1],
        height=calibration.picture.shape[0],
    )
    return {
        "figure": picture,
        "is_estimated": not calibration.balls,
        "found_from": ", ".join(dict.fromkeys(calibration.found_from)),
        "strengths_from": calibration.strengths_from,
        "good_to": f"{max(float(np.nanmax(calibration.residual)), 0.1):.1f}°",
        "warnings": [sentence[:1].upper() + sentence[1:] for sentence in calibration.warnings],
    }


def _noise_in_words(snr_db: float) -> str:
    if np.isfinite(snr_db):
        return f"{snr_db:.0f} dB"
    return "none" if snr_db > 0 else "no signal"


def capture_evidence(
    result: Reconstruction, capture: Capture, frame: Frame, control: Control = SILENT
) -> dict[str, Any]:
    """Photographs, lights and the diagnosis."""
    diagnosis = diagnose(capture, result, control)
    control.check()
    photographs, verdicts = contact_sheet(capture, result, diagnosis.saturation_by_photograph, control)
    control.check()
    noise, lights = diagnosis.noise, diagnosis.lights
    figures_shown = [
        ("Lights", f"{lights.condition:.1f}", "condition number; 1 is ideal, above 10 is poor"),
        (
            "Noise",
            _noise_in_words(noise.snr_db),
            "estimated signal-to-noise ratio",
        ),
        ("Noise alone costs", f"{noise.expected_error:.1f}°", "typical turn of a least-squares normal"),
        ("Saturated", f"{100 * diagnosis.saturation:.2g} %", "of all values on the object"),
        (
            "Poorly lit",
            f"{100 * diagnosis.poorly_lit:.2g} %",
            "of the pixels have fewer than four lit photographs",
        ),
    ]
    calibration = calibration_evidence(capture)
    problems = [finding.text for finding in diagnosis.findings if finding.severity == "problem"]
    problems += [] if calibration is None else [f"{text}." for text in calibration["warnings"]]
    return {
        "first_problem": problems[0] if problems else "",
        "photographs": photographs,
        "photographs_left_out": len(capture) - len(photographs),
        "compass": light_compass(
            np.array([photograph.light for photograph in photographs]),
            [photograph.name for photograph in photographs],
        ),
        "calibration": calibration,
        "correction": describe_correction(result.strengths),
        "verdict_title": verdicts.title,
        "verdict_bar": color_bar("weight", verdicts.low, verdicts.high, words=verdicts.ends),
        "diagnosis": {
            "findings": diagnosis.findings,
            "figures": [{"label": a, "value": b, "note": c} for a, b, c in figures_shown],
            "maps": figures.diagnosis_figures(diagnosis, result.mask, frame),
        },
    }
