"""Reading, stage 4: the mask of the object."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.masks.automatic import find_object
from photostereo.masks.ground import MOST_FRAMES
from photostereo.masks.reading import mask_from_brightness, mask_from_values, read_mask
from photostereo.photographs.files import PhotographFiles
from photostereo.photographs.source import Photographs

#: Codes of findings about masks.
ABOUT_MASK = (
    "full-mask",
    "soft-mask",
    "mask-found",
    "mask-doubtful",
    "mask-not-found",
    "mask-from-brightness",
    "ball-is-object",
)


def choose_mask(
    photographs: Photographs,
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
    choice, framing = default if options.mask is None else options.mask, options.framing
    if isinstance(choice, np.ndarray):
        mask, notes = mask_from_values(choice, f"The mask of {name}", full)
        mask = framing.mask(mask)
    elif choice == "full":
        mask, notes = np.ones(framing.frame(full), dtype=bool), (Finding("full-mask"),)
    elif choice in ("auto", "bright"):
        control.stage("mask")
        certain = choice == "bright" or options.mask is not None
        mask, note = _found(photographs, balls, control, bright=choice == "bright", certain=certain)
        if not mask.any() and balls is not None and balls.any():
            return balls, (Finding("ball-is-object"),)
        if not mask.any():
            raise CaptureError(code="no-object", name=name)
        notes = (note,)
    else:
        mask, notes = read_mask(Path(choice).expanduser(), full, getattr(photographs, "orientation", 1))
        mask = framing.mask(mask)
    if balls is None:
        return mask, notes
    beside = mask & ~balls
    if 10 * np.count_nonzero(beside) > np.count_nonzero(mask):
        return beside, notes
    return mask, (*notes, Finding("ball-is-object"))


def _found(
    photographs: Photographs, balls: BoolArray | None, control: Control, *, bright: bool, certain: bool
) -> tuple[BoolArray, Finding]:
    """Find the object in the photographs; use a doubtful automatic mask only if ``certain`` (the user asked for it)."""
    code, doubt = "mask-from-brightness", ""
    if not bright:
        colored = photographs  # in color if available, whatever is used later
        if isinstance(photographs, PhotographFiles):
            colored = photographs.sample(MOST_FRAMES, color=True)
        result = find_object(colored.frames(), without=balls, control=control)
        mask, doubt = result.mask, result.doubt
        code = "mask-found" if not doubt else "mask-doubtful" if certain else "mask-not-found"
    if bright or (doubt and not certain):
        brightest = _brightest(photographs.frames(), control)
        if balls is not None:
            brightest[balls] = 0
        mask = mask_from_brightness(brightest[None])
    return mask, Finding(code, share=float(mask.mean()), doubt=doubt)


def _brightest(frames: Iterable[NDArray[Any]], control: Control) -> NDArray[Any]:
    each = iter(frames)
    top = np.array(next(each))
    for frame in each:
        control.check()
        np.maximum(top, frame, out=top)
    return top
