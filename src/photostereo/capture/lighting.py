"""The third stage of reading: the lights of a capture, from its light file or from a ball."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture.layouts.folder import (
    find_ball_series,
    is_ball_series,
    pair_photographs,
    photographs_and_mask,
)
from photostereo.capture.opening import Found, Opened
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.core.units import PixelSize
from photostereo.io.camera import focal_in_pixels
from photostereo.lights.ball.calibration import Calibration, calibrate_lights, merge_calibrations
from photostereo.lights.ball.circle import Circle, mask_circle
from photostereo.lights.files.reading import ESTIMATED
from photostereo.lights.lights import Lights
from photostereo.masks.reading import read_mask
from photostereo.photographs.files import PhotographFiles


@dataclass(frozen=True, eq=False)
class Lighting:
    """The lights of a capture and how they were found."""

    lights: Lights  #: positions are in pixels of the whole photographs
    calibration: Calibration | None = None  #: how a ball gave them, or None
    #: pixels of the whole photographs that show a ball, which is not the object; or None
    balls: BoolArray | None = None
    notes: tuple[Finding, ...] = ()  #: what the user should know
    is_complete: bool = True  #: whether nothing is left to be estimated once the mask is known


def find_lights(opened: Opened, options: ReadOptions, control: Control = SILENT) -> Lighting:
    """The lights from the light file, if there is one, else from a ball; those that were moved, as they were
    moved.

    Without either they are not known, and can be estimated once the object's mask is
    (:func:`.estimating.complete_lights`).
    """
    found = opened.found
    none = Finding("no-lights")
    unknown = Lighting(Lights(count=len(found.files)), notes=(none,), is_complete=False)
    if options.lights == ESTIMATE:
        return unknown
    if found.lights is not None:
        return moved(_from_file(found, opened.photographs, options), found, options)
    try:
        return moved(lights_of_ball(calibrate_photographs(opened, options, control)), found, options)
    except CaptureError as error:
        if error.code != "no-ball" or found.ball is not None:
            raise
        return unknown


def moved(lighting: Lighting, found: Found, options: ReadOptions) -> Lighting:
    """The lights with those that the user moved; their expected errors are not known."""
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
        lights = calibration.lights
    return replace(lighting, lights=lights, calibration=calibration)


def lights_of_ball(calibration: Calibration) -> Lighting:
    """The lights that a ball gave."""
    note = Finding(
        "lights-from-ball",
        source=", ".join(dict.fromkeys(calibration.found_from)),
        degrees=float(np.max(calibration.residual)),
        strengths=calibration.strengths_from,
    )
    balls = calibration.balls_mask() if calibration.in_frame else None
    return Lighting(calibration.lights, calibration, balls, (note, *calibration.warnings))


def calibrate_photographs(opened: Opened, options: ReadOptions, control: Control = SILENT) -> Calibration:
    """The lights from a ball: in a folder that the user names, in one whose name suggests it, or in the photographs."""
    found, photographs = opened.found, opened.photographs
    with photographs.held():  # they are read again for the solution
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
    if is_ball_series(own):  # the ball itself was photographed
        series = [own, *series]
    results = []
    for folder in series:
        with suppress(CaptureError):  # a folder that merely has such a name
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
        """Balls beside the object."""
        alignment = self.opened.alignment
        calibration = self._calibrated(self.scene, self.opened.found.files, mask=self.mask)
        # A ball that moved by a share of its radius shows the light turned by twice that: the law of the mirror.
        moved = np.where(alignment.uncertain, alignment.farthest, 0.0)
        turned = np.degrees(2 * moved / max(ball.circle.radius for ball in calibration.balls))
        return replace(calibration, residual=np.hypot(calibration.residual, turned), in_frame=True)

    def in_series(self, folder: Path) -> Calibration:
        """A ball in photographs of its own, under the same lights."""
        found = self.opened.found
        pictures, mask_file = photographs_and_mask(folder)
        taken = found.taken or found.files
        pairs = dict(zip(taken, pair_photographs(taken, pictures, folder), strict=True))
        files = [pairs[file] for file in found.files]
        # Whatever the object's photographs are: a JPEG has the curve in it.
        curved = True if files[0].suffix.lower() in (".jpg", ".jpeg") else self.options.srgb
        source = PhotographFiles(files, srgb=curved, heads=found.heads, workers=self.options.workers)
        images = source.all(self.control)
        self.control.stage("lights")
        drawn = None
        if mask_file is not None:  # a mask beside the ball says where it is
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
        """The lights of these photographs; the ball is where the user says, or else where it is ``drawn``, if either is."""
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


def focal_of(
    found: Found, files: Sequence[Path], frame: tuple[int, ...], options: ReadOptions
) -> float | None:
    """The focal length in pixels of photographs of this height and width, from the user or from EXIF."""
    shots = [found.heads[file] for file in files]
    return options.focal or focal_in_pixels(shots, (int(frame[0]), int(frame[1])))


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
