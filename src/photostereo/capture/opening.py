"""Reading, stages 1 and 2: list the files of a capture, open its photographs and examine each once.

Unusable photographs are left out, each with its reason, and the movement of the camera is estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.capture import require_count
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.camera import Heads
from photostereo.io.safe import exists
from photostereo.lights.ball.search import FoundBall, find_balls
from photostereo.lights.files.table import LightTable, require_strengths
from photostereo.photographs.alignment.alignment import SMALLEST, Alignment, find_alignment
from photostereo.photographs.alignment.warp import coarse
from photostereo.photographs.brackets import find_brackets, shortest_of
from photostereo.photographs.faults import (
    FEWEST_LEFT,
    Fault,
    find_blurred,
    find_dark,
    find_duplicates,
)
from photostereo.photographs.files import PhotographFiles
from photostereo.photographs.survey import survey


@dataclass(frozen=True, eq=False)
class Found:
    """The files that a layout found in a folder, before any photograph is decoded."""

    path: Path  #: the capture's folder or file
    layout: str  #: the name of the format
    name: str  #: the name of the capture
    files: Sequence[Path]  #: the photographs, in the order of the lights
    #: the light file, in the order of the photographs; None if there is none
    lights: LightTable | None = None
    #: a folder with photographs of a ball under the same lights, if the user gave one
    ball: Path | None = None
    mask_file: Path | None = None  #: the mask picture, or None
    mask_default: str = "full"  #: ``"full"``, ``"auto"`` or ``"bright"``, if there is no mask picture
    gray_limit: float | None = None  #: upper limit of gray intensities, or None
    #: for each known truth of :class:`Capture`, its file and its values
    truths: Mapping[str, tuple[Path, NDArray[Any]]] = field(default_factory=dict)
    expected_bits: int = 0  #: usual bit depth of the layout, or 0; less gives a note
    #: ambient, flat: photographs with the lights off, and of an even surface, or None
    ambient: Path | None = None
    flat: Path | None = None
    #: all exposures of a light, by the one among ``files``, if there are several
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()  #: notes from the layout
    heads: Heads = field(default_factory=Heads)  #: cached file headers
    #: all photographs, if some were removed from ``files`` (see :meth:`without`)
    taken: Sequence[Path] = ()
    faults: tuple[Fault, ...] = ()  #: photographs left out, with reasons

    def without(self, faults: Mapping[int, Fault | str]) -> Found:
        """Leave out photographs and their lights, by index in ``files``; each has a fault, or a string as the reason."""
        kept = [place for place in range(len(self.files)) if place not in faults]
        table = self.lights
        if table is not None and len(table.vectors) == len(self.files):
            table = table.take(kept)
        known = [
            Fault(self.files[place].name, fault) if isinstance(fault, str) else fault
            for place, fault in faults.items()
        ]
        return replace(
            self,
            files=[self.files[place] for place in kept],
            lights=table,
            taken=self.taken or self.files,
            faults=(*self.faults, *known),
        )


def open_photographs(found: Found, options: ReadOptions) -> PhotographFiles:
    """Open the photographs, whole, with the strengths of the light file divided out; decodes the first one."""
    table = found.lights
    require_matching(found, len(found.files) if table is None else len(table.vectors))
    if table is not None and table.intensities is not None:
        require_strengths(table.intensities, table.path)
    return PhotographFiles(
        found.files,
        intensities=None if table is None else table.intensities,
        color=options.color,
        srgb=options.srgb,
        gray_limit=found.gray_limit,
        ambient=options.path_of("ambient") or found.ambient,
        flat=options.path_of("flat") or found.flat,
        brackets=found.brackets,
        heads=found.heads,
        workers=options.workers,
    )


def with_brackets(found: Found) -> Found:
    """Reduce several exposures of a light to one photograph."""
    if found.brackets:
        return found
    table = found.lights
    shots = [found.heads[file] for file in found.files]
    groups = find_brackets(found.files, shots, None if table is None else table.vectors)
    if groups is None:
        return found
    files, brackets = shortest_of(groups, found.files, shots)
    if table is not None and len(table.vectors) == len(found.files):
        table = table.take([group[0] for group in groups])
    return replace(found, files=files, brackets=brackets, lights=table)


def require_matching(found: Found, lights: int) -> None:
    """Check that there are at least three photographs, and one light for each."""
    files, path = found.files, found.path
    require_count(len(files), str(path), path)
    if len(files) != lights:
        assert found.lights is not None
        few = "fewer" if lights < len(files) else "more"
        raise CaptureError(
            f"{found.lights.path} has {lights} lights, {few} than the {len(files)} photographs in {path} (from "
            f"{files[0].name} to {files[-1].name}). Each photograph needs exactly one light, in the same "
            "order: complete the light file, or move pictures that are not photographs of the object out "
            "of the folder. Several exposures of one light are merged if their EXIF data has the exposure times.",
            code="lights-count",
            file=found.lights.path,
            lights=lights,
            photographs=len(files),
        )


def in_folder(folder: Path, name: Path) -> Path:
    """Resolve a file given by the user: unchanged if it exists, else relative to the capture's folder."""
    return name if exists(name) or not exists(folder / name) else folder / name


def finite_or_zero(truth: NDArray[Any]) -> NDArray[np.float32]:
    """Convert truth to float32; NaN and infinite values become zero (unknown)."""
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.asarray(truth, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)


#: Pixels along the longer side of the small photographs.
SMALL = 320


@dataclass(frozen=True, eq=False)
class Opened:
    """The usable photographs of a capture."""

    found: Found  #: the files, without those left out (see ``found.faults``)
    photographs: PhotographFiles  #: whole, with the movement of the camera undone
    alignment: Alignment  #: how far the camera moved
    small: NDArray[np.float32]  #: (d, h, w) the photographs in gray, linear and at a low resolution

    def balls(self, control: Control = SILENT) -> list[FoundBall]:
        """Balls in the small photographs; the search runs once."""
        if "_balls" not in vars(self):
            object.__setattr__(self, "_balls", find_balls(self.small, control=control))
        return list(vars(self)["_balls"])


def open_capture(found: Found, options: ReadOptions, control: Control = SILENT) -> Opened:
    """Open the photographs that a layout found, and examine each of them once.

    Raise an error if a photograph is unusable and fewer than :data:`FEWEST_LEFT` would be left, or with ``options.strict``.
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
            found = found.without({0: error.code})
    with photographs.held():  # read again for the lights and by the solver
        seen = survey(photographs.in_color(False), control)
    if seen.errors:
        if options.strict or len(seen.pictures) < FEWEST_LEFT:
            raise next(iter(seen.errors.values()))
        photographs = photographs.take([k for k in range(len(found.files)) if k not in seen.errors])
        found = found.without({k: error.code for k, error in seen.errors.items()})
    look = _Look(found, photographs, seen.pictures, options)
    every_kept = {file.name for file in found.files} <= set(options.keep)
    judged = min(seen.pictures.shape[1:]) >= SMALLEST and not every_kept
    copies = find_duplicates(found.files, photographs.digests)
    dark = find_dark(look.pictures) if judged else {}
    look.subtract_ambient([k for k, reason in dark.items() if reason == "light-off"])
    look.judge({**dark, **dict.fromkeys(copies, "duplicate")}, copies)
    if judged:
        blurred = control.aside(partial(find_blurred, look.pictures))
        look.judge(dict.fromkeys(blurred, "blurred"))
    small = np.stack([coarse(picture * picture, SMALL) for picture in look.pictures])
    alignment = find_alignment(look.pictures, seen.scale, control)
    if options.align == "off":
        alignment = alignment.as_taken()
    kept = look.judge(dict.fromkeys(np.flatnonzero(alignment.mismatched).tolist(), "mismatched"))
    alignment = alignment.take(kept)
    return Opened(look.found, look.photographs.moved_back(alignment.corrected), alignment, small[kept])


@dataclass
class _Look:
    """Photographs under examination, without those found to be unusable."""

    found: Found
    photographs: PhotographFiles
    pictures: NDArray[np.float32]
    options: ReadOptions

    def judge(
        self, reasons: Mapping[int, str], copies: Mapping[int, int] = MappingProxyType({})
    ) -> list[int]:
        """Leave out these photographs if enough others remain; return the indices of the remaining ones."""
        files, keep = self.found.files, self.options.keep
        others = {k: files[original].name for k, original in copies.items()}
        faults = {k: Fault(files[k].name, reason, others.get(k, "")) for k, reason in reasons.items()}
        used = [replace(fault, used=True, wanted=True) for fault in faults.values() if fault.file in keep]
        bad = {k: fault for k, fault in faults.items() if fault.file not in keep}
        if bad and self.options.strict:
            number, fault = next(iter(bad.items()))
            raise fault.as_error(files[number])
        if len(files) - len(bad) < FEWEST_LEFT:
            used += [replace(fault, used=True) for fault in bad.values()]
            bad = {}
        kept = [number for number in range(len(files)) if number not in bad]
        self.found = replace(self.found, faults=(*self.found.faults, *used)).without(bad)
        self.photographs, self.pictures = self.photographs.take(kept), self.pictures[kept]
        return kept

    def subtract_ambient(self, off: Sequence[int]) -> None:
        """Subtract the first photograph taken with the light off, unless an ambient photograph is already known."""
        off = [k for k in off if self.found.files[k].name not in self.options.keep]
        known = self.found.ambient is not None or self.options.ambient is not None
        if off and not known and len(self.found.files) - len(off) >= FEWEST_LEFT:
            self.photographs = self.photographs.less_ambient(off[0])
            self.found = replace(self.found, ambient=self.found.files[off[0]])


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


def _complete(found: Found, options: ReadOptions, control: Control) -> Found:
    """Leave out photographs that have no light in the light file because they were taken with the light off."""
    table = found.lights
    missing = 0 if table is None else len(found.files) - len(table.vectors)
    if not 0 < missing <= len(found.files) - FEWEST_LEFT or options.strict:
        return found
    seen = survey(open_photographs(replace(found, lights=None), replace(options, color=False)), control)
    dark = find_dark(seen.pictures) if not seen.errors and min(seen.pictures.shape[1:]) >= SMALLEST else {}
    if len(dark) != missing:
        return found
    kept = found.without(dark)
    off = [found.files[number] for number, reason in dark.items() if reason == "light-off"]
    return replace(kept, lights=table, ambient=kept.ambient or next(iter(off), None))
