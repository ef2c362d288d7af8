"""What the user can say about how a capture is to be read; the same for every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.auto_mask import mask_from_stack
from photostereo.capture.framing import Framing
from photostereo.capture.masks import mask_from_brightness, mask_from_values, read_mask
from photostereo.conventions import BoolArray
from photostereo.errors import CaptureError
from photostereo.lights.axes import axes_matrix


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """How to read a capture.

    Attributes
    ----------
    color : keep three channels
    srgb : undo the sRGB curve; None to do so with JPEG files and those that are tagged as sRGB
    mask : None for what the layout offers, ``"auto"`` to find the object in the photographs, ``"bright"`` for what is
        bright before a dark background, ``"full"`` for the full frame, the path of a picture, or an array
    lights : None for what the layout offers, the path of a light file, or the name of a variant that the
        layout has (Harvard: ``"refined"`` or ``"directions"``)
    workers : decoding threads; None for one per processor
    ball : folder of photographs of a ball under the same lamps; None to look for one
    circle : (x, y, radius) of the ball in pixels; None to find it
    focal : focal length in pixels, for the perspective of the ball
    card : (left, top, right, bottom) of a gray card that faces the camera
    framing : the part of the frame that is used, and its scale
    axes : what the light file has where x, y and z belong, e.g. ``"x,-y,z"``; None where it has our axes
    ambient : a photograph with the lamps off, to subtract; None for ``ambient.*`` in the folder
    reverse : the light file's directions point from the lamp to the object
    """

    color: bool = False
    srgb: bool | None = None
    mask: str | Path | NDArray[Any] | None = None
    lights: str | Path | None = None
    workers: int | None = None
    ball: Path | None = None
    circle: tuple[float, ...] | None = None
    focal: float | None = None
    card: tuple[int, ...] | None = None
    framing: Framing = field(default_factory=Framing)
    axes: str | None = None
    ambient: Path | None = None
    reverse: bool = False

    def light_file(self) -> Path | None:
        """The light file that the user named, or None."""
        return None if self.lights is None else Path(self.lights).expanduser()

    def in_our_axes(self, lights: NDArray[Any]) -> NDArray[Any]:
        """Directions of a light file, turned as the user said (``axes``, ``reverse``)."""
        if self.axes is not None and lights.shape[-1:] == (3,):  # of another shape they are refused later
            lights = lights @ axes_matrix(self.axes)
        return -lights if self.reverse else lights

    def axes_notes(self) -> tuple[str, ...]:
        """What was done to the directions of the light file."""
        said = [] if self.axes is None else [f"the light file is read with the axes {self.axes}"]
        return (*said, *(["the light directions are turned round"] if self.reverse else []))


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
