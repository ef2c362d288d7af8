"""Assemble a :class:`Capture` from the files that a layout found: photographs, lights, mask and ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture.ball_check import check_lights
from photostereo.capture.capture import Capture, Origin
from photostereo.capture.edits import EDITS_FILE, Edits, read_edits
from photostereo.capture.lighting import Lighting, complete_lights, focal_of, moved
from photostereo.capture.object_mask import choose_mask
from photostereo.capture.opening import Found, Opened
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.lights.ambient import RoomLight, estimate_room_light
from photostereo.lights.lights import Lights
from photostereo.photographs.files import PhotographFiles
from photostereo.photographs.framing import Framing
from photostereo.photographs.survey import bit_depth, notes_on

#: A light is near if its direction changes by more than this from the middle of the frame to its edge. Below it, assuming a
#: distant light causes a smaller error than most calibrations; half or twice this value changes the results of
#: such lights by half a degree at the edge of the frame.
NEAR_DEGREES = 1.0


def put_together(
    opened: Opened,
    lighting: Lighting,
    options: ReadOptions,
    *,
    estimate: bool = True,
    control: Control = SILENT,
) -> Capture:
    """Build a capture from opened photographs and their lights: add mask and truth, and place near lights.

    The photographs stay on disk. With ``estimate``, lights are estimated if there is neither a light file nor a ball.
    """
    found, alignment, photographs = opened.found, opened.alignment, opened.photographs.in_color(options.color)
    full, framing = photographs.full_frame, options.framing
    truths = framed_truths(found.truths, framing, full)
    if lighting.calibration is not None:
        photographs = photographs.with_strengths(lighting.calibration.strengths)
    framed = photographs.framed(framing)
    balls = None if lighting.balls is None else framing.mask(lighting.balls)
    default = found.mask_default if balls is None and lighting.calibration is None else "auto"
    with framed.held():  # the solver reads them again
        mask, mask_notes = choose_mask(
            framed, full, options, found.mask_file or default, found.name, balls, control
        )
    if not estimate and not lighting.is_complete:
        lighting = Lighting(Lights(count=len(found.files)), notes=lighting.notes, is_complete=False)
    elif not lighting.is_complete:
        known = lighting.lights.strengths
        with framed.held():
            lighting = complete_lights(lighting, framed.frames(), mask, found, control)
        lighting = moved(lighting, found, options)
        factors = (lighting.lights.strengths / known).reshape(len(known), -1)
        framed = framed.with_strengths(factors[:, 0])  # the same for all channels
    lights, table, check = lighting.lights, found.lights, None
    if table is not None and not table.balls and lighting.calibration is None and lights.known:
        check = check_lights(opened, lights, options, framing.mask_in_full(mask, full), control)
    further: list[Finding] = []
    if check is not None and check.agrees:
        further += [] if check.suspects else [check.finding]
        lights = lights.changed(expected_error=check.errors(lights.expected_error))
    if photographs.can_subtract and lights.known:
        room = _room_light(opened, lights, options, mask)
        if room is not None and room.is_certain:
            further.append(Finding("room-light", share=room.share))
            framed = framed.less(_ambient_picture(photographs, room.share, control))
    if lights.is_near:
        focal = focal_of(found, found.files, full, options)
        lights = lights.changed(camera=None if focal is None else [0.0, 0.0, focal])
        lights = _near_lights(lights.framed(framing, full).in_pixels(mask), mask.shape, further)
    notes = [
        *found.notes,
        *(fault.finding for fault in found.faults),
        *_corrections(found, options),
        *notes_on(photographs),
        *alignment.notes([file.name for file in found.files]),
        *mask_notes,
        *lighting.notes,
        *further,
    ]
    if bit_depth(photographs) < found.expected_bits:
        notes.append(Finding("few-bits", bits=bit_depth(photographs), expected=found.expected_bits))
    if "truth" in truths and truths["truth"].ndim == 3:  # other shapes are rejected below
        unknown = int((~truths["truth"][mask].any(axis=1)).sum())
        if unknown:
            notes.append(Finding("truth-unknown", count=unknown))
    origin = Origin(
        path=found.path,
        layout=found.layout,
        bit_depth=bit_depth(photographs),
        files=tuple(file.name for file in found.files),
        notes=tuple(dict.fromkeys(notes)),  # captures written by photostereo include notes
        calibration=lighting.calibration,
        ball_check=check,
        alignment=alignment,
        faults=found.faults,
        framing=framing,
        full_frame=full,
        axes=options.axes_given(),
        straightened=any(photographs.curved),
    )
    return build(
        found.path, images=framed, lights=lights, mask=mask, name=found.name, origin=origin, **truths
    )


def _room_light(
    opened: Opened, lights: Lights, options: ReadOptions, mask: NDArray[np.bool_]
) -> RoomLight | None:
    """Estimate the room light from the small photographs, inside the mask."""
    rows, columns = options.framing.box(opened.photographs.full_frame)
    factor = opened.small.shape[1] / opened.photographs.full_frame[0]
    top, bottom, left, right = (
        round(factor * v) for v in (rows.start, rows.stop, columns.start, columns.stop)
    )
    part = opened.small[:, top:bottom, left:right]
    if not part.size:
        return None
    inside = cv2.resize(mask.astype(np.uint8), part.shape[:0:-1], interpolation=cv2.INTER_NEAREST) > 0
    strengths = lights.strengths.reshape(len(lights), -1).mean(axis=1)
    if opened.found.lights is not None:  # strengths from a light file are already divided out
        part = part * strengths[:, None, None]
    return estimate_room_light(part, lights.directions, np.asarray(inside), strengths)


def _ambient_picture(photographs: PhotographFiles, share: float, control: Control) -> NDArray[np.float32]:
    """Return this share of the mean photograph, limited at each pixel to its darkest value."""
    total = darkest = None
    control.stage("photographs", len(photographs.files))
    with photographs.held():
        for frame in photographs.undivided().in_color(True).frames():
            total = frame if total is None else total + frame
            darkest = frame if darkest is None else np.minimum(darkest, frame)
            control.advance()
    assert total is not None and darkest is not None
    return np.asarray(np.minimum(share / len(photographs.files) * total, darkest), dtype=np.float32)


def _near_lights(lights: Lights, frame: tuple[int, ...], notes: list[Finding]) -> Lights:
    """Return the lights and add a note; return distant lights if they are so far away that it makes no difference."""
    turn = lights.turn_over(frame)
    if turn <= NEAR_DEGREES:
        return lights.as_distant()
    focal = None if lights.camera is None else float(lights.camera[2])
    notes.append(Finding("near-lights", degrees=turn, focal=focal))
    return lights


def framed_truths(
    truths: Mapping[str, tuple[Path, NDArray[Any]]], framing: Framing, full: tuple[int, int]
) -> dict[str, NDArray[Any]]:
    """Crop each truth to the part that is used; raise a :class:`CaptureError` ``"truth-size"`` if the sizes differ."""
    parts = {}
    for label, (file, truth) in truths.items():
        if truth.shape[:2] != tuple(full):
            size = " × ".join(map(str, truth.shape[:2]))
            facts: dict[str, Any] = {"found": truth.shape, "expected": full}
            raise CaptureError(
                code="truth-size", file=file, size=size, height=full[0], width=full[1], **facts
            )
        parts[label] = framing.truth(label, truth)
    return parts


def build(path: Path, **parts: Any) -> Capture:
    """Build a Capture; errors name the path it was read from."""
    try:
        return Capture(**parts)
    except CaptureError as error:
        raise error.about(path, f"(Read from {path}.)") from error


def _corrections(found: Found, options: ReadOptions) -> Iterator[Finding]:
    ambient = options.path_of("ambient") or found.ambient
    flat = options.path_of("flat") or found.flat
    edits = read_edits(found.path).used_in(options, found.path) if options.edits else Edits()
    if edits:
        yield Finding("edited-by-hand", file=EDITS_FILE, edits=edits.describe())
    if ambient is not None:
        yield Finding("ambient-subtracted", file=ambient.name)
    if flat is not None:
        yield Finding("divided-by-flat", file=flat.name)
