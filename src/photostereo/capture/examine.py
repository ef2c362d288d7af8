"""Reading, stage 2: open the photographs of a source and examine each of them once.

Unusable photographs are left out, each with a reason, and camera movement is estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.attempt import attempt
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.camera import exposure_of
from photostereo.lights.ball.search import FoundBall, find_balls
from photostereo.photographs.alignment.alignment import SMALLEST, Alignment, find_alignment
from photostereo.photographs.brackets import find_brackets
from photostereo.photographs.developed import DevelopedFrames, open_files
from photostereo.photographs.faults import (
    FEWEST_LEFT,
    Fault,
    find_blurred,
    find_dark,
    find_duplicates,
    judge_dark,
    survey,
)
from photostereo.photographs.framing import coarse

#: Pixels along the longer side of the small photographs.
SMALL = 320


@dataclass(frozen=True, eq=False)
class Opened:
    """The usable photographs of a capture."""

    source: Source  #: without the photographs left out (see ``source.faults``)
    photographs: DevelopedFrames  #: whole, with the movement of the camera undone
    #: how far the camera moved; None with ``align="off"``, or if the search failed
    alignment: Alignment | None
    small: Float32  #: (d, h, w) the photographs in gray, linear and at a low resolution
    failures: tuple[Finding, ...] = ()  #: checks that could not be made

    def balls(self, beside: BoolArray | None, control: Control = SILENT) -> list[FoundBall]:
        """Balls in the small photographs, outside a mask of the object; searched once for each mask."""
        last: Any = vars(self).get("_balls")
        if last is None or not np.array_equal(last[0], np.asarray(beside)):
            last = beside, find_balls(self.small, beside=beside, control=control)
            object.__setattr__(self, "_balls", last)
        return list(last[1])


def open_photographs(source: Source, options: ReadOptions) -> DevelopedFrames:
    """Open the photographs, whole, with the strengths of the light file divided out; decodes the first one."""
    table = source.lights
    source.require_matching()
    return open_files(
        source.files,
        intensities=None if table is None else table.intensities,
        srgb=options.srgb,
        gray_limit=source.gray_limit,
        ambient=source.ambient,
        flat=source.flat,
        brackets=source.brackets,
        pictures=source.pictures,
        bits=source.bit_depth,
        workers=options.workers,
    )


def examine(source: Source, options: ReadOptions, control: Control = SILENT) -> Opened:
    """Open the photographs of a source, and examine each of them once.

    Parameters
    ----------
    source : Source
        What a layout found.
    options : ReadOptions
        Of these, ``strict``, ``keep``, ``align``, ``ambient``, ``flat``, ``srgb`` and ``workers``.
    control : Control
        Receives progress and can cancel the work.

    Returns
    -------
    Opened
        Checks that fail are its ``failures``.

    Raises
    ------
    CaptureError
        If a photograph is unusable and fewer than :data:`FEWEST_LEFT` would be left, or with ``options.strict``.
    """
    failures: list[Finding] = []
    source = source.changed(
        ambient=options.path_of("ambient") or source.ambient,
        flat=options.path_of("flat") or source.flat,
    )
    source = attempt(
        "the search for exposure brackets",
        _with_brackets,
        source,
        failures=failures,
        otherwise=source,
    )
    source = attempt(
        "the search for photographs without a light",
        _without_unlit,
        source,
        options,
        control,
        failures=failures,
        otherwise=source,
    )
    examination = _Examination(_of_one_size(source, options), options, control, failures)
    examination.open()
    if examination.is_judged:
        examination.leave_out_dark_and_copies()
        examination.leave_out_blurred()
    else:
        examination.leave_out_copies()
    return examination.align()


class _Examination:
    """The photographs that are still in use while they are examined."""

    def __init__(
        self, source: Source, options: ReadOptions, control: Control, failures: list[Finding]
    ) -> None:
        self.source = source
        self.options = options
        self.control = control
        self.failures = failures
        self.photographs: DevelopedFrames
        self.pictures: Float32  #: (d, H, W) roots of intensities in gray, reduced by ``scale``
        self.scale = 1.0

    def open(self) -> None:
        """Read every photograph, and leave out those that cannot be read."""
        self._open_first()
        with self.photographs.held():  # read again for the lights and by the solver
            self.pictures, self.scale, errors = survey(self.photographs, self.control)
        if not errors:
            return
        if self.options.strict or len(self.pictures) < FEWEST_LEFT:
            raise next(iter(errors.values()))
        count = len(self.source.files)
        self.photographs = self.photographs.take([k for k in range(count) if k not in errors])
        self.source = self.source.without({k: error.code for k, error in errors.items()})

    def _open_first(self) -> None:
        """Open the first photograph that can be read: the others must be like it."""
        while True:
            try:
                self.photographs = open_photographs(self.source, self.options)
                return
            except CaptureError as error:
                too_few = len(self.source.files) <= FEWEST_LEFT
                if too_few or self.options.strict or error.file != self.source.files[0]:
                    raise
                self.source = self.source.without({0: error.code})

    @property
    def is_judged(self) -> bool:
        """Whether photographs are compared with each other: unless they are tiny, or the user wants them all."""
        wants_all = set(self.source.names) <= set(self.options.keep)
        return min(self.pictures.shape[1:]) >= SMALLEST and not wants_all

    def leave_out_copies(self) -> None:
        """Leave out copies of other photographs."""
        copies = self._copies()
        self._leave_out(dict.fromkeys(copies, "duplicate"), copies)

    def leave_out_dark_and_copies(self) -> None:
        """Leave out dark photographs and copies; one with the light off shows the light of the room."""
        copies = self._copies()
        dark: dict[int, str] = attempt(
            "the search for dark photographs",
            _find_dark,
            self.pictures,
            self.source.directions,
            failures=self.failures,
            otherwise={},
        )
        files = self.source.files
        off = [
            number
            for number, reason in dark.items()
            if reason == "light-off" and files[number].name not in self.options.keep
        ]
        if off and self.source.ambient is None and len(files) - len(off) >= FEWEST_LEFT:
            self.photographs = self.photographs.less_ambient(off[0])
            self.source = self.source.changed(ambient=files[off[0]])
        self._leave_out({**dark, **dict.fromkeys(copies, "duplicate")}, copies)

    def leave_out_blurred(self) -> None:
        """Leave out blurred photographs."""
        blurred: list[int] = attempt(
            "the search for blurred photographs",
            self.control.aside,
            partial(find_blurred, self.pictures),
            failures=self.failures,
            otherwise=[],
        )
        self._leave_out(dict.fromkeys(blurred, "blurred"))

    def align(self) -> Opened:
        """Estimate the movement of the camera, leave out photographs of something else, and finish."""
        small = np.stack([coarse(picture * picture, SMALL) for picture in self.pictures])
        alignment = None
        if self.options.align != "off":
            alignment = attempt(
                "the search for camera movement",
                _align,
                self.pictures,
                self.scale,
                self.source.directions,
                self.control,
                failures=self.failures,
                otherwise=None,
            )
        if alignment is not None:
            mismatched = np.flatnonzero(alignment.mismatched).tolist()
            places = self._leave_out(dict.fromkeys(mismatched, "mismatched"))
            small = small[places]
            alignment = alignment.take(places)
            self.photographs = replace(self.photographs, moves=alignment.corrected)
        return Opened(self.source, self.photographs, alignment, small, tuple(self.failures))

    def _copies(self) -> dict[int, int]:
        """The number of its original, for each copy."""
        pictures = self.source.pictures
        digests = {file: pictures.digest(file) for file in self.source.files}
        return attempt(
            "the search for copies",
            find_duplicates,
            self.source.files,
            {file: digest for file, digest in digests.items() if digest},
            failures=self.failures,
            otherwise={},
        )

    def _leave_out(
        self, reasons: Mapping[int, str], copies: Mapping[int, int] | None = None
    ) -> list[int]:
        """Leave out photographs if enough others remain.

        Parameters
        ----------
        reasons : mapping of int to str
            The code of the reason for each of them.
        copies : mapping of int to int, optional
            The number of its original, for each that is a copy.

        Returns
        -------
        list of int
            The numbers of the photographs that remain.
        """
        files = self.source.files
        unusable = {}
        used = []
        for number, reason in reasons.items():
            other = ""
            if copies and number in copies:
                other = files[copies[number]].name
            fault = Fault(files[number].name, reason, other)
            if fault.file in self.options.keep:
                used.append(replace(fault, used=True, wanted=True))
            elif self.options.strict:
                raise fault.as_error(files[number])
            else:
                unusable[number] = fault
        if len(files) - len(unusable) < FEWEST_LEFT:
            used += [replace(fault, used=True) for fault in unusable.values()]
            unusable = {}
        places = [number for number in range(len(files)) if number not in unusable]
        noted = self.source.changed(faults=(*self.source.faults, *used))
        self.source = noted.without(unusable)
        self.photographs = self.photographs.take(places)
        self.pictures = self.pictures[places]
        return places


def _align(
    pictures: Float32, scale: float, directions: FloatArray | None, control: Control
) -> Alignment:
    """How far the camera moved; what follows the light is no movement."""
    alignment = find_alignment(pictures, scale, control)
    if directions is None:
        return alignment
    return alignment.compared_with(directions)


def _find_dark(pictures: Float32, directions: FloatArray | None) -> dict[int, str]:
    """Dark photographs, without those that show the light that the light file states."""
    dark = {}
    for number, reason in find_dark(pictures).items():
        judged = judge_dark(pictures, number, reason, directions)
        if judged:
            dark[number] = judged
    return dark


def _with_brackets(source: Source) -> Source:
    """Reduce several exposures of a light to one photograph, the shortest."""
    if source.brackets:
        return source
    files = source.files
    table = source.lights
    shots = source.shots
    groups = find_brackets(files, shots, None if table is None else table.vectors)
    if groups is None:
        return source
    brackets = {}
    for group in groups:
        shortest = min(group, key=lambda place: exposure_of(shots[place]) or 0.0)
        brackets[files[shortest]] = [files[place] for place in group]
    if table is not None and len(table.vectors) == len(files):
        table = table.take([group[0] for group in groups])
    several = {file: group for file, group in brackets.items() if len(group) > 1}
    return source.changed(files=list(brackets), brackets=several, lights=table)


def _without_unlit(source: Source, options: ReadOptions, control: Control) -> Source:
    """Leave out photographs that have no light in the light file because they were taken with the light off."""
    table = source.lights
    missing = 0 if table is None else len(source.files) - len(table.vectors)
    if not 0 < missing <= len(source.files) - FEWEST_LEFT or options.strict:
        return source
    photographs = open_photographs(source.changed(lights=None), options)
    pictures, _, errors = survey(photographs, control)
    if errors or min(pictures.shape[1:]) < SMALLEST:
        return source
    dark = find_dark(pictures)
    if len(dark) != missing:
        return source
    off = [source.files[number] for number, reason in dark.items() if reason == "light-off"]
    ambient = source.ambient or next(iter(off), None)
    return source.without(dark).changed(lights=table, ambient=ambient)


def _of_one_size(source: Source, options: ReadOptions) -> Source:
    """Leave out photographs whose header gives a different size than most."""
    frames = [shot.frame for shot in source.shots]
    counts = Counter(frame for frame in frames if frame is not None)
    if len(counts) < 2 or options.strict:
        return source
    usual, count = counts.most_common(1)[0]
    if count < FEWEST_LEFT or 2 * count < len(frames):
        return source
    others = [number for number, frame in enumerate(frames) if frame not in (None, usual)]
    return source.without(dict.fromkeys(others, "size-mismatch"))
