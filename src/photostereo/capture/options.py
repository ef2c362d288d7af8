"""Options for reading a capture, with the same names for every format, command and function.

Nothing heavy is imported here: the command line declares its options from this class before it knows whether it
will read anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo.core.errors import ParameterError, require_known
from photostereo.core.findings import Finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from photostereo.photographs.framing import Framing

#: Options whose value may name a file or folder, which results must not overwrite.
NAMED_FILES = ("mask", "lights", "ambient", "flat", "ball")

#: The value of ``lights`` that ignores light files and balls.
ESTIMATE = "estimate"
#: Values of ``mask`` and ``lights`` that are not files.
KEYWORDS = ("full", "auto", "bright", "refined", "directions", ESTIMATE)

#: What may be photographed.
SUBJECTS = ("auto", "object", "surface")
_SEQUENCES = ("circle", "card", "crop", "leave_out", "keep")
#: The longest focal length, in pixels; beyond it, rays are practically parallel.
LONGEST_FOCAL = 1e7


@dataclass(frozen=True)
class ReadOptions:
    """How to read a capture; the fields are the keywords of :func:`photostereo.load`.

    Attributes
    ----------
    color : bool
        Keep three channels instead of converting to gray.
    srgb : bool, optional
        Undo the sRGB curve, or treat the values as linear. By default it is undone for JPEG files and for files that
        are tagged as sRGB.
    mask : str, path or (H, W) array, optional
        ``"full"`` for the whole frame, ``"auto"`` to find the object in the photographs, ``"bright"`` for a bright
        object on a dark background, a picture, or an array. By default the mask in the folder.
    lights : str or path, optional
        Another light file, another capture whose lights are reused, or ``"estimate"`` to estimate the lights from
        the photographs. In the Harvard layout also ``"refined"`` (its default) or ``"directions"``. By default the
        light file in the folder.
    lights_axes : str, optional
        Axes of the light file in the order right, up, toward the camera, such as ``"x,-y,z"``.
    reverse_lights : bool
        Whether the directions of the light file point from the light to the object.
    lights_strengths : {"given", "unknown"}
        Use the strengths of the light file, or estimate them from the photographs.
    ambient : path, optional
        A photograph with the lights off, to subtract; by default ``ambient.*`` in the folder.
    flat : path, optional
        A photograph of an even surface, to divide by; by default ``flat.*`` in the folder.
    ball : path, optional
        Folder with photographs of a ball under the same lights; by default it is searched for. With ``ball`` or
        ``circle`` a light file in the folder is ignored.
    subject : {"auto", "object", "surface"}
        What is photographed, for an automatic mask: an object on a ground, or a surface that fills the frame, such as a
        relief or a painting. By default it is decided from the photographs.
    align : str
        ``"auto"`` to estimate how far the camera moved between photographs and undo it if that is certain and matters;
        ``"off"`` not to look for it: a fixed camera is read faster.
    strict : bool
        Raise an error if a photograph cannot be used (damaged, of another size, a duplicate, dark, blurred), instead of
        leaving it out.
    circle : sequence of 3 float, optional
        Center (x, y) and radius of the ball in pixels; detected by default.
    focal : float, optional
        Focal length in pixels, for the perspective of the ball and of near lights; by default from EXIF.
    pixel_size : float or str, optional
        Width of a pixel on the object, in millimeters or such as ``"0.1mm"``: for light positions in millimeters.
    card : sequence of 4 int, optional
        Left, top, right and bottom of a gray card that faces the camera.
    crop : sequence of 4 int, optional
        The part to use: x, y, width, height, in pixels from the top left corner.
    scale : float
        Scale factor for both sides, at most 1. Mask and truth follow ``crop`` and ``scale``.
    leave_out : sequence of str
        Names of photographs to leave out; a note names unknown ones.
    keep : sequence of str
        Names of photographs to use even if they are dark, blurred, duplicates or do not match the others.
    moved_lights : mapping of str to sequence of 3 float
        Directions of single lights by photograph name; they replace the detected ones.
    edits : bool
        Apply the corrections that the app stored beside the photographs; see :mod:`photostereo.capture.edits`. Replaced
        by a summary of them when they are applied.
    workers : int, optional
        Decoding threads; by default one per processor.

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
    lights_strengths: str = "given"
    ambient: str | os.PathLike[str] | None = None
    flat: str | os.PathLike[str] | None = None
    ball: str | os.PathLike[str] | None = None
    subject: str = "auto"
    align: str = "auto"
    strict: bool = False
    circle: Sequence[float] | None = None
    focal: float | None = None
    pixel_size: float | str | None = None
    card: Sequence[int] | None = None
    crop: Sequence[int] | None = None
    scale: float = 1.0
    leave_out: Sequence[str] = ()
    keep: Sequence[str] = ()
    moved_lights: Mapping[str, Sequence[float]] | Sequence[tuple[str, Sequence[float]]] = ()
    edits: bool | str = True
    workers: int | None = None

    def __post_init__(self) -> None:
        for name, count in (("circle", 3), ("card", 4), ("crop", 4)):
            if (value := getattr(self, name)) is not None and len(value) != count:
                raise ParameterError(
                    f"{name} must be {count} numbers, in pixels; it is {value}.",
                    code="bad-option",
                    option=name,
                    value=value,
                )
        if self.focal is not None and not 1 <= self.focal <= LONGEST_FOCAL:
            raise ParameterError(
                f"focal must be between 1 and {LONGEST_FOCAL:.0e} pixels; it is {self.focal}.",
                code="bad-option",
                option="focal",
                value=self.focal,
            )
        require_known(self.align, ("auto", "off"), "alignment", "unknown-align")
        require_known(self.subject, SUBJECTS, "subject")
        strengths = ("given", "unknown")
        require_known(
            self.lights_strengths, strengths, "value of lights_strengths", "unknown-strengths"
        )
        plain: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name in _SEQUENCES and value is not None:
                plain[name] = tuple(value)
            elif isinstance(value, os.PathLike):
                plain[name] = os.fspath(value)
        plain["moved_lights"] = tuple(
            (name, tuple(to)) for name, to in dict(self.moved_lights).items()
        )
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def framing(self) -> Framing:
        """The part of the frame to use, and its scale."""
        from photostereo.photographs.framing import Framing

        return Framing(self.crop, self.scale)  # type: ignore[arg-type]  # Framing checks its length

    def path_of(self, name: str) -> Path | None:
        """Return an option as a path (see :data:`NAMED_FILES`), or None."""
        value = getattr(self, name)
        if isinstance(value, (str, os.PathLike)):
            return Path(value).expanduser()
        return None

    def in_our_axes(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """Convert directions or positions of a light file to our axes, as the user specified."""
        from photostereo.lights.geometry import axes_matrix, from_axes

        if self.lights_axes is not None and vectors.shape[-1:] == (
            3,
        ):  # other shapes are rejected later
            vectors = from_axes(vectors, axes_matrix(self.lights_axes))
        return -vectors if self.reverse_lights else vectors

    def axes_given(self) -> str:
        """Combine both axis options into one ``lights_axes``; an empty string if neither was given.

        >>> ReadOptions(lights_axes="x,-y,z", reverse_lights=True).axes_given()
        '-x,y,-z'
        """
        import numpy as np

        from photostereo.lights.geometry import axes_words

        if self.axes_notes():
            return axes_words(self.in_our_axes(np.eye(3)))
        return ""

    def axes_notes(self) -> tuple[Finding, ...]:
        """Notes on how the directions of the light file were converted."""
        notes = []
        if self.lights_axes is not None:
            notes.append(Finding("light-axes-given", axes=self.lights_axes))
        if self.reverse_lights:
            notes.append(Finding("light-directions-reversed"))
        return tuple(notes)

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        said = ((entry.name, getattr(self, entry.name), entry.default) for entry in fields(self))
        # An array (a mask) is never a default, and != on it gives an array.
        return {
            name: value
            for name, value, default in said
            if hasattr(value, "shape") or value != default
        }
