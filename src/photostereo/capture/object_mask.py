"""The fourth stage of reading: the mask of the object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from photostereo.masks.reading import mask_from_brightness, mask_from_values, read_mask

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
_FULL = Finding("full-mask")
Frames = Callable[[], Iterable[NDArray[Any]]]


def choose_mask(
    options: ReadOptions,
    full: tuple[int, int],
    frames: Frames,
    file: Path | None,
    *,
    name: str,
    default: str = "full",
    colored: Frames | None = None,
    balls: BoolArray | None = None,
    orientation: int = 1,
    control: Control = SILENT,
) -> tuple[BoolArray, tuple[Finding, ...]]:
    """The mask that the user chose, else the layout's ``file``, else the layout's default; and notes about it.

    ``full`` is the size of the photographs on disk; ``frames`` are the photographs one by one, framed, and an
    automatic mask is found in ``colored``, if they can be had in color. ``"auto"`` as the default becomes
    ``"bright"`` if the object is not found with certainty. If nothing but the ``balls`` is there, the ball is the
    object.
    """
    choice = options.mask if options.mask is not None else file if file is not None else default
    if isinstance(choice, np.ndarray):
        mask, notes = mask_from_values(choice, f"The mask of {name}", full)
        mask = options.framing.mask(mask)
    elif choice == "full":
        mask, notes = np.ones(options.framing.frame(full), dtype=bool), (_FULL,)
    elif choice in ("auto", "bright"):
        control.stage("mask")
        certain = options.mask is not None
        mask, notes = _found(choice, frames, colored or frames, name, balls, control, certain=certain)
    else:
        mask, notes = read_mask(Path(choice).expanduser(), full, orientation)
        mask = options.framing.mask(mask)
    if balls is None:
        return mask, notes
    beside = mask & ~balls
    if 10 * np.count_nonzero(beside) > np.count_nonzero(mask):
        return beside, notes
    return mask, (*notes, Finding("ball-is-object"))


def _found(
    how: str,
    frames: Frames,
    colored: Frames,
    name: str,
    balls: BoolArray | None,
    control: Control,
    *,
    certain: bool,
) -> tuple[BoolArray, tuple[Finding, ...]]:
    """The object in the photographs; an automatic mask in doubt is used only if it is ``certain`` that the user wants it."""
    code, doubt = "mask-from-brightness", ""
    if how == "auto":
        result = find_object(colored(), without=balls, control=control)
        mask, doubt = result.mask, result.doubt
        code = "mask-doubtful" if doubt else "mask-found"
        if doubt and not certain:
            how, code = "bright", "mask-not-found"
    if how == "bright":
        brightest = _brightest(frames(), control)
        if balls is not None:
            brightest[balls] = 0
        mask = mask_from_brightness(brightest[None])
    if not mask.any() and balls is not None and balls.any():
        return balls, (Finding("ball-is-object"),)
    if not mask.any():
        raise CaptureError(code="no-object", name=name)
    return mask, (Finding(code, share=float(mask.mean()), doubt=doubt),)


def _brightest(frames: Iterable[NDArray[Any]], control: Control) -> NDArray[Any]:
    each = iter(frames)
    top = np.array(next(each))
    for frame in each:
        control.check()
        np.maximum(top, frame, out=top)
    return top
