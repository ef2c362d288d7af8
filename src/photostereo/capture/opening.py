"""The second stage of reading: the photographs, opened and looked at once.

Photographs that cannot be used are left out, each with its reason, and the movement of the camera is estimated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.found import Found, open_photographs, with_brackets
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError
from photostereo.lights.ball.search import FoundBall, find_balls
from photostereo.photographs.alignment.alignment import Alignment
from photostereo.photographs.alignment.finding import SMALLEST, find_alignment
from photostereo.photographs.faults import (
    FEWEST_LEFT,
    Fault,
    coarse,
    find_blurred,
    find_dark,
    find_duplicates,
)
from photostereo.photographs.files import PhotographFiles
from photostereo.photographs.survey import Survey, survey

#: Pixels along the longer side of the small photographs that are kept.
SMALL = 320


@dataclass(frozen=True, eq=False)
class Opened:
    """The photographs of a capture that are used."""

    found: Found  #: its files, without those that are left out (see ``found.faults``)
    photographs: PhotographFiles  #: whole, with the movement of the camera undone
    alignment: Alignment  #: how far the camera moved
    small: NDArray[np.float32]  #: (d, h, w) the photographs in gray, linear and at a low resolution

    def balls(self, control: Control = SILENT) -> list[FoundBall]:
        """Balls in the small photographs; searched for once."""
        if "_balls" not in vars(self):
            object.__setattr__(self, "_balls", find_balls(self.small, control=control))
        return list(vars(self)["_balls"])


def open_capture(found: Found, options: ReadOptions, control: Control = SILENT) -> Opened:
    """Open the photographs that a layout found, and look at each of them once.

    An error if one cannot be used and fewer than :data:`FEWEST_LEFT` would be left, or with ``options.strict``.
    """
    found = _complete(with_brackets(found), options, control)
    found = _of_one_size(found, options)
    while True:
        try:
            photographs = open_photographs(found, options)
            break
        except CaptureError as error:
            if len(found.files) <= FEWEST_LEFT or options.strict or error.file != found.files[0]:
                raise
            found = found.without({0: Fault(found.files[0].name, error.code)})
    with photographs.held():  # they are read again for the lights and the solution
        seen = survey(photographs.in_color(False), control)
    bad = {k: Fault(found.files[k].name, error.code) for k, error in seen.errors.items()}
    if bad and (options.strict or len(seen.numbers) < FEWEST_LEFT):
        raise next(iter(seen.errors.values()))
    found, photographs, seen = _leave_out(found, photographs, seen, bad)
    judged = min(seen.pictures.shape[1:]) >= SMALLEST and not {f.name for f in found.files} <= set(
        options.keep
    )
    suspects: dict[int, Fault] = {}
    for number, other in find_duplicates(found.files, photographs.digests).items():
        suspects[number] = Fault(found.files[number].name, "duplicate", found.files[other].name)
    dark = find_dark(seen.pictures) if judged else {}
    suspects |= {k: Fault(found.files[k].name, reason) for k, reason in dark.items() if k not in suspects}
    off = [
        k for k, reason in dark.items() if reason == "light-off" and found.files[k].name not in options.keep
    ]
    if (
        off
        and found.ambient is None
        and options.ambient is None
        and len(found.files) - len(off) >= FEWEST_LEFT
    ):
        photographs = photographs.less_ambient(off[0])
        found = replace(found, ambient=found.files[off[0]])
    found, photographs, seen = _judge(found, photographs, seen, suspects, options)
    blurred = control.aside(partial(find_blurred, seen.pictures)) if judged else []
    suspects = {k: Fault(found.files[k].name, "blurred") for k in blurred}
    found, photographs, seen = _judge(found, photographs, seen, suspects, options)
    small = np.stack([coarse(picture * picture, SMALL) for picture in seen.pictures])
    alignment = find_alignment(seen.pictures, seen.scale, control)
    if options.align == "off":
        alignment = alignment.as_taken()
    odd = np.flatnonzero(alignment.mismatched).tolist()
    suspects = {k: Fault(found.files[k].name, "mismatched") for k in odd}
    every = len(found.files)
    found, photographs, seen = _judge(found, photographs, seen, suspects, options)
    if len(found.files) < every:
        kept = [k for k in range(every) if k not in suspects or suspects[k].file in options.keep]
        alignment, small = alignment.take(kept), small[kept]
    return Opened(found, photographs.moved_back(alignment.corrected), alignment, small)


Parts = tuple[Found, PhotographFiles, Survey]


def _judge(
    found: Found,
    photographs: PhotographFiles,
    seen: Survey,
    suspects: dict[int, Fault],
    options: ReadOptions,
) -> Parts:
    """Leave out what can be used in principle, if enough photographs remain."""
    wanted = {k for k, fault in suspects.items() if fault.file in options.keep}
    used = tuple(replace(suspects[k], used=True, wanted=True) for k in sorted(wanted))
    found = replace(found, faults=(*found.faults, *used))
    suspects = {k: fault for k, fault in suspects.items() if k not in wanted}
    if not suspects:
        return found, photographs, seen
    if options.strict:
        number, fault = next(iter(suspects.items()))
        raise fault.as_error(found.files[number])
    if len(found.files) - len(suspects) >= FEWEST_LEFT:
        return _leave_out(found, photographs, seen, suspects)
    used = tuple(replace(fault, used=True) for fault in suspects.values())
    return replace(found, faults=(*found.faults, *used)), photographs, seen


def _leave_out(found: Found, photographs: PhotographFiles, seen: Survey, faults: dict[int, Fault]) -> Parts:
    if not faults:
        return found, photographs, seen
    kept = [number for number in range(len(found.files)) if number not in faults]
    places = {place for place, number in enumerate(seen.numbers) if number in faults}
    return found.without(faults), photographs.take(kept), seen.without(places)


def _of_one_size(found: Found, options: ReadOptions) -> Found:
    """Without the photographs whose header declares another size than most."""
    frames = [found.heads[file].frame for file in found.files]
    known = Counter(frame for frame in frames if frame is not None)
    if len(known) < 2 or options.strict:
        return found
    usual, count = known.most_common(1)[0]
    if count < FEWEST_LEFT or 2 * count < len(frames):
        return found
    return found.without(
        {
            number: Fault(found.files[number].name, "size-mismatch")
            for number, frame in enumerate(frames)
            if frame not in (None, usual)
        }
    )


def _complete(found: Found, options: ReadOptions, control: Control) -> Found:
    """Without photographs that have no light in the light file because they were taken with the light off."""
    table = found.lights
    missing = 0 if table is None else len(found.files) - len(table.vectors)
    if not 0 < missing <= len(found.files) - FEWEST_LEFT or options.strict:
        return found
    seen = survey(open_photographs(replace(found, lights=None), replace(options, color=False)), control)
    dark = find_dark(seen.pictures) if not seen.errors and min(seen.pictures.shape[1:]) >= SMALLEST else {}
    if len(dark) != missing:
        return found
    kept = found.without({k: Fault(found.files[k].name, reason) for k, reason in dark.items()})
    off = [number for number, reason in dark.items() if reason == "light-off"]
    return replace(kept, lights=table, ambient=kept.ambient or (found.files[off[0]] if off else None))
