"""Which mask a capture has: the user's choice, else the layout's file, else the layout's default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.options import ReadOptions
from photostereo.core.conventions import BoolArray
from photostereo.core.errors import CaptureError
from photostereo.masks.automatic import find_object
from photostereo.masks.reading import mask_from_brightness, mask_from_values, read_mask

_FULL = "no mask: the full frame is used (--mask auto looks for the object)"
Frames = Callable[[], Iterable[NDArray[Any]]]


def settle_mask(
    options: ReadOptions,
    full: tuple[int, int],
    frames: Frames,
    found: Path | None,
    *,
    name: str,
    otherwise: str = "full",
    telling: Frames | None = None,
    without: BoolArray | None = None,
) -> tuple[BoolArray, tuple[str, ...]]:
    """The mask: the user's choice, else the layout's file (``found``), else the layout's default.

    ``full`` is the size of the photographs on disk; ``frames`` gives the photographs one by one, framed; ``telling``
    those in which the object is looked for, in color where there is any; ``without`` is known not to be the object.
    A default of ``"auto"`` becomes ``"bright"`` where the object is not found for sure.
    """
    choice = options.mask
    if choice is None:
        choice = found if found is not None else otherwise
    if isinstance(choice, np.ndarray):
        mask, notes = mask_from_values(choice, f"The mask given for {name}", full)
        return options.framing.mask(mask), notes
    if choice == "full":
        return np.ones(options.framing.frame(full), dtype=bool), (_FULL,)
    how, doubt = "from brightness", ""
    if choice == "auto":
        seen = find_object((telling or frames)(), without=without)
        mask, how, doubt = seen.mask, "in the photographs", seen.doubt
        if doubt and options.mask is None:
            choice, how = "bright", f"from brightness, as looking for the object was not sure ({doubt})"
            doubt = ""
    elif choice != "bright":
        mask, notes = read_mask(Path(choice).expanduser(), full)
        return options.framing.mask(mask), notes
    if choice == "bright":
        brightest = _brightest(frames())
        if without is not None:
            brightest[without] = 0
        mask = mask_from_brightness(brightest[None])
    if not mask.any():
        raise CaptureError(
            f"No object that stands out from its background was found in {name}. Give a mask picture."
        )
    unsure = f"; it may be wrong: {doubt}. Look at it, or give a picture" if doubt else ""
    return mask, (f"no mask file: the mask was found {how} ({100 * mask.mean():.0f} % of the frame){unsure}",)


def _brightest(frames: Iterable[NDArray[Any]]) -> NDArray[Any]:
    each = iter(frames)
    top = np.array(next(each))
    for frame in each:
        np.maximum(top, frame, out=top)
    return top
