"""Reading, stage 4: find the mask, and combine photographs, lights, mask and truth into a :class:`Capture`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.capture.ball_check import BallCheck, check_lights
from photostereo.capture.capture import Capture, Origin
from photostereo.capture.edits import EDITS_FILE
from photostereo.capture.examine import Opened
from photostereo.capture.lighting import Lighting, complete_lights
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.attempt import attempt
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, distinct
from photostereo.lights.ambient import RoomLight, estimate_room_light, share_by_channel
from photostereo.lights.lights import Lights
from photostereo.masks.reading import mask_from_brightness, mask_from_values, read_mask
from photostereo.photographs.develop import as_rgb
from photostereo.photographs.developed import DevelopedFrames
from photostereo.photographs.frames import Frames
from photostereo.photographs.framing import Framing

#: A light is near if its direction changes by more than this from the middle of the frame to its edge. Below it, assuming a
#: distant light causes a smaller error than most calibrations; half or twice this value changes the results of
#: such lights by half a degree at the edge of the frame.
NEAR_DEGREES = 1.0


def build_capture(
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
    source = opened.source
    framing = options.framing
    failures = list(opened.failures)
    photographs = replace(opened.photographs, color=options.color)
    full = photographs.full_frame
    truths = framed_truths(source.truths, framing, full)
    if lighting.calibration is not None:
        photographs = photographs.with_strengths(lighting.calibration.lights.strengths)
    framed = replace(photographs, framing=framing)
    balls = None if lighting.balls is None else framing.mask(lighting.balls)
    default = source.mask_default if balls is None and lighting.calibration is None else "auto"
    with framed.held():  # the solver reads them again
        mask, mask_notes = choose_mask(
            framed,
            full,
            options,
            default if source.mask is None else source.mask,
            source.name,
            balls,
            control,
        )
        if estimate and not lighting.is_complete:
            known = lighting.lights.strengths
            lighting = complete_lights(lighting, framed.frames(), mask, source, options, control)
            factors = (lighting.lights.strengths / known).reshape(len(known), -1)
            framed = framed.with_strengths(factors[:, 0])  # the same for all channels
    lights = lighting.lights if lighting.is_complete else Lights(count=len(source.files))
    table = source.lights
    check = None
    if table is not None and not table.balls and lighting.calibration is None and lights.known:
        check = attempt(
            "the comparison of the lights with a ball",
            check_lights,
            opened,
            lights,
            options,
            framing.mask_in_full(mask, full),
            control,
            failures=failures,
            otherwise=None,
        )
    if check is not None and check.agrees:
        lights = lights.changed(expected_error=check.errors(lights.expected_error))
    room = attempt(
        "the search for room light",
        _room_light,
        opened,
        lights,
        options,
        mask,
        failures=failures,
        otherwise=None,
    )
    doubts: tuple[Finding, ...] = ()
    if room is not None and not room.is_certain:
        doubts = (Finding("room-light-doubted", effect=room.effect, degrees=room.effect),)
        room = None
    if room is not None:
        framed = replace(framed, ambient=_ambient_picture(photographs, room.share, control))
    turn = 0.0
    if lights.is_near:
        focal = source.focal(options, full)
        lights, turn = _placed(lights, focal, source.camera, framing, full, mask)
    files = tuple(source.names)
    notes = [
        *source.notes,
        *(fault.finding for fault in source.faults),
        *_corrections(source, options),
        *photographs.notes,
        *(() if opened.alignment is None else opened.alignment.notes(files)),
        *mask_notes,
        *lighting.notes,
        *_about_lights(lights, turn, check, room),
        *_about_numbers(photographs, source, truths.get("truth"), mask),
        *failures,
    ]
    by_ball = lighting.calibration is not None and lighting.calibration.balls
    origin = Origin(
        path=source.path,
        layout="photographs with a ball" if by_ball else source.layout,
        bit_depth=photographs.bit_depth,
        files=files,
        notes=distinct(notes),
        calibration=lighting.calibration,
        ball_check=check,
        alignment=opened.alignment,
        faults=source.faults,
        framing=framing,
        full_frame=full,
        doubts=doubts,
        axes=options.axes_given(),
        straightened=any(photographs.curved),
    )
    parts: dict[str, Any] = {"images": framed, "lights": lights, "mask": mask, **truths}
    return build(source.path, name=source.name, origin=origin, **parts)


def _placed(
    lights: Lights,
    focal: float | None,
    camera: ArrayLike | None,
    framing: Framing,
    full: tuple[int, int],
    mask: BoolArray,
) -> tuple[Lights, float]:
    """Place near lights and the camera in the framed photographs; return also the turn of the nearest light, in degrees.

    Lights that turn by less than :data:`NEAR_DEGREES` become distant.
    """
    if focal is not None:
        camera = [0.0, 0.0, focal]
    lights = lights.changed(camera=camera)
    lights = lights.framed(framing, full).in_pixels(mask)
    turn = lights.turn_over(mask.shape)
    return (lights if turn > NEAR_DEGREES else lights.as_distant()), turn


def _about_lights(
    lights: Lights, turn: float, check: BallCheck | None, room: RoomLight | None
) -> Iterator[Finding]:
    if check is not None and check.agrees and not check.suspects:
        yield check.finding
    if room is not None:
        yield Finding("room-light", share=room.share)
    if lights.is_near:
        focal = None if lights.camera is None else float(lights.camera[2])
        yield Finding("near-lights", degrees=turn, focal=focal)


def _about_numbers(
    photographs: DevelopedFrames, source: Source, truth: NDArray[Any] | None, mask: BoolArray
) -> Iterator[Finding]:
    if photographs.bit_depth < source.expected_bits:
        yield Finding("few-bits", bits=photographs.bit_depth, expected=source.expected_bits)
    if truth is not None and truth.ndim == 3:  # a :class:`Capture` rejects other shapes
        unknown = int((~truth[mask].any(axis=1)).sum())
        if unknown:
            yield Finding("truth-unknown", count=unknown)


def choose_mask(
    photographs: Frames,
    full: tuple[int, int],
    options: ReadOptions,
    default: str | Path | NDArray[Any],
    name: str,
    balls: BoolArray | None = None,
    control: Control = SILENT,
) -> tuple[BoolArray, tuple[Finding, ...]]:
    """Return the mask that the user chose, else the ``default`` of the layout; and notes about it.

    ``full`` is the size of the photographs on disk; the photographs are framed. ``"auto"`` as the default becomes
    ``"bright"`` if the object cannot be detected reliably. If there is nothing but the ``balls``, the ball is the
    object.
    """
    choice = default if options.mask is None else options.mask
    framing = options.framing
    if isinstance(choice, np.ndarray):
        mask, notes = mask_from_values(choice, f"The mask of {name}", full)
        mask = framing.mask(mask)
    elif choice == "full":
        mask = np.ones(framing.frame(full), dtype=bool)
        notes = (Finding("full-mask"),)
    elif choice in ("auto", "bright"):
        control.stage("mask")
        mask, note = _automatic_mask(
            photographs, balls, options, control, bright=choice == "bright"
        )
        if not mask.any() and balls is not None and balls.any():
            return balls, (Finding("ball-is-object"),)
        if not mask.any():
            raise CaptureError(
                f"No object that stands out from its background was found in {name}. Provide a "
                "mask picture.",
                code="no-object",
                name=name,
            )
        notes = (note,)
    else:
        mask, notes = read_mask(
            Path(choice).expanduser(), full, getattr(photographs, "orientation", 1)
        )
        mask = framing.mask(mask)
    if balls is None:
        return mask, notes
    beside = mask & ~balls
    if 10 * np.count_nonzero(beside) > np.count_nonzero(mask):
        return beside, notes
    return mask, (*notes, Finding("ball-is-object"))


def _automatic_mask(
    photographs: Frames,
    balls: BoolArray | None,
    options: ReadOptions,
    control: Control,
    *,
    bright: bool,
) -> tuple[BoolArray, Finding]:
    """Find the object in the photographs, or use the whole frame if they show a surface that fills it.

    Without ``options.mask`` a doubtful object is not used, but what is bright.
    """
    frame = photographs.shape[1:3]
    if options.subject == "surface":
        return np.ones(frame, bool), Finding("surface-given")
    if bright:
        mask = mask_from_brightness(photographs.frames(control), without=balls)
        return mask, Finding("mask-from-brightness", share=float(mask.mean()), doubt="")
    # Numba is imported while photographs are read.
    from photostereo.masks.automatic import find_object
    from photostereo.masks.ground import MOST_FRAMES

    colored = photographs
    if isinstance(photographs, DevelopedFrames):
        colored = photographs.sample(MOST_FRAMES)
    failures: list[Finding] = []
    result = attempt(
        "the search for the object",
        partial(find_object, without=balls, control=control),
        colored.frames(),
        failures=failures,
        otherwise=None,
    )
    if result is None:  # brightness may do, and is called doubtful
        mask = mask_from_brightness(photographs.frames(control), without=balls)
        note = Finding("mask-doubtful", share=float(mask.mean()), doubt=str(failures[0]))
        return mask, note
    if result.is_surface and options.subject == "auto":
        return np.ones(frame, bool) & ~result.balls, Finding("subject-surface")
    mask = result.mask
    code = "mask-found"
    if result.doubt and options.mask is not None:
        code = "mask-doubtful"
    elif result.doubt:
        code = "mask-not-found"
        mask = mask_from_brightness(photographs.frames(control), without=balls)
    return mask, Finding(code, share=float(mask.mean()), doubt=result.doubt)


def _room_light(
    opened: Opened, lights: Lights, options: ReadOptions, mask: BoolArray
) -> RoomLight | None:
    """Estimate the room light inside the mask; None if there seems to be none, or it is removed already."""
    photographs = opened.photographs
    small = opened.small
    corrected = (
        photographs.ambient is not None or photographs.flat is not None or photographs.moves.any()
    )
    if corrected or not lights.known:
        return None
    full = photographs.full_frame
    factor = small.shape[1] / full[0]
    box = (
        slice(round(factor * s.start), round(factor * s.stop)) for s in options.framing.box(full)
    )
    part = small[:, *box]
    if not part.size:
        return None
    inside = (
        cv2.resize(mask.astype(np.uint8), part.shape[:0:-1], interpolation=cv2.INTER_NEAREST) > 0
    )
    strengths = lights.strengths.reshape(len(lights), -1).mean(axis=1)
    if opened.source.lights is not None:  # strengths from a light file are already divided out
        part = part * strengths[:, None, None]
    room = estimate_room_light(part, lights.directions, np.asarray(inside), strengths)
    if room is not None and room.is_possible:
        return room
    return None


def _ambient_picture(photographs: DevelopedFrames, share: float, control: Control) -> Float32:
    """Return this share of the mean photograph, in the color of the shadows, limited at each pixel to its darkest value."""
    total = darkest = None
    control.stage("photographs", len(photographs.files))
    with photographs.held():
        # At an exposure of 1, not divided by the strengths of the lights.
        for frame in replace(
            photographs, strengths=as_rgb(photographs.exposed), color=True
        ).frames():
            total = frame if total is None else total + frame
            darkest = frame if darkest is None else np.minimum(darkest, frame)
            control.advance()
    assert total is not None and darkest is not None
    mean = total / np.float32(len(photographs.files))
    shares = share_by_channel(share, mean, darkest) if mean.ndim == 3 else share
    return np.asarray(np.minimum(shares * mean, darkest), dtype=np.float32)


def framed_truths(
    truths: Mapping[str, tuple[Path, NDArray[Any]]], framing: Framing, full: tuple[int, int]
) -> dict[str, NDArray[Any]]:
    """Crop each truth to the part that is used; raise a :class:`CaptureError` ``"truth-size"`` if the sizes differ."""
    height, width = full
    for file, truth in truths.values():
        if truth.shape[:2] != (height, width):
            size = " × ".join(map(str, truth.shape[:2]))
            raise CaptureError(
                f"The truth in {file} is {size} pixels (rows × columns) but the photographs are "
                f"{height} × {width}. Crop or scale it in the same way as the photographs, or "
                "remove it.",
                code="truth-size",
                file=file,
                size=size,
                height=height,
                width=width,
            )
    return {label: framing.truth(label, truth) for label, (_, truth) in truths.items()}


def build(path: Path, **parts: Any) -> Capture:
    """Build a Capture; errors name the path it was read from."""
    try:
        return Capture(**parts)
    except CaptureError as error:
        raise error.about(path, f"(Read from {path}.)") from error


def _corrections(source: Source, options: ReadOptions) -> Iterator[Finding]:
    if isinstance(options.edits, str) and options.edits:
        yield Finding("edited-by-hand", file=EDITS_FILE, edits=options.edits)
    if source.ambient is not None:
        yield Finding("ambient-subtracted", file=source.ambient.name)
    if source.flat is not None:
        yield Finding("divided-by-flat", file=source.flat.name)
