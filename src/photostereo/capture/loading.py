"""``load``: whatever the user points at, as a Capture."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from photostereo.capture import ball_lights as lamps
from photostereo.capture.assemble import Ingredients, assemble_lazily
from photostereo.capture.capture import Capture
from photostereo.capture.layouts import archive, diligent, folder, harvard, rti
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.core.plugins import announced
from photostereo.io.images import list_images
from photostereo.io.safe import exists


@runtime_checkable
class Layout(Protocol):
    """What a reader offers so that ``load`` can use it: a module of this package, or an object of another's."""

    LAYOUT: str
    EXPECTS: str

    def recognizes(self, path: Path) -> bool:
        """Whether the path looks like this layout (cheap; decodes nothing)."""

    def read(self, path: Path, options: ReadOptions) -> Capture:
        """Read it."""


#: In the order in which they are tried: the more particular first.
OWN: tuple[Layout, ...] = (archive, diligent, harvard, rti, folder)


@cache
def layouts() -> tuple[Layout, ...]:
    """All layouts in the order in which they are tried; other packages' (``photostereo.readers``) come first."""
    # A protocol that can be checked at run time is no less a type than another.
    return (*announced("photostereo.readers", Layout), *OWN)  # type: ignore[type-abstract]


def load(
    path: str | os.PathLike[str],
    *,
    color: bool = False,
    srgb: bool | None = None,
    mask: str | os.PathLike[str] | NDArray[Any] | None = None,
    lights: str | os.PathLike[str] | None = None,
    ball: str | os.PathLike[str] | None = None,
    circle: Sequence[float] | None = None,
    focal: float | None = None,
    card: Sequence[int] | None = None,
    workers: int | None = None,
    crop: Sequence[int] | None = None,
    scale: float = 1.0,
    lights_axes: str | None = None,
    reverse_lights: bool = False,
    ambient: str | os.PathLike[str] | None = None,
    flat: str | os.PathLike[str] | None = None,
    lazy: bool = False,
) -> Capture:
    """Read a capture from a folder or file; the layout is recognized.

    Parameters
    ----------
    path : str or path
        A plain folder with photographs and ``lights.csv|txt|json`` or a ball, a folder in the DiLiGenT or Harvard
        layout, an RTI ``.lp`` file (or a folder with one), or a NumPy ``.npz`` archive.
    color : bool
        Keep three channels instead of converting to gray.
    srgb : bool, optional
        Undo the sRGB curve, or take the values as linear. By default it is undone for JPEG files and for files that
        are tagged as sRGB.
    mask : str, path or (H, W) array, optional
        ``"full"`` for the whole frame, ``"auto"`` to find the object in the photographs, ``"bright"`` for a bright
        object on a dark background, a picture, or an array. By default the mask in the folder.
    lights : str or path, optional
        Another light file, or another capture whose lights are used again. In the Harvard layout also ``"refined"``
        (its default) or ``"directions"``. By default the light file in the folder.
    ball, circle, focal, card
        How to find the lights from a ball if there is no light file; see :func:`photostereo.calibrate`. With ``ball``
        or ``circle`` a light file in the folder is ignored.
    workers : int, optional
        Decoding threads; by default one per processor.
    crop : sequence of 4 int, optional
        A part of the frame: x, y, width, height, in pixels from the top left corner.
    scale : float
        Factor of both sides, at most 1. Mask and truth follow ``crop`` and ``scale``.
    lights_axes : str, optional
        What the light file has in place of x (right), y (up) and z (towards the camera): ``"x,-y,z"`` if y points down.
    reverse_lights : bool
        The directions of the light file point from the light to the object.
    ambient : path, optional
        A photograph with the lights off, which is subtracted; by default ``ambient.*`` in a plain folder.
    flat : path, optional
        A photograph of an even surface under the same light, to divide by; by default ``flat.*``.
    lazy : bool
        Leave the photographs on disk until they are needed, for captures larger than memory (see
        :func:`photostereo.solver.large.solve_large`). An archive, and a capture whose lights come from a ball, are read
        at once.

    Returns
    -------
    Capture
        With ``capture.origin`` telling the layout, the bit depth and anything noteworthy.

    Raises
    ------
    CaptureError
        If nothing is there, no layout fits, or the parts do not fit each other; the message says what to do.
    MissingDependencyError
        If the photographs are EXR or camera RAW and the library that reads them is not installed.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from photostereo.capture import write_archive
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> wall = Capture(images=np.ones((3, 4, 5)), lights=lights)
    >>> file = write_archive(wall, tempfile.mkdtemp() + "/wall.npz")
    >>> load(file).frame
    (4, 5)
    """
    options = ReadOptions(
        color=color,
        srgb=srgb,
        mask=mask,
        lights=lights,
        lights_axes=lights_axes,
        reverse_lights=reverse_lights,
        ambient=ambient,
        flat=flat,
        ball=ball,
        circle=circle,
        focal=focal,
        card=card,
        crop=crop,
        scale=scale,
        workers=workers,
    )
    return read_lazily(path, options) if lazy else read(path, options)


def read(path: str | os.PathLike[str], options: ReadOptions) -> Capture:
    """As :func:`load`, with the options in one piece."""
    place, options, reader = _find(path, options)
    return reader.read(place, options)


def read_lazily(path: str | os.PathLike[str], options: ReadOptions) -> Capture:
    """As :func:`read`, but the photographs stay on disk until they are needed.

    An archive, a capture whose lights a ball tells, and a format of another package that only knows how to read
    everything are read at once.
    """
    place, options, reader = _find(path, options)
    find: Callable[[Path, ReadOptions], Ingredients] | None = getattr(reader, "find", None)
    if find is None:
        return reader.read(place, options)
    return assemble_lazily(find(place, options), options)


class Reader(Protocol):
    """The part of a :class:`Layout` that reads."""

    def read(self, path: Path, options: ReadOptions) -> Capture:
        """Read it."""


def _find(path: str | os.PathLike[str], options: ReadOptions) -> tuple[Path, ReadOptions, Reader]:
    """The place, the options with its lights settled, and what reads it."""
    place = Path(path).expanduser()
    if not exists(place):
        raise CaptureError(
            f"{place} does not exist. Give the folder that holds the photographs and their light file, an "
            "RTI .lp file or an .npz archive."
        )
    lights_given = options.lights is not None
    options = _lights_of_another(place, options)
    layout = recognize(place)
    by_ball = place.is_dir() and (options.ball is not None or options.circle is not None)
    if layout is None and not by_ball and place.is_dir() and lights_given and list_images(place):
        layout = folder
    if by_ball:
        return place, options, lamps
    return place, options, _Ball() if layout is None else layout


class _Ball:
    """The reader of photographs without a light file."""

    def read(self, path: Path, options: ReadOptions) -> Capture:
        return _read_with_ball(path, options)


def _lights_of_another(place: Path, options: ReadOptions) -> ReadOptions:
    """``lights`` as a folder: the light file in it, or else the ball in it."""
    other = options.path_of("lights")
    if other is None or not other.is_dir():
        return options
    for name in folder.LIGHT_FILES:
        if (other / name).is_file():
            return replace(options, lights=other / name)
    if lamps.photographs_of(other).files:
        return replace(options, lights=None, ball=other)
    raise CaptureError(
        f"{other} has neither a light file ({', '.join(folder.LIGHT_FILES)}) nor photographs of a ball, so its lights "
        "cannot be used again. Name a light file."
    )


def _read_with_ball(place: Path, options: ReadOptions) -> Capture:
    """Photographs without a light file: a ball may tell."""
    problem = _nothing_fits(place)
    if not place.is_dir() or len(lamps.photographs_of(place).files) < 3:
        raise CaptureError(problem)
    try:
        return lamps.read(place, options)
    except CaptureError as error:
        raise CaptureError(f"{problem} {error}" if "No ball" in str(error) else str(error)) from error


def recognize(path: Path) -> Layout | None:
    """The layout of a folder or file, or None."""
    return next((layout for layout in layouts() if layout.recognizes(path)), None)


def _nothing_fits(place: Path) -> str:
    looked = "; ".join(layout.EXPECTS for layout in layouts())
    if place.is_file():
        return (
            f"{place} is not a capture. Give a folder, an .lp or an .npz file. What is understood: {looked}."
        )
    inside = sorted(
        entry.name for entry in place.iterdir() if entry.is_dir() and recognize(entry) is not None
    )
    if inside:
        shown = ", ".join(inside[:8]) + (", ..." if len(inside) > 8 else "")
        return (
            f"{place} is not a capture itself but holds {len(inside)} of them: {shown}. Give the path of one."
        )
    photographs, mask = folder.photographs_and_mask(place)
    if photographs:
        also = f" (and the mask {mask.name})" if mask else ""
        return (
            f"{place} has {len(photographs)} photographs{also} but no light directions: none of "
            f"{', '.join(folder.LIGHT_FILES)} or *.lp is there. Write lights.csv with a first line "
            "file,x,y,z and one line per photograph (x right, y up, z towards the camera; from the object "
            "to the light), or name a light file (lights=..., --lights)."
        )
    return f"{place} has no photographs and no light directions. What is understood: {looked}."
