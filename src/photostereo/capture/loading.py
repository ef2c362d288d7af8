"""``load``: read a :class:`Capture` from a folder or file of any supported layout."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from functools import cache
from importlib import import_module
from os.path import exists
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from photostereo.capture.assemble import build_capture
from photostereo.capture.capture import Capture
from photostereo.capture.edits import with_edits
from photostereo.capture.examine import examine
from photostereo.capture.layouts import folder
from photostereo.capture.lighting import calibrate_photographs, find_lights
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.capture.source import Source, source_of
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError, ParameterError, not_a_folder
from photostereo.core.findings import Finding
from photostereo.core.plugins import announced
from photostereo.core.wording import listed
from photostereo.io.images import list_images
from photostereo.lights.ball.calibration import Calibration
from photostereo.lights.files.reading import light_file_names


@runtime_checkable
class Layout(Protocol):
    """A format in which captures are stored: a module of this package, or an object from another package.

    It also has one of two functions: ``find(path, options)``, which returns a
    :class:`~photostereo.capture.source.Source` without decoding a photograph, or, if everything is read at once,
    ``read(path, options)``, which returns a :class:`Capture` with whole photographs, in color if they have any.
    """

    LAYOUT: str

    def recognizes(self, path: Path) -> bool:
        """Whether the path looks like this layout (cheap; decodes nothing)."""


#: Modules of :mod:`photostereo.capture.layouts` in the order in which they are tried, most specific first. To add a
#: layout, write a module and list it here.
OWN = ("archive", "video", "diligent", "harvard", "rti", "folder")
#: A folder with fewer photographs is not a capture: one or two may lie next to captures, and no method works with fewer.
FEWEST = 3


@cache
def layouts() -> tuple[Layout, ...]:
    """All layouts in the order in which they are tried; those from other packages (``photostereo.readers``) come first."""
    own = (cast(Layout, import_module(f"photostereo.capture.layouts.{name}")) for name in OWN)
    # A runtime-checkable protocol is as valid a type as any other.
    return (*announced("photostereo.readers", Layout), *own)  # type: ignore[type-abstract]


def load(
    path: str | os.PathLike[str], *, lazy: bool = False, control: Control = SILENT, **options: Any
) -> Capture:
    """Read a capture from a folder or file; the layout is detected.

    Parameters
    ----------
    path : str or path
        A folder of any supported layout, an RTI ``.lp`` file, an ``.npz`` archive or a video.
    lazy : bool
        Leave the photographs on disk until they are needed, for captures larger than memory (see
        :func:`photostereo.solve`). A small archive is read at once.
    control : Control
        Receives progress and can cancel the work.
    **options
        The fields of :class:`photostereo.capture.options.ReadOptions`, such as ``mask="auto"``,
        ``lights="lights.csv"`` or ``scale=0.5``.

    Returns
    -------
    Capture
        ``capture.origin`` has the layout, the bit depth and notes.

    Raises
    ------
    CaptureError
        If nothing is there, no layout fits, or the parts do not match each other; the message says what to do.
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
    capture = read_lazily(path, ReadOptions(**options), control)
    return capture if lazy else capture.loaded(control)


# The fields of the options instead of ``**options``, for ``help`` and completion.
_own, _options = (list(inspect.signature(kind).parameters.values()) for kind in (load, ReadOptions))
_all = [*_own[:-1], *(option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in _options)]
load.__signature__ = inspect.Signature(_all, return_annotation="Capture")  # type: ignore[attr-defined]


def calibrate(
    path: str | os.PathLike[str], *, control: Control = SILENT, **options: Any
) -> Calibration:
    """Estimate the lights of a folder of photographs from a ball, ignoring any light file.

    Parameters
    ----------
    path : path
        A folder of photographs, each under one light.
    control : Control
        Receives progress and can cancel the work.
    **options
        Fields of :class:`photostereo.capture.options.ReadOptions`: above all ``ball`` (by default a folder such as
        ``chrome/`` or ``LightProbe-1/`` in or beside ``path`` is used, then the photographs themselves), ``circle``,
        ``focal``, ``card`` and ``srgb``. With ``lights="estimate"`` balls are ignored, too: the lights are estimated
        from the photographs and the object's mask.

    Returns
    -------
    Calibration
        ``lights`` (directions, strengths, expected errors), warnings and a picture for checking them.

    Raises
    ------
    CaptureError
        For example ``"no-ball"`` if there is none, or ``"no-highlight"`` if a photograph shows no highlight on it.

    Examples
    --------
    >>> found = calibrate("photographs")  # doctest: +SKIP
    >>> found.lights.directions.shape  # doctest: +SKIP
    (12, 3)
    """
    place = Path(path).expanduser()
    reading = ReadOptions(**options)
    if not place.is_dir():
        raise not_a_folder(place)
    if reading.lights == ESTIMATE:
        origin = read_lazily(place, reading, control).origin
        assert origin is not None and origin.calibration is not None
        return origin.calibration
    opened = examine(folder.find_alone(place, reading), reading, control)
    unused: list[Finding] = []
    calibration = calibrate_photographs(opened, reading, control, unused=unused)
    notes = (
        *unused,
        *(fault.finding for fault in opened.source.faults),
        *opened.photographs.camera_notes,
    )
    return replace(calibration, warnings=(*notes, *calibration.warnings))


def read_lazily(
    path: str | os.PathLike[str],
    options: ReadOptions,
    control: Control = SILENT,
    *,
    need_lights: bool = True,
) -> Capture:
    """Like :func:`load`, with a :class:`ReadOptions`; the photographs stay on disk until they are needed.

    Without ``need_lights``, lights that neither a file nor a ball gives are not estimated.
    """
    options = with_edits(path, options)
    opened = examine(find_source(path, options), options, control)
    lighting = find_lights(opened, options, control)
    return build_capture(opened, lighting, options, estimate=need_lights, control=control)


def find_source(path: str | os.PathLike[str], options: ReadOptions) -> Source:
    """Reading, stage 1: detect the layout, and list the photographs and what lies beside them.

    Parameters
    ----------
    path : path
        A folder or a file.
    options : ReadOptions
        Of these, those about lights, balls, and photographs to leave out.

    Returns
    -------
    Source
        No photograph is decoded, unless the layout can only read everything.
    """
    place = Path(path).expanduser()
    if not exists(place):
        raise CaptureError(
            f"{place} does not exist. Give the folder that contains the photographs, an RTI .lp "
            "file or an .npz archive.",
            code="no-such-capture",
            file=place,
        )
    is_estimated = options.lights == ESTIMATE
    options = replace(options, lights=None) if is_estimated else _lights_of_another(options)
    layout: Any = recognize(place)
    if place.is_dir():
        by_ball = options.ball is not None or options.circle is not None
        if by_ball or (is_estimated and layout is folder):
            layout = None  # a light file in the folder is ignored
        elif layout is None and options.lights is not None and list_images(place):
            layout = folder  # with a light file elsewhere
    if layout is None:
        source = _photographs_alone(place, options)
    elif hasattr(layout, "find"):
        source = layout.find(place, options)
    else:
        source = _read_whole(layout, place, options)
    if is_estimated:
        source = source.changed(lights=None)
    elif options.lights_strengths == "unknown" and source.lights is not None:
        unknown = np.ones(len(source.lights.vectors), dtype=bool)
        table = replace(source.lights, intensities=None, open_strengths=unknown)
        source = source.changed(lights=table)
    strange = sorted({*options.leave_out, *options.keep}.difference(source.names))
    if strange:
        note = Finding("no-such-photograph", "problem", names=listed(strange))
        source = source.changed(notes=(*source.notes, note))
    excluded = [k for k, name in enumerate(source.names) if name in options.leave_out]
    return source.without(dict.fromkeys(excluded, "excluded"))


def _read_whole(layout: Any, place: Path, options: ReadOptions) -> Source:
    """The source of a capture whose layout can only read everything, whole and as stored."""
    if options.lights_strengths == "unknown":
        raise ParameterError(
            "The photographs in this file are divided by their light strengths already, so "
            "these cannot be estimated.",
            code="strengths-in-archive",
        )
    # All other options apply to every source alike, later.
    own = ReadOptions(color=True, srgb=options.srgb, lights=options.lights)
    return source_of(layout.read(place, own), place, layout.LAYOUT)


def _lights_of_another(options: ReadOptions) -> ReadOptions:
    """Resolve ``lights`` if it is a folder: to the light file in it, or else the ball in it."""
    other = options.path_of("lights")
    if other is None or not other.is_dir():
        return options
    for name in light_file_names():
        if (other / name).is_file():
            return replace(options, lights=other / name)
    if folder.find_alone(other, options).files:
        return replace(options, lights=None, ball=other)
    names = ", ".join(light_file_names())
    raise CaptureError(
        f"{other} has neither a light file ({names}) nor photographs of a ball, so its lights "
        "cannot be used. Name a light file.",
        code="no-lights",
        file=other,
        names=names,
    )


def recognize(path: Path) -> Layout | None:
    """Return the layout of a folder or file, or None."""
    return next((layout for layout in layouts() if layout.recognizes(path)), None)


def is_capture_folder(place: Path) -> bool:
    """Whether a folder has a known layout, or enough photographs (cheap; decodes nothing)."""
    try:
        return recognize(place) is not None or len(folder.photographs_and_mask(place)[0]) >= FEWEST
    except (CaptureError, OSError):
        return False


def _photographs_alone(place: Path, options: ReadOptions) -> Source:
    """Find the photographs in a folder without a light file; raise an error if it has none, or several captures."""
    if place.is_file():
        raise CaptureError(
            f"{place} is not a capture. Give a folder with photographs, an .lp file or an .npz "
            "file.",
            code="not-a-capture",
            file=place,
        )
    found = folder.find_alone(place, options)
    entries = sorted(entry for entry in place.iterdir() if not entry.name.startswith("."))
    if len(found.files) < FEWEST:
        inside = [entry.name for entry in entries if entry.is_dir() and is_capture_folder(entry)]
        if inside:
            shown = listed(inside, 8)
            raise CaptureError(
                f"{place} is not a capture itself, but has folders with photographs: {shown}. "
                "Choose one, or work on all of them with `photostereo batch`.",
                code="several-captures",
                file=place,
                captures=inside,
                shown=shown,
            )
    if not found.files:
        content = f"only {listed(entry.name for entry in entries)}" if entries else "it is empty"
        raise CaptureError(
            f"{place} has no photographs: {content}. Give a folder with photographs of one "
            "object, each under a different light.",
            code="no-photographs",
            file=place,
            content=content,
        )
    return found
