"""The lights that neither a light file nor a ball gives, from the photographs and the mask.

What a light file says is kept. It may leave open all lights, some of them, or their strengths only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.lighting import Lighting
from photostereo.capture.opening import Found
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.lights.ball.calibration import Calibration, strengths_of_scene
from photostereo.lights.ball.picture import dome_picture
from photostereo.lights.files.reading import ESTIMATED
from photostereo.lights.lights import Lights
from photostereo.lights.strength import sample_pixels
from photostereo.lights.unknown.crops import Thumbnails, crop_photographs
from photostereo.lights.unknown.estimate import estimate_lights
from photostereo.lights.unknown.verdict import DOUBTFUL_ERROR, Verdict

#: Why lights cannot be estimated, by the verdict's reason.
_UNUSABLE = {
    "all-alike": "all photographs look alike, as with a single light or a surface without relief",
    "not-one-object": "the photographs do not seem to show one object from one viewpoint",
    "large-error": "the estimate would be too inaccurate to be useful",
}


def complete_lights(
    lighting: Lighting,
    photographs: Iterable[NDArray[np.float32]],
    mask: BoolArray,
    found: Found,
    control: Control = SILENT,
) -> Lighting:
    """The lights with everything that is not known of them estimated.

    ``photographs`` are divided by the strengths that are known.
    """
    count, table = len(found.files), found.lights
    thumbnails = crop_photographs(photographs, mask)
    fixed, closed = np.zeros(count, bool), np.zeros(count, bool)
    if table is not None:
        fixed = ~_or_none(table.open_directions, count)
        closed = ~_or_none(table.open_strengths, count)
        if table.intensities is None:  # lights in the file are taken as equal, others may differ
            closed &= fixed
    given = lighting.lights
    if fixed.all():
        factors, source = _strengths(thumbnails, given.directions)
        note = Finding("strengths-estimated", source=source)
        lights = given.changed(
            strengths=_completed(given.strengths, factors, closed), strengths_source=source
        )
        return Lighting(lights, balls=lighting.balls, notes=(*lighting.notes, note))
    known = np.where(fixed[:, None], given.directions, np.nan) if given.known else None
    estimated = estimate_lights(thumbnails, known=known, control=control)
    verdict = estimated.verdict
    if not verdict.usable:
        raise _unusable(verdict, found, int((~fixed).sum()))
    strengths = _completed(given.strengths, estimated.strengths, closed)
    name = "" if table is None else table.path.name
    lights = Lights(
        estimated.directions,
        strengths=strengths,
        expected_error=np.where(fixed, np.nan, estimated.expected_error_degrees),
        source=[name if one else ESTIMATED for one in fixed],
        strengths_source=name if closed.all() else ESTIMATED,
    )
    missing = int((~fixed).sum())
    which = f"{missing} of {count} light directions are not in {name}: they" if fixed.any() else "the lights"
    notes = [
        Finding(
            "lights-estimated",
            which=which,
            missing=missing,
            degrees=estimated.expected_error,
            factor=verdict.depth_factor,
        )
    ]
    if verdict.is_flat:
        notes.append(Finding("relief-assumed"))
    doubtful = np.flatnonzero(lights.expected_error > DOUBTFUL_ERROR).tolist()
    gray = strengths if strengths.ndim == 1 else gray_from_rgb(strengths)
    calibration = Calibration(
        files=tuple(file.name for file in found.files),
        directions=lights.directions,
        strengths=gray,
        residual=lights.expected_error,
        found_from=lights.source,
        strengths_from=lights.strengths_source,
        balls=(),
        frame=(int(mask.shape[0]), int(mask.shape[1])),
        warnings=tuple(notes),
        suspects=tuple(doubtful),
        picture=dome_picture(lights.directions, gray, doubtful, lights.expected_error),
        relief_factor=verdict.depth_factor,
    )
    return Lighting(
        lights, calibration, lighting.balls, (*lighting.notes, *notes) if fixed.any() else tuple(notes)
    )


def _or_none(chosen: BoolArray | None, count: int) -> BoolArray:
    return np.zeros(count, bool) if chosen is None else chosen


def _strengths(thumbnails: Thumbnails, directions: FloatArray) -> tuple[FloatArray, str]:
    """Strengths of lights whose directions are known, from the shading of the object."""
    images = gray_from_rgb(thumbnails.images)
    pixels = sample_pixels(images, thumbnails.mask)
    return strengths_of_scene(images, thumbnails.mask, directions, pixels)


def _completed(given: FloatArray, factors: FloatArray, closed: BoolArray) -> FloatArray:
    """Strengths (d,) or (d, 3): given ones, and for the others factors relative to those."""
    if closed.any():
        factors = np.where(closed, 1.0, factors / np.exp(np.log(factors[closed]).mean()))
    return np.asarray((given.T * factors).T)


def _unusable(verdict: Verdict, found: Found, missing: int) -> CaptureError:
    why = "; ".join(_UNUSABLE[reason] for reason in verdict.reasons)
    has = "has no light file, no ball was found in the photographs"
    if found.lights is not None:
        has = f"has no light for {missing} of its photographs"
    return CaptureError(
        code="lights-not-estimated",
        file=found.path,
        remedy="give-lights",
        reasons=verdict.reasons,
        has=has,
        why=why,
    )
