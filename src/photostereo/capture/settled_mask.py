"""Which mask a capture has: the user's choice, else the layout's file, else the layout's default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.auto_mask import mask_from_stack
from photostereo.capture.masks import mask_from_brightness, mask_from_values, read_mask
from photostereo.capture.options import ReadOptions
from photostereo.conventions import BoolArray
from photostereo.errors import CaptureError


def settle_mask(
    options: ReadOptions,
    full: tuple[int, int],
    frames: Callable[[], Iterable[NDArray[Any]]],
    found: Path | None,
    *,
    name: str,
    otherwise: str = "full",
) -> tuple[BoolArray, tuple[str, ...]]:
    """The mask: the user's choice, else the layout's file (``found``), else the layout's default.

    ``full`` is the size of the photographs on disk; ``frames`` gives the photographs one by one, framed.
    """
    choice = options.mask
    if choice is None:
        choice = found if found is not None else otherwise
    if isinstance(choice, np.ndarray):
        mask, notes = mask_from_values(choice, f"The mask given for {name}", full)
        return options.framing.mask(mask), notes
    if choice == "full":
        return np.ones(options.framing.frame(full), dtype=bool), ("no mask: the full frame is used",)
    if choice == "auto":
        mask, how = mask_from_stack(frames), "in the photographs"
    elif choice == "bright":
        mask, how = mask_from_brightness(_brightest(frames())[None]), "from brightness"
    else:
        mask, notes = read_mask(Path(choice).expanduser(), full)
        return options.framing.mask(mask), notes
    if not mask.any():
        raise CaptureError(
            f"No object that stands out from its background was found in {name}. Give a mask picture."
        )
    return mask, (f"no mask file: the mask was found {how} ({100 * mask.mean():.0f} % of the frame)",)


def _brightest(frames: Iterable[NDArray[Any]]) -> NDArray[Any]:
    each = iter(frames)
    top = np.array(next(each))
    for frame in each:
        np.maximum(top, frame, out=top)
    return top
