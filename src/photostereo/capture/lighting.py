"""Reading, stage 3: the lights of a capture, from its light file, a ball, or the photographs and the mask.

Values from a light file are kept. The file may lack all lights, some of them, or only their strengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.layouts.folder import (
    find_ball_series,
    is_ball_series,
    pair_photographs,
    photographs_and_mask,
)
from photostereo.capture.opening import Found, Opened
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.core.units import PixelSize
from photostereo.io.camera import focal_in_pixels
from photostereo.lights.ball.calibration import (
    Calibration,
    calibrate_lights,
    merge_calibrations,
    strengths_of_scene,
)
from photostereo.lights.ball.circle import Circle, mask_circle
from photostereo.lights.ball.picture import dome_picture
from photostereo.lights.exposure import VARIES
from photostereo.lights.files.reading import ESTIMATED
from photostereo.lights.lights import Lights
from photostereo.lights.strengths import sample_pixels
from photostereo.lights.unknown.crops import crop_photographs
from photostereo.lights.unknown.estimate import estimate_lights
from photostereo.lights.unknown.verdict import DOUBTFUL_ERROR, Verdict
from photostereo.masks.reading import read_mask
from photostereo.photographs.files import PhotographFiles

#: Why lights cannot be estimated, by the verdict's reason.
_UNUSABLE = {
    "all-alike": "all photographs look alike, as with a single light or a surface without relief",
    "not-one-object": "the photographs do not seem to show one object from one viewpoint",
    "large-error": "the estimate would be too inaccurate to be useful",
}


@dataclass(frozen=True, eq=False)
class Lighting:
    """The lights of a capture and how they were found."""

    lights: Lights  #: positions are in pixels of the whole photographs
    calibration: Calibration | None = None  #: the calibration from a ball, or None
    #: pixels of the whole photographs that show a ball beside the object; or None
    balls: BoolArray | None = None
    notes: tuple[Finding, ...] = ()  #: notes for the user
    is_complete: bool = True  #: False if lights remain to be estimated with the mask


def find_lights(opened: Opened, options: ReadOptions, control: Control = SILENT) -> Lighting:
    """Find the lights from the light file if there is one, else from a ball; apply the directions that the user moved.

    Without either they are unknown, and can be estimated from the object's mask (:func:`complete_lights`).
    """
    found = opened.found
    unknown = Lighting(Lights(count=len(found.files)), notes=(Finding("no-lights"),), is_complete=False)
    if options.lights == ESTIMATE:
        return unknown
    if found.lights is not None:
        return moved(_from_file(found, opened.photographs, options), found, options)
    try:
        return moved(_from_ball(calibrate_photographs(opened, options, control)), found, options)
    except CaptureError as error:
        if error.code != "no-ball" or found.ball is not None:
            raise
        return unknown


def moved(lighting: Lighting, found: Found, options: ReadOptions) -> Lighting:
    """Replace the lights that the user moved; their expected errors are unknown."""
    names = [file.name for file in found.files]
    by_hand = {names.index(name): to for name, to in dict(options.moved_lights).items() if name in names}
    lights, calibration = lighting.lights, lighting.calibration
    if not by_hand or not lights.known:
        return lighting
    lights = lights.moved(by_hand)
    if calibration is not None:
        calibration = replace(
            calibration,
            directions=lights.directions,
            residual=lights.expected_error,
            found_from=lights.source,
            positions=lights.positions,
        )
    return replace(lighting, lights=lights, calibration=calibration)


def calibrate_photographs(opened: Opened, options: ReadOptions, control: Control = SILENT) -> Calibration:
    """Estimate the lights from a ball: in the folder given by the user, in one named like a ball, or in the photographs."""
    found, photographs = opened.found, opened.photographs
    with photographs.held():  # the solver reads them again
        scene = photographs.in_color(False).all(control)
    control.stage("lights")
    mask = None
    if found.mask_file is not None:
        mask = read_mask(found.mask_file, photographs.full_frame, photographs.orientation)[0]
    search = _Search(opened, scene, mask, options, control)
    if found.ball is not None:
        if not found.ball.is_dir():
            raise CaptureError(code="no-ball-folder", file=found.ball)
        return search.in_series(found.ball)
    series = find_ball_series(found.path, found.taken or found.files)
    own = found.files[0].parent
    if is_ball_series(own):  # the capture shows the ball itself
        series = [own, *series]
    results = []
    for folder in series:
        with suppress(CaptureError):  # the name may be a coincidence
            results.append(search.in_series(folder))
    return merge_calibrations(results) if results else search.in_frame()


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for balls under the lights of a capture."""

    opened: Opened
    scene: np.ndarray
    mask: BoolArray | None
    options: ReadOptions
    control: Control

    def in_frame(self) -> Calibration:
        """Find balls beside the object."""
        alignment = self.opened.alignment
        calibration = self._calibrated(self.scene, self.opened.found.files, mask=self.mask)
        # If a ball moves by a share of its radius, the light turns by twice that share in radians (law of reflection).
        moved = np.where(alignment.uncertain, alignment.farthest, 0.0)
        turned = np.degrees(2 * moved / max(ball.circle.radius for ball in calibration.balls))
        return replace(calibration, residual=np.hypot(calibration.residual, turned), in_frame=True)

    def in_series(self, folder: Path) -> Calibration:
        """Find a ball in separate photographs, under the same lights."""
        found = self.opened.found
        pictures, mask_file = photographs_and_mask(folder)
        taken = found.taken or found.files
        pairs = dict(zip(taken, pair_photographs(taken, pictures, folder), strict=True))
        files = [pairs[file] for file in found.files]
        # JPEG files always have the sRGB curve, whatever the object's photographs have.
        curved = True if files[0].suffix.lower() in (".jpg", ".jpeg") else self.options.srgb
        source = PhotographFiles(files, srgb=curved, heads=found.heads, workers=self.options.workers)
        images = source.all(self.control)
        self.control.stage("lights")
        drawn = None
        if mask_file is not None:  # the mask marks the ball
            drawn = mask_circle(read_mask(mask_file, source.full_frame)[0])
        own = folder.resolve() == found.files[0].resolve().parent
        beside: dict[str, Any] = {} if own else {"scene": self.scene, "mask": self.mask}
        try:
            calibration = self._calibrated(images, files, drawn, **beside)
        except CaptureError as error:
            raise error.about(folder, f"(In the photographs of {folder}.)") from error
        return calibration if own else calibration.seen_in(folder.name)

    def _calibrated(
        self, images: np.ndarray, files: Sequence[Path], drawn: Circle | None = None, **beside: Any
    ) -> Calibration:
        """Calibrate from these photographs; the ball is the user's circle, else ``drawn``, else detected."""
        options, found = self.options, self.opened.found
        if options.circle is not None:
            x, y, radius = options.circle
            drawn = Circle(float(x), float(y), float(radius))
        return calibrate_lights(
            images,
            files=[file.name for file in found.files],
            circles=() if drawn is None else (drawn,),
            focal=focal_of(found, files, images.shape[1:], options),
            card=options.card,
            control=self.control,
            **beside,
        )


def _from_ball(calibration: Calibration) -> Lighting:
    note = Finding(
        "lights-from-ball",
        source=", ".join(dict.fromkeys(calibration.found_from)),
        degrees=float(np.max(calibration.residual)),
        strengths=calibration.strengths_from,
    )
    notes, strengths = [note, *calibration.warnings], calibration.strengths
    if float(np.log(strengths).std()) > VARIES:
        notes.append(Finding("strengths-vary", span=1.0 - float(strengths.min() / strengths.max())))
    balls = calibration.balls_mask() if calibration.in_frame else None
    return Lighting(calibration.lights, calibration, balls, tuple(notes))


def focal_of(
    found: Found, files: Sequence[Path], frame: tuple[int, ...], options: ReadOptions
) -> float | None:
    """Focal length in pixels for photographs of this height and width, from the user or from EXIF."""
    return options.focal or focal_in_pixels([found.heads[file] for file in files], (frame[0], frame[1]))


def _from_file(found: Found, photographs: PhotographFiles, options: ReadOptions) -> Lighting:
    table = found.lights
    assert table is not None
    if table.unit == "widths" and options.crop is not None:
        raise CaptureError(code="crop-with-widths", file=table.path)
    size = PixelSize.of(table.pixel_size if options.pixel_size is None else options.pixel_size)
    table = table.placed(size.millimeters * options.scale if size.known else None, photographs.full_frame)
    vectors, positions = options.in_our_axes(table.vectors), table.positions
    lights = Lights(
        vectors,
        positions=None if positions is None else options.in_our_axes(positions),
        position_unit="widths" if table.unit == "widths" else "pixels",
        distances=table.distances,
        strengths=table.intensities,
        source=table.path.name,
        strengths_source="" if table.intensities is None else table.path.name,
    )
    if table.errors is not None:
        source = np.where(np.isfinite(table.errors), ESTIMATED, table.path.name).tolist()
        lights = lights.changed(expected_error=table.errors, source=source)
    notes = [*options.axes_notes(), *table.notes]
    if table.errors is not None:
        about = float(np.nanmean(table.errors))
        notes.append(Finding("light-file-estimated", file=table.path.name, degrees=about))
    behind = int((vectors[:, 2] <= 0).sum())
    if behind:
        notes.append(Finding("lights-behind", count=behind, lights=len(lights), file=table.path.name))
    balls = None
    if table.balls:
        balls = np.zeros(photographs.full_frame, dtype=bool)
        for ball in table.balls:
            balls |= Circle(*ball).with_margin(photographs.full_frame)
    return Lighting(lights, balls=balls, notes=tuple(notes), is_complete=table.is_complete)


def complete_lights(
    lighting: Lighting,
    photographs: Iterable[NDArray[np.float32]],
    mask: BoolArray,
    found: Found,
    control: Control = SILENT,
) -> Lighting:
    """Estimate whatever is unknown about the lights.

    ``photographs`` must be divided by the known strengths.
    """
    given, table, name = lighting.lights, found.lights, ""
    thumbnails = crop_photographs(photographs, mask)
    fixed = closed = np.zeros(len(found.files), bool)
    if table is not None:
        name = table.path.name
        fixed = closed = np.ones(len(found.files), bool)
        if table.open_directions is not None:
            fixed = ~table.open_directions
        if table.open_strengths is not None:
            closed = ~table.open_strengths
        if table.intensities is None:  # equal for lights in the file, others may differ
            closed = closed & fixed
    if fixed.all():
        images = gray_from_rgb(thumbnails.images)
        pixels = sample_pixels(images, thumbnails.mask)
        factors, source = strengths_of_scene(images, thumbnails.mask, given.directions, pixels)
        strengths = _completed(given.strengths, factors, closed)
        notes = (*lighting.notes, Finding("strengths-estimated", source=source))
        lights = given.changed(strengths=strengths, strengths_source=source)
        return Lighting(lights, balls=lighting.balls, notes=notes)
    known = np.where(fixed[:, None], given.directions, np.nan) if given.known else None
    estimated = estimate_lights(thumbnails, known=known, control=control)
    verdict, missing = estimated.verdict, int((~fixed).sum())
    if not verdict.usable:
        raise _unusable(verdict, found, missing)
    strengths = _completed(given.strengths, estimated.strengths, closed)
    lights = Lights(
        estimated.directions,
        strengths=strengths,
        expected_error=np.where(fixed, np.nan, estimated.expected_error_degrees),
        source=[name if one else ESTIMATED for one in fixed],
        strengths_source=name if closed.all() else ESTIMATED,
    )
    which = "the lights"
    if fixed.any():
        which = f"{missing} of {len(fixed)} light directions are not in {name}: they"
    error, factor = estimated.expected_error, verdict.depth_factor
    notes = (Finding("lights-estimated", which=which, missing=missing, degrees=error, factor=factor),)
    if verdict.is_flat:
        notes = (*notes, Finding("relief-assumed"))
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
        warnings=notes,
        suspects=tuple(doubtful),
        picture=dome_picture(lights.directions, gray, doubtful, lights.expected_error),
        relief_factor=verdict.depth_factor,
    )
    said = lighting.notes if fixed.any() else ()
    return Lighting(lights, calibration, lighting.balls, (*said, *notes))


def _completed(given: FloatArray, factors: FloatArray, closed: BoolArray) -> FloatArray:
    """Strengths (d,) or (d, 3): the given ones, and for the others factors relative to the given ones."""
    if closed.any():
        factors = np.where(closed, 1.0, factors / np.exp(np.log(factors[closed]).mean()))
    return np.asarray((given.T * factors).T)


def _unusable(verdict: Verdict, found: Found, missing: int) -> CaptureError:
    has = "has no light file, no ball was found in the photographs"
    if found.lights is not None:
        has = f"has no light for {missing} of its photographs"
    return CaptureError(
        code="lights-not-estimated",
        file=found.path,
        remedy="give-lights",
        reasons=verdict.reasons,
        has=has,
        why="; ".join(_UNUSABLE[reason] for reason in verdict.reasons),
    )
