"""``calibrate``: estimate the lights of a folder of photographs, from a ball or from the photographs alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from photostereo.capture.layouts.folder import find_alone
from photostereo.capture.lighting import calibrate_photographs
from photostereo.capture.opening import open_capture, require_matching
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError
from photostereo.lights.ball.calibration import Calibration


def calibrate(
    path: str | os.PathLike[str],
    *,
    ball: str | os.PathLike[str] | None = None,
    circle: Sequence[float] | None = None,
    focal: float | None = None,
    card: Sequence[int] | None = None,
    srgb: bool | None = None,
    workers: int | None = None,
    control: Control = SILENT,
) -> Calibration:
    """Estimate the lights of a folder of photographs from a ball.

    Parameters
    ----------
    path : path
        A folder of photographs, each under one light.
    ball : path, optional
        A folder of photographs of the ball under the same lights. By default a folder such as ``chrome/`` or
        ``LightProbe-1/`` in or beside ``path`` is used, then the photographs themselves.
    circle : sequence of 3 float, optional
        Center (x, y) and radius of the ball in pixels; detected by default.
    focal : float, optional
        Focal length in pixels, for the perspective of a ball away from the center.
    card : sequence of 4 int, optional
        Left, top, right and bottom of a gray card that faces the camera.
    srgb : bool, optional
        Undo the sRGB curve of the photographs; by default for JPEG files and those tagged as sRGB.
    workers : int, optional
        Decoding threads.
    control : Control
        Receives progress and can cancel the work.

    Returns
    -------
    Calibration
        Directions, strengths, their expected errors, warnings and a picture for checking them.

    Raises
    ------
    CaptureError
        For example ``"no-ball"`` if there is none, or ``"no-highlight"`` if a photograph shows no highlight on it.

    Examples
    --------
    >>> lights = calibrate("photographs")  # doctest: +SKIP
    >>> lights.directions.shape  # doctest: +SKIP
    (12, 3)
    """
    options = ReadOptions(ball=ball, circle=circle, focal=focal, card=card, srgb=srgb, workers=workers)
    return calibrate_folder(path, options, control)


def calibrate_folder(
    path: str | os.PathLike[str], options: ReadOptions, control: Control = SILENT
) -> Calibration:
    """Like :func:`calibrate`, with a :class:`ReadOptions`."""
    place = Path(path).expanduser()
    if not place.is_dir():
        raise CaptureError(code="not-a-folder", file=place)
    found = find_alone(place, options)
    require_matching(found, len(found.files))
    opened = open_capture(found, options, control)
    calibration = calibrate_photographs(opened, options, control)
    notes = (*(fault.finding for fault in opened.found.faults), *opened.photographs.camera_notes)
    return replace(calibration, warnings=(*notes, *calibration.warnings))


def estimate_folder(
    path: str | os.PathLike[str], options: ReadOptions, control: Control = SILENT
) -> Calibration:
    """Estimate the lights of a folder from its photographs and the object's mask; ignore light files and balls."""
    from photostereo.capture.loading import read_lazily

    capture = read_lazily(path, replace(options, lights=ESTIMATE), control)
    if capture.origin is None or capture.origin.calibration is None:
        raise CaptureError(
            f"{path} is not a folder of photographs.", code="not-a-folder", file=Path(path).expanduser()
        )
    return capture.origin.calibration
