"""What the user can say about how a capture is to be read: the same words for every format, command and function.

Nothing heavy is imported here: the command line declares its options from this class before it knows whether it will
read anything at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo.core.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from photostereo.photographs.framing import Framing

#: Options whose value may name a file or folder; results may not take its place.
NAMED_FILES = ("mask", "lights", "ambient", "flat", "ball")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a capture; the fields are the keywords of :func:`photostereo.load`.

    Attributes
    ----------
    color : keep three channels
    srgb : undo the sRGB curve; None to do so with JPEG files and those that are tagged as sRGB
    mask : None for what the layout offers, ``"auto"`` to find the object in the photographs, ``"bright"`` for what is
        bright before a dark background, ``"full"`` for the full frame, the path of a picture, or an array
    lights : None for what the layout offers, the path of a light file or of another capture, or the name of a variant
        that the layout has (Harvard: ``"refined"`` or ``"directions"``)
    lights_axes : what the light file has where x, y and z belong, e.g. ``"x,-y,z"``; None where it has our axes
    reverse_lights : the light file's directions point from the lamp to the object
    ambient : a photograph with the lamps off, to subtract; None for ``ambient.*`` in the folder
    flat : a photograph of an even surface, to divide by; None for ``flat.*`` in the folder
    ball : folder of photographs of a ball under the same lamps; None to look for one
    circle : (x, y, radius) of the ball in pixels; None to find it
    focal : focal length in pixels, for the perspective of the ball
    card : (left, top, right, bottom) of a gray card that faces the camera
    crop : (x, y, width, height) of the part that is used, in pixels from the top left corner; None for all of it
    scale : factor of both sides, at most 1
    workers : decoding threads; None for one per processor

    Examples
    --------
    >>> ReadOptions(mask="auto", circle=[120, 80, 30.5]).given()
    {'mask': 'auto', 'circle': (120, 80, 30.5)}
    """

    color: bool = False
    srgb: bool | None = None
    mask: str | os.PathLike[str] | NDArray[Any] | None = None
    lights: str | os.PathLike[str] | None = None
    lights_axes: str | None = None
    reverse_lights: bool = False
    ambient: str | os.PathLike[str] | None = None
    flat: str | os.PathLike[str] | None = None
    ball: str | os.PathLike[str] | None = None
    circle: Sequence[float] | None = None
    focal: float | None = None
    card: Sequence[int] | None = None
    crop: Sequence[int] | None = None
    scale: float = 1.0
    workers: int | None = None

    def __post_init__(self) -> None:
        for name, count in (("circle", 3), ("card", 4), ("crop", 4)):
            if (value := getattr(self, name)) is not None:
                if len(value) != count:
                    raise ParameterError(f"{name} needs {count} numbers, in pixels; it has {len(value)}.")
                object.__setattr__(self, name, tuple(value))
        for name in NAMED_FILES:
            if isinstance(value := getattr(self, name), os.PathLike):
                object.__setattr__(self, name, os.fspath(value))

    @property
    def framing(self) -> Framing:
        """The part of the frame that is used, and its scale."""
        from photostereo.photographs.framing import Framing

        return Framing(self.crop, self.scale)  # type: ignore[arg-type]  # its length is checked there

    def path_of(self, name: str) -> Path | None:
        """An option as a path (see :data:`NAMED_FILES`), or None."""
        value = getattr(self, name)
        return Path(value).expanduser() if isinstance(value, (str, os.PathLike)) else None

    def in_our_axes(self, lights: NDArray[Any]) -> NDArray[Any]:
        """Directions of a light file, turned as the user said."""
        from photostereo.lights.axes import axes_matrix

        if self.lights_axes is not None and lights.shape[-1:] == (
            3,
        ):  # of another shape they are refused later
            lights = lights @ axes_matrix(self.lights_axes)
        return -lights if self.reverse_lights else lights

    def axes_given(self) -> str:
        """What both options about axes come to, as one of ``--lights-axes``; nothing where neither was given.

        >>> ReadOptions(lights_axes="x,-y,z", reverse_lights=True).axes_given()
        '-x,y,-z'
        """
        import numpy as np

        from photostereo.lights.axes import axes_words

        return axes_words(self.in_our_axes(np.eye(3))) if self.axes_notes() else ""

    def axes_notes(self) -> tuple[str, ...]:
        """What was done to the directions of the light file."""
        axes = self.lights_axes
        said = [] if axes is None else [f"the light file is read with the axes {axes}"]
        return (*said, *(["the light directions are turned round"] if self.reverse_lights else []))

    def given(self) -> dict[str, Any]:
        """The options that say anything: those that differ from their defaults."""
        said = ((entry.name, getattr(self, entry.name), entry.default) for entry in fields(self))
        # An array (a mask) is never a default, and has no plain answer to !=.
        return {name: value for name, value, default in said if hasattr(value, "shape") or value != default}
