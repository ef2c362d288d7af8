"""Reading, stage 3: the lights of a capture, from its light file (checked against a ball), a ball, or the photographs and
the mask.

Values from a light file are kept. The file may lack all lights, some of them, or only their strengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture.examine import Opened
from photostereo.capture.layouts.folder import (
    find_ball_series,
    is_ball_series,
    other_series,
    pair_photographs,
    photographs_and_mask,
    unpaired_ball_series,
)
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.capture.source import Source
from photostereo.core.attempt import attempt
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.core.units import PixelSize
from photostereo.lights.ball.calibration import Calibration, calibrate_lights, merge_calibrations
from photostereo.lights.ball.geometry import Circle, mask_circle, visible_share
from photostereo.lights.ball.picture import dome_picture
from photostereo.lights.lights import Lights
from photostereo.lights.source import LightSource, SourceKind
from photostereo.lights.strengths import sample_pixels, strengths_of_scene
from photostereo.lights.unknown.crops import crop_photographs
from photostereo.lights.unknown.estimate import DOUBTFUL_ERROR, REASONS, estimate_lights
from photostereo.masks.reading import read_mask
from photostereo.photographs.developed import open_files

#: Strengths found in photographs vary if their largest ratio is above this. Of 60 rendered captures under equal lights, all
#: stay below 1.17; if their exposure rises by a half, 59 are above 1.38 (with a ball).
VARY = 1.2
#: A folder that is not named like a ball shows one if at least this share of the outline lies in the frame.
_WHOLE_BALL = 0.95


@dataclass(frozen=True, eq=False)
class Lighting:
    """The lights of a capture and how they were source."""

    lights: Lights  #: positions are in pixels of the whole photographs
    calibration: Calibration | None = None  #: from a ball or an estimate; None from a light file
    #: pixels of the whole photographs that show a ball beside the object, or None
    balls: BoolArray | None = None
    notes: tuple[Finding, ...] = ()  #: notes for the user
    is_complete: bool = True  #: False if lights remain to be estimated with the mask

    def moved(self, source: Source, options: ReadOptions) -> Lighting:
        """Replace the lights that the user moved; their expected errors are unknown."""
        names = source.names
        to = {
            names.index(name): to
            for name, to in dict(options.moved_lights).items()
            if name in names
        }
        if not to or not self.lights.known:
            return self
        calibration = self.calibration
        if calibration is not None:
            calibration = replace(calibration, lights=calibration.lights.moved(to))
        return replace(self, lights=self.lights.moved(to), calibration=calibration)


def find_lights(opened: Opened, options: ReadOptions, control: Control = SILENT) -> Lighting:
    """Find the lights from the light file if there is one, else from a ball; apply the directions that the user moved.

    Without either they are unknown, and can be estimated from the object's mask (:func:`complete_lights`).
    """
    source = opened.source
    lighting = Lighting(
        Lights(count=len(source.files)), notes=(Finding("no-lights"),), is_complete=False
    )
    unused: list[Finding] = []
    if options.lights != ESTIMATE and source.lights is not None:
        lighting = _from_file(source, opened.photographs.full_frame, options)
    elif options.lights != ESTIMATE:
        try:
            lighting = _from_ball(calibrate_photographs(opened, options, control, unused=unused))
        except CaptureError as error:
            if error.code != "no-ball" or source.ball is not None:
                raise
        lighting = replace(lighting, notes=(*lighting.notes, *unused))
    return lighting.moved(source, options)


def _from_file(source: Source, full: tuple[int, int], options: ReadOptions) -> Lighting:
    table = source.lights
    assert table is not None
    name = table.path.name
    if table.unit == "widths" and options.crop is not None:
        raise CaptureError(
            f"{table.path} gives the positions of the lights in widths of the object, and a part "
            "of the frame may not contain the whole object. Use the whole frame, or give the "
            "positions in pixels (position_x, position_y, position_z).",
            code="crop-with-widths",
            file=table.path,
        )
    size = PixelSize.of(table.pixel_size if options.pixel_size is None else options.pixel_size)
    table = table.placed(size.millimeters * options.scale if size.known else None, full)
    notes = [*options.axes_notes(), *table.notes]
    file = LightSource(SourceKind.FILE, name)
    origins = [file] * len(table.vectors)
    if table.errors is not None:
        origins = [
            LightSource(SourceKind.ESTIMATED) if one else file for one in np.isfinite(table.errors)
        ]
        notes.append(
            Finding("light-file-estimated", file=name, degrees=float(np.nanmean(table.errors)))
        )
    lights = Lights(
        options.in_our_axes(table.vectors),
        positions=None if table.positions is None else options.in_our_axes(table.positions),
        position_unit="widths" if table.unit == "widths" else "pixels",
        distances=table.distances,
        strengths=table.intensities,
        expected_error=table.errors,
        source=origins,
        strengths_source="" if table.intensities is None else file,
    )
    behind = int((lights.directions[:, 2] <= 0).sum())
    if behind:
        notes.append(Finding("lights-behind", count=behind, lights=len(lights), file=name))
    discs = [Circle(*ball).with_margin(full) for ball in table.balls]
    balls = np.logical_or.reduce(discs) if discs else None
    return Lighting(lights, balls=balls, notes=tuple(notes), is_complete=table.is_complete)


def _from_ball(calibration: Calibration) -> Lighting:
    lights = calibration.lights
    note = Finding(
        "lights-from-ball",
        source=", ".join(dict.fromkeys(lights.source)),
        degrees=float(np.max(lights.expected_error)),
        strengths=lights.strengths_source,
    )
    notes = [note, *calibration.warnings, *_about_strengths(lights.strengths)]
    if not calibration.in_frame:  # positions beside the ball say nothing about the object
        return Lighting(lights.as_distant(), calibration, None, tuple(notes))
    return Lighting(lights, calibration, calibration.balls_mask(), tuple(notes))


def calibrate_photographs(
    opened: Opened,
    options: ReadOptions,
    control: Control = SILENT,
    *,
    unused: list[Finding],
) -> Calibration:
    """Estimate the lights from a ball.

    It is in the folder given by the user, in one named like a ball, in the photographs themselves, or in any folder of
    the capture that has a photograph for each of these.

    Parameters
    ----------
    opened : Opened
        The photographs of the object.
    options : ReadOptions
        How to read them.
    control : Control
        Receives progress and can cancel the work.
    unused : list of Finding
        Receives a finding for each folder that is named like a ball but cannot be used.
    """
    source = opened.source
    photographs = opened.photographs
    alignment = opened.alignment
    with photographs.held():  # the solver reads them again
        scene = photographs.all(control)
    control.stage("lights")
    beside: dict[str, Any] = {"scene": scene, "mask": None}
    if source.mask is not None:
        beside["mask"] = source.whole_mask(photographs.full_frame, photographs.orientation)

    def of_ball(
        images: FloatArray, files: Sequence[Path], drawn: Circle | None = None, **of_scene: Any
    ) -> Calibration:
        """Calibrate from photographs of a ball: the user's circle, else the one drawn, else one that is detected."""
        if options.circle is not None:
            x, y, radius = map(float, options.circle)
            drawn = Circle(x, y, radius)
        return calibrate_lights(
            images,
            files=source.names,
            circles=() if drawn is None else (drawn,),
            focal=source.focal(options, images.shape[1:], files),
            card=options.card,
            control=control,
            **of_scene,
        )

    def in_series(folder: Path) -> Calibration:
        """Calibrate from a ball in separate photographs, under the same lights."""
        pictures, mask_file = photographs_and_mask(folder)
        every = source.every_file or source.files
        pairs = dict(zip(every, pair_photographs(every, pictures, folder), strict=True))
        files = [pairs[file] for file in source.files]
        # JPEG files always have the sRGB curve, whatever the object's photographs have.
        curved = True if files[0].suffix.lower() in (".jpg", ".jpeg") else options.srgb
        frames = open_files(files, srgb=curved, pictures=source.pictures, workers=options.workers)
        images = frames.all(control)
        control.stage("lights")
        # A mask there marks the ball.
        if mask_file is None:
            drawn = None
        else:
            drawn = mask_circle(read_mask(mask_file, frames.full_frame)[0])
        own = folder.resolve() == source.files[0].resolve().parent
        try:
            calibration = of_ball(images, files, drawn, **({} if own else beside))
        except CaptureError as error:
            raise error.about(folder, f"(In the photographs of {folder}.)") from error
        if own:
            return calibration
        return calibration.seen_in(folder.name)

    if source.ball is not None:
        if not source.ball.is_dir():
            raise CaptureError(
                f"The folder of the ball, {source.ball}, does not exist. Check its name.",
                code="no-ball-folder",
                file=source.ball,
            )
        return in_series(source.ball)
    taken = source.every_file or source.files
    place = source.path if source.path.is_dir() else source.path.parent
    series = find_ball_series(place, taken)
    own = source.files[0].parent
    if is_ball_series(own):  # the capture may show the ball itself
        series = [own, *series]
    results = []
    for folder in series:
        try:
            results.append(in_series(folder))
        except CaptureError as problem:  # the name may be a coincidence
            if folder is not own:
                unused.append(Finding("ball-folder-unused", folder=folder.name, why=problem.code))
    for folder in unpaired_ball_series(place, taken):
        unused.append(Finding("ball-folder-unused", folder=folder.name, why="ball-series-count"))
    if results:
        return merge_calibrations(results)
    try:
        calibration = of_ball(scene, source.files, mask=beside["mask"])
    except CaptureError as problem:
        if problem.code != "no-ball":
            raise
        for folder in other_series(place, taken):
            with suppress(CaptureError):  # it shows something else
                result = in_series(folder)
                if visible_share(result.balls[0].circle, result.frame) >= _WHOLE_BALL:
                    return result
        raise
    calibration = replace(calibration, in_frame=True)
    if alignment is None:
        return calibration
    # If a ball moves by a share of its radius, the light turns by twice that share in radians (law of reflection).
    moved = np.where(alignment.uncertain, alignment.farthest, 0.0)
    turned = np.degrees(2 * moved / max(ball.circle.radius for ball in calibration.balls))
    error = np.hypot(calibration.lights.expected_error, turned)
    return replace(calibration, lights=calibration.lights.changed(expected_error=error))


def complete_lights(
    lighting: Lighting,
    photographs: Iterable[Float32],
    mask: BoolArray,
    source: Source,
    options: ReadOptions,
    control: Control = SILENT,
) -> Lighting:
    """Estimate whatever is unknown about the lights from photographs that are divided by the known strengths."""
    given = lighting.lights
    table = source.lights
    name = ""
    thumbnails = crop_photographs(photographs, mask)
    fixed = closed = np.zeros(
        len(source.files), bool
    )  # which directions, and which strengths, are known
    if table is not None:
        name = table.path.name
        every = np.ones(len(source.files), bool)
        fixed = every if table.open_directions is None else ~table.open_directions
        closed = every if table.open_strengths is None else ~table.open_strengths
        if table.intensities is None:  # equal for lights in the file, others may differ
            closed = closed & fixed
    if fixed.all():
        images = gray_from_rgb(thumbnails.images)
        pixels = sample_pixels(images, thumbnails.mask)
        factors, origin = strengths_of_scene(images, thumbnails.mask, given.directions, pixels)
        strengths = _completed(given.strengths, factors, closed)
        notes = (
            *lighting.notes,
            Finding("strengths-estimated", source=str(origin)),
            *_about_strengths(factors),
        )
        lights = given.changed(strengths=strengths, strengths_source=origin)
        return Lighting(lights, balls=lighting.balls, notes=notes).moved(source, options)
    known = np.where(fixed[:, None], given.directions, np.nan) if given.known else None
    estimated = estimate_lights(thumbnails, known=known, control=control)
    verdict = estimated.verdict
    missing = int((~fixed).sum())
    if not verdict.usable:
        has = "has no light file and no ball"
        if table is not None:
            has = f"has no light for {missing} of its photographs"
        unused = [str(note) for note in lighting.notes if note.code == "ball-folder-unused"]
        why = "; ".join([*(REASONS[reason] for reason in verdict.reasons), *unused])
        raise CaptureError(
            f"{source.path} {has}, and the lights cannot be estimated: {why}.",
            code="lights-not-estimated",
            file=source.path,
            remedy="give-lights",
            reasons=verdict.reasons,
        )
    strengths = _completed(given.strengths, estimated.strengths, closed)
    file = LightSource(SourceKind.FILE, name)
    estimate = LightSource(SourceKind.ESTIMATED)
    lights = Lights(
        estimated.directions,
        strengths=strengths,
        expected_error=np.where(fixed, np.nan, estimated.expected_error_degrees),
        source=[file if one else estimate for one in fixed],
        strengths_source=file if closed.all() else estimate,
    )
    which = "the lights"
    if fixed.any():
        which = f"{missing} of {len(fixed)} light directions are not in {name}: they"
    error = estimated.expected_error
    factor = verdict.depth_factor
    doubtful = np.flatnonzero(lights.expected_error > DOUBTFUL_ERROR).tolist()
    facts: dict[str, Any] = {
        "missing": missing,
        "degrees": error,
        "factor": factor,
        "numbers": doubtful,
    }
    notes = (Finding("lights-estimated", which=which, **facts),)
    if verdict.is_flat:
        notes = (*notes, Finding("relief-assumed"))
    gray = strengths if strengths.ndim == 1 else gray_from_rgb(strengths)
    of_gray = lights.changed(strengths=gray)
    failures: list[Finding] = []
    calibration = Calibration(
        files=tuple(source.names),
        lights=of_gray,
        balls=(),
        frame=(int(mask.shape[0]), int(mask.shape[1])),
        warnings=notes,
        picture=attempt(
            "the picture of the lights",
            dome_picture,
            of_gray,
            doubtful,
            failures=failures,
            otherwise=np.zeros((1, 1, 3), np.uint8),
        ),
        relief_factor=verdict.depth_factor,
    )
    said = (
        *(lighting.notes if fixed.any() else ()),
        *notes,
        *_about_strengths(estimated.strengths),
        *failures,
    )
    return Lighting(lights, calibration, lighting.balls, said).moved(source, options)


def _about_strengths(strengths: FloatArray) -> Iterator[Finding]:
    ratio = float(strengths.min() / strengths.max())
    if VARY * ratio < 1.0:
        yield Finding("strengths-vary", span=1.0 - ratio)


def _completed(given: FloatArray, factors: FloatArray, closed: BoolArray) -> FloatArray:
    """Strengths (d,) or (d, 3): the given ones, and for the others factors relative to the given ones."""
    if closed.any():
        factors = np.where(closed, 1.0, factors / np.exp(np.log(factors[closed]).mean()))
    return np.asarray((given.T * factors).T)
