"""Reading, stages 1 and 2: list the files of a capture, open its photographs and examine each once.

Unusable photographs are left out, each with a reason, and camera movement is estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.capture import require_count
from photostereo.capture.options import ReadOptions
from photostereo.core.attempt import attempt
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.camera import Heads, exposure_of, focal_in_pixels
from photostereo.lights.ball.search import FoundBall, find_balls
from photostereo.lights.files.table import LightTable
from photostereo.lights.lights import wrong_count
from photostereo.photographs.alignment.alignment import SMALLEST, Alignment, find_alignment
from photostereo.photographs.brackets import find_brackets
from photostereo.photographs.faults import (
    FEWEST_LEFT,
    Fault,
    find_blurred,
    find_dark,
    find_duplicates,
    judge_dark,
    survey,
)
from photostereo.photographs.files import PhotographFiles, open_files
from photostereo.photographs.framing import coarse

#: Pixels along the longer side of the small photographs.
SMALL = 320


@dataclass(frozen=True, eq=False)
class Found:
    """The files that a layout found in a folder, before any photograph is decoded."""

    path: Path  #: the capture's folder or file
    layout: str  #: the name of the format
    name: str  #: the name of the capture
    files: Sequence[Path]  #: the photographs, in the order of the lights
    lights: LightTable | None = None  #: the light file, in the order of the photographs, or None
    #: a folder with photographs of a ball under the same lights, if the user gave one
    ball: Path | None = None
    mask_file: Path | None = None  #: the mask picture, or None
    mask_default: str = (
        "full"  #: ``"full"``, ``"auto"`` or ``"bright"``, if there is no mask picture
    )
    gray_limit: float | None = None  #: upper limit of gray intensities, or None
    #: for each known truth of :class:`Capture`, its file and its values
    truths: Mapping[str, tuple[Path, NDArray[Any]]] = field(default_factory=dict)
    expected_bits: int = 0  #: usual bit depth of the layout, or 0; less gives a note
    ambient: Path | None = None  #: a photograph with the lights off, or None
    flat: Path | None = None  #: a photograph of an even surface, or None
    #: all exposures of a light, by the one among ``files``, if there are several
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()  #: notes from the layout
    heads: Heads = field(default_factory=Heads)  #: cached file headers
    taken: Sequence[Path] = ()  #: all photographs, if some were removed from ``files``
    faults: tuple[Fault, ...] = ()  #: photographs left out, with reasons

    def without(self, faults: Mapping[int, Fault | str]) -> Found:
        """Leave out photographs and their lights, by index in ``files``; each has a fault, or a string as the reason."""
        kept = [place for place in range(len(self.files)) if place not in faults]
        table = self.lights
        if table is not None and len(table.vectors) == len(self.files):
            table = table.take(kept)
        known = (
            Fault(self.files[place].name, fault) if isinstance(fault, str) else fault
            for place, fault in faults.items()
        )
        files, taken = [self.files[place] for place in kept], self.taken or self.files
        return replace(self, files=files, lights=table, taken=taken, faults=(*self.faults, *known))

    def focal(
        self, options: ReadOptions, frame: tuple[int, ...], files: Sequence[Path] = ()
    ) -> float | None:
        """Focal length in pixels for photographs of this height and width, from the user or from EXIF."""
        shots = [self.heads[file] for file in files or self.files]
        return options.focal or focal_in_pixels(shots, (frame[0], frame[1]))


def open_photographs(found: Found, options: ReadOptions) -> PhotographFiles:
    """Open the photographs, whole, with the strengths of the light file divided out; decodes the first one."""
    table = found.lights
    require_matching(found)
    return open_files(
        found.files,
        intensities=None if table is None else table.intensities,
        srgb=options.srgb,
        gray_limit=found.gray_limit,
        ambient=found.ambient,
        flat=found.flat,
        brackets=found.brackets,
        heads=found.heads,
        workers=options.workers,
    )


def require_matching(found: Found) -> None:
    """Check that there are at least three photographs, and one light for each if there is a light file."""
    files, path, table = found.files, found.path, found.lights
    require_count(len(files), found.name, path)
    if table is not None and len(files) != len(table.vectors):
        name = f"{path} (with {table.path.name})"
        raise wrong_count(name, len(files), len(table.vectors), table.path)


@dataclass(frozen=True, eq=False)
class Opened:
    """The usable photographs of a capture."""

    found: Found  #: the files, without those left out (see ``found.faults``)
    photographs: PhotographFiles  #: whole, with the movement of the camera undone
    #: how far the camera moved; None with ``align="off"``, or if the search failed
    alignment: Alignment | None
    small: Float32  #: (d, h, w) the photographs in gray, linear and at a low resolution
    failures: tuple[Finding, ...] = ()  #: checks that could not be made

    def balls(self, beside: BoolArray | None, control: Control = SILENT) -> list[FoundBall]:
        """Balls in the small photographs, outside a mask of the object; searched once for each mask."""
        known: Any = vars(self).get("_balls")
        if known is None or not np.array_equal(known[0], np.asarray(beside)):
            known = beside, find_balls(self.small, beside=beside, control=control)
            object.__setattr__(self, "_balls", known)
        return list(known[1])


def open_capture(found: Found, options: ReadOptions, control: Control = SILENT) -> Opened:
    """Open the photographs that a layout found, and examine each of them once.

    Raise an error if a photograph is unusable and fewer than :data:`FEWEST_LEFT` would be left, or with ``options.strict``.
    """
    ambient, flat = (
        options.path_of("ambient") or found.ambient,
        options.path_of("flat") or found.flat,
    )
    failures: list[Finding] = []
    found = _with_brackets(replace(found, ambient=ambient, flat=flat), failures)
    check = "the search for photographs without a light"
    found = attempt(check, _lit, found, options, control, failures=failures, otherwise=found)
    found = _of_one_size(found, options)
    while True:
        try:
            photographs = open_photographs(found, options)
            break
        except CaptureError as error:
            if len(found.files) <= FEWEST_LEFT or options.strict or error.file != found.files[0]:
                raise
            found = found.without({0: error.code})
    with photographs.held():  # read again for the lights and by the solver
        pictures, scale, errors = survey(photographs, control)
    if errors:
        if options.strict or len(pictures) < FEWEST_LEFT:
            raise next(iter(errors.values()))
        photographs = photographs.take([k for k in range(len(found.files)) if k not in errors])
        found = found.without({k: error.code for k, error in errors.items()})
    every_kept = {file.name for file in found.files} <= set(options.keep)
    judged = min(pictures.shape[1:]) >= SMALLEST and not every_kept
    copies: dict[int, int] = attempt(
        "the search for copies",
        find_duplicates,
        found.files,
        photographs.digests,
        failures=failures,
        otherwise={},
    )
    dark: dict[int, str] = {}
    if judged:
        check = "the search for dark photographs"
        dark = attempt(check, _find_dark, pictures, found, failures=failures, otherwise={})
    off = [
        k
        for k, why in dark.items()
        if why == "light-off" and found.files[k].name not in options.keep
    ]
    if off and found.ambient is None and len(found.files) - len(off) >= FEWEST_LEFT:
        photographs = photographs.less_ambient(off[0])
        found = replace(found, ambient=found.files[off[0]])
    found, kept = _judge(found, {**dark, **dict.fromkeys(copies, "duplicate")}, options, copies)
    photographs, pictures = photographs.take(kept), pictures[kept]
    if judged:
        blurred: list[int] = attempt(
            "the search for blurred photographs",
            control.aside,
            partial(find_blurred, pictures),
            failures=failures,
            otherwise=[],
        )
        found, kept = _judge(found, dict.fromkeys(blurred, "blurred"), options)
        photographs, pictures = photographs.take(kept), pictures[kept]
    small = np.stack([coarse(picture * picture, SMALL) for picture in pictures])
    alignment = None
    if options.align != "off":
        alignment = attempt(
            "the search for camera movement",
            _align,
            pictures,
            scale,
            _directions(found),
            control,
            failures=failures,
            otherwise=None,
        )
    if alignment is None:
        return Opened(found, photographs, None, small, tuple(failures))
    mismatched = np.flatnonzero(alignment.mismatched).tolist()
    found, kept = _judge(found, dict.fromkeys(mismatched, "mismatched"), options)
    alignment = alignment.take(kept)
    still = replace(photographs.take(kept), moves=alignment.corrected)
    return Opened(found, still, alignment, small[kept], tuple(failures))


def _align(
    pictures: Float32, scale: float, directions: FloatArray | None, control: Control
) -> Alignment:
    """How far the camera moved; what follows the light is no movement."""
    alignment = find_alignment(pictures, scale, control)
    if directions is None:
        return alignment
    return alignment.compared_with(directions)


def _find_dark(pictures: Float32, found: Found) -> dict[int, str]:
    """Dark photographs, without those that show the light that the light file states."""
    directions = _directions(found)
    reasons = (
        (number, judge_dark(pictures, number, reason, directions))
        for number, reason in find_dark(pictures).items()
    )
    return {number: reason for number, reason in reasons if reason}


def _directions(found: Found) -> FloatArray | None:
    """Directions (d, 3) in the light file, NaN where it has none; None without a light file."""
    table = found.lights
    if table is None or len(table.vectors) != len(found.files):
        return None
    directions = table.vectors.copy()
    if table.open_directions is not None:
        directions[table.open_directions] = np.nan
    return directions


def _judge(
    found: Found,
    reasons: Mapping[int, str],
    options: ReadOptions,
    copies: Mapping[int, int] | None = None,
) -> tuple[Found, list[int]]:
    """Leave out these photographs if enough others remain; return also the numbers of the remaining ones.

    ``copies`` have the number of their original.
    """
    files, bad, used = found.files, {}, []
    for number, reason in reasons.items():
        other = files[copies[number]].name if copies and number in copies else ""
        fault = Fault(files[number].name, reason, other)
        if fault.file in options.keep:
            used.append(replace(fault, used=True, wanted=True))
        elif options.strict:
            raise fault.as_error(files[number])
        else:
            bad[number] = fault
    if len(files) - len(bad) < FEWEST_LEFT:
        used += [replace(fault, used=True) for fault in bad.values()]
        bad = {}
    kept = [number for number in range(len(files)) if number not in bad]
    return replace(found, faults=(*found.faults, *used)).without(bad), kept


def _with_brackets(found: Found, failures: list[Finding]) -> Found:
    """Reduce several exposures of a light to one photograph, the shortest."""
    files, table, shots = found.files, found.lights, [found.heads[file] for file in found.files]
    groups = None
    if not found.brackets:
        groups = attempt(
            "the search for exposure brackets",
            find_brackets,
            files,
            shots,
            None if table is None else table.vectors,
            failures=failures,
            otherwise=None,
        )
    if groups is None:
        return found
    brackets = {
        files[min(group, key=lambda place: exposure_of(shots[place]) or 0.0)]: [
            files[place] for place in group
        ]
        for group in groups
    }
    if table is not None and len(table.vectors) == len(files):
        table = table.take([group[0] for group in groups])
    several = {file: group for file, group in brackets.items() if len(group) > 1}
    return replace(found, files=list(brackets), brackets=several, lights=table)


def _lit(found: Found, options: ReadOptions, control: Control) -> Found:
    """Leave out photographs that have no light in the light file because they were taken with the light off."""
    table = found.lights
    missing = 0 if table is None else len(found.files) - len(table.vectors)
    if not 0 < missing <= len(found.files) - FEWEST_LEFT or options.strict:
        return found
    pictures, _, errors = survey(open_photographs(replace(found, lights=None), options), control)
    dark = find_dark(pictures) if not errors and min(pictures.shape[1:]) >= SMALLEST else {}
    if len(dark) != missing:
        return found
    off = [found.files[number] for number, reason in dark.items() if reason == "light-off"]
    return replace(
        found.without(dark), lights=table, ambient=found.ambient or next(iter(off), None)
    )


def _of_one_size(found: Found, options: ReadOptions) -> Found:
    """Leave out photographs whose header gives a different size than most."""
    frames = [found.heads[file].frame for file in found.files]
    known = Counter(frame for frame in frames if frame is not None)
    if len(known) < 2 or options.strict:
        return found
    usual, count = known.most_common(1)[0]
    if count < FEWEST_LEFT or 2 * count < len(frames):
        return found
    others = (number for number, frame in enumerate(frames) if frame not in (None, usual))
    return found.without(dict.fromkeys(others, "size-mismatch"))
