"""The first two stages of reading: which files make up a capture, and its photographs, opened but not decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.options import ReadOptions
from photostereo.capture.validation import require_count
from photostereo.core.errors import CaptureError
from photostereo.io.camera import Heads
from photostereo.io.safe import exists
from photostereo.lights.files.table import LightTable, require_strengths
from photostereo.photographs.brackets import find_brackets, shortest_of
from photostereo.photographs.faults import Fault
from photostereo.photographs.files import PhotographFiles


@dataclass(frozen=True, eq=False)
class Found:
    """What a layout found in a folder, before any photograph is decoded."""

    path: Path  #: the capture's folder or file
    layout: str  #: the name of the format
    name: str  #: the name of the capture
    files: Sequence[Path]  #: the photographs, in the order of the lights
    #: the light file, in the order of the photographs; None if there is none
    lights: LightTable | None = None
    #: a folder with photographs of a ball under the same lights, if the user named one
    ball: Path | None = None
    mask_file: Path | None = None  #: the mask picture, or None
    mask_default: str = "full"  #: ``"full"``, ``"auto"`` or ``"bright"``, if there is no mask picture
    gray_limit: float | None = None  #: clip gray intensities from above here, or None
    #: for each truth of :class:`Capture` that is known, the file it came from and its values
    truths: Mapping[str, tuple[Path, NDArray[Any]]] = field(default_factory=dict)
    expected_bits: int = 0  #: the bit depth that belongs to the layout, or 0; less than that is noted
    #: ambient, flat: photographs with the lights off, and of an even surface, or None
    ambient: Path | None = None
    flat: Path | None = None
    #: if there are several exposures of a light, all of them for the one among ``files``
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  #: what the layout noticed
    heads: Heads = field(default_factory=Heads)  #: the headers of the files, each read once
    #: all photographs, if some of them are not among ``files`` any more (see :meth:`without`)
    taken: Sequence[Path] = ()
    faults: tuple[Fault, ...] = ()  #: which photographs are left out, and why

    def without(self, faults: Mapping[int, Fault]) -> Found:
        """The same without some of the photographs and their lights, by their place among ``files``."""
        kept = [place for place in range(len(self.files)) if place not in faults]
        table = self.lights
        if table is not None and len(table.vectors) == len(self.files):
            table = table.take(kept)
        return replace(
            self,
            files=[self.files[place] for place in kept],
            lights=table,
            taken=self.taken or self.files,
            faults=(*self.faults, *faults.values()),
        )


def open_photographs(found: Found, options: ReadOptions) -> PhotographFiles:
    """The photographs, whole, with the strengths of the light file divided out; the first one is decoded."""
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
    """One photograph for each light, if there are several exposures of it."""
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


def require_truth_size(truth: NDArray[Any], path: Path, frame: tuple[int, int]) -> None:
    """Check that the truth has the size of the photographs; raises a :class:`CaptureError` ``"truth-size"``."""
    if truth.shape[:2] != tuple(frame):
        raise CaptureError(
            f"The truth in {path} is {' × '.join(map(str, truth.shape[:2]))} pixels (rows × columns) "
            f"but the photographs are {frame[0]} × {frame[1]}. Crop or scale it in the same way as the "
            "photographs, or remove it.",
            code="truth-size",
            file=path,
            found=truth.shape,
            expected=frame,
        )


def in_folder(folder: Path, name: Path) -> Path:
    """A file that the user named: as it stands if it exists, else relative to the capture's folder."""
    return name if exists(name) or not exists(folder / name) else folder / name


def finite_or_zero(truth: NDArray[Any]) -> NDArray[np.float32]:
    """Truth as float32; NaN and infinite values become zero (unknown)."""
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.asarray(truth, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
