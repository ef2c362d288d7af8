"""Survey every photograph of a series in reduced pictures, when it is decoded for the first time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.photographs.alignment.motion import LONGEST
from photostereo.photographs.alignment.warp import resized
from photostereo.photographs.files import PhotographFiles


@dataclass(frozen=True, eq=False)
class Survey:
    """Reduced gray pictures of photographs."""

    #: (n, h, w) square roots of the linear intensities of those that could be read, so that bright parts do not dominate
    pictures: NDArray[np.float32]
    scale: float  #: reduced size over full size
    errors: dict[int, CaptureError]  #: why the others could not be read, by their number


def survey(source: PhotographFiles, control: Control = SILENT) -> Survey:
    """Read every photograph once, and record those that cannot be read."""
    height, width = source.shape[1:3]
    scale = min(1.0, LONGEST / max(height, width))
    control.stage("photographs", len(source.files))
    pictures, errors = [], {}
    for number, frame in enumerate(source.frames_or_errors(control)):
        if isinstance(frame, CaptureError):
            errors[number] = frame
        else:
            pictures.append(reduced(frame, scale))
        control.advance()
    shape = (0, max(1, round(height * scale)), max(1, round(width * scale)))
    stack = np.stack(pictures) if pictures else np.empty(shape, np.float32)
    return Survey(stack, scale, errors)


def reduced(frame: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """The square root of a photograph, converted to gray, at a lower resolution."""
    gray = gray_from_rgb(frame) if frame.ndim == 3 else frame
    return np.sqrt(np.maximum(resized(gray, scale), 0))


def bit_depth(source: PhotographFiles) -> int:
    """Bits per channel of the photographs that have been decoded; the largest if they differ."""
    return max(kind.itemsize * 8 for kind in source.kinds.values())


def notes_on(source: PhotographFiles) -> tuple[Finding, ...]:
    """Notes on bit depth, color and tone curve, and on what the camera recorded."""
    files, kinds = source.files, [source.kinds[file] for file in source.files if file in source.kinds]
    notes = []
    if len(set(kinds)) > 1:
        other = next(number for number, kind in enumerate(kinds) if kind != kinds[0])
        one, another = f"{files[0].name} is {kinds[0]}", f"{files[other].name} {kinds[other]}"
        notes.append(Finding("bit-depths-differ", one=one, another=another))
    if source.curved_by_file and any(source.curved):
        some = "" if all(source.curved) else f"{sum(source.curved)} of "
        notes.append(Finding("srgb-undone", some=some))
    return (*notes, *source.camera_notes)
