"""A plain folder: photographs and a light file, such as anyone with a camera and a light can make; or photographs alone,
with a ball in the frame or in a folder nearby. ``docs/photographs.md`` describes the files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture.layouts import MASK_STEM, read_table
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.images import list_images
from photostereo.lights.files.reading import light_file_names, read_intensities

LAYOUT = "folder"
#: The same without a light file.
LAYOUT_ALONE = "photographs alone"


_STRENGTH_FILES = ("intensities.csv", "intensities.txt", "light_intensities.txt")
#: Pictures with these names are results or truth, not photographs.
_NOT_PHOTOGRAPHS = frozenset({"mask", "ambient", "flat", "normal_gt", "normals", "albedo", "depth"})


def recognizes(path: Path) -> bool:
    """A folder with a light file of one of the known names."""
    return path.is_dir() and any((path / name).is_file() for name in light_file_names())


def photographs_and_mask(path: Path) -> tuple[list[Path], Path | None]:
    """Return the photographs in natural order and the mask picture, if there is one."""
    listed = _listed(path)
    return listed["files"], listed["mask"]


def _listed(path: Path) -> dict[str, Any]:
    """Return the pictures in a folder by their role in a :class:`Source`."""
    pictures = {file: file.stem.casefold() for file in list_images(path)}
    masks = [
        file
        for file, stem in pictures.items()
        if stem == "mask" or stem.endswith((".mask", "_mask"))
    ]
    if len(masks) > 1:
        names = ", ".join(file.name for file in masks)
        raise CaptureError(
            f"{path} has several masks: {names}. Keep one, named mask.png.",
            code="several-masks",
            file=path,
            names=names,
        )
    photographs = [
        file
        for file, stem in pictures.items()
        if file not in masks and stem not in _NOT_PHOTOGRAPHS and not stem.startswith(MASK_STEM)
    ]
    named = {stem: file for file, stem in pictures.items()}
    companions = {role: named.get(role) for role in ("ambient", "flat")}
    return {"files": photographs, "mask": next(iter(masks), None), **companions}


def _listed_below(path: Path, options: ReadOptions, light_file: Path) -> dict[str, Any]:
    """Return the pictures in a folder by their role; the photographs may be in a folder inside it, such as ``images/``.

    If several folders have photographs, the light file decides by their names.
    """
    listed = _listed(path)
    if listed["files"]:
        return listed
    inside = [
        below
        for entry in sorted(path.glob("[!.]*/"))
        if not is_ball_series(entry) and (below := _listed(entry))["files"]
    ]
    if len(inside) > 1:
        inside = [below for below in inside if _names(options, path, light_file, below["files"])]
    if len(inside) != 1:
        return listed
    # A mask beside the light file counts as one beside the photographs.
    return {role: listed[role] or found for role, found in inside[0].items()}


def _names(options: ReadOptions, path: Path, light_file: Path, photographs: Sequence[Path]) -> bool:
    """Whether the light file names these photographs, and no others."""
    try:
        table = read_table(path, options, photographs, light_file)
    except CaptureError:
        return False
    return table.files is not None


def find(path: Path, options: ReadOptions) -> Source:
    """List the contents of the folder without decoding any photograph."""
    present = [path / name for name in light_file_names() if (path / name).is_file()]
    default = present[0] if present else path
    listed = _listed_below(path, options, default)
    table = read_table(path, options, listed["files"], default)
    if table.files is not None:  # its order applies
        by_name = {file.name.casefold(): file for file in listed["files"]}
        listed["files"] = [by_name[name.casefold()] for name in table.files]
    notes = list(table.notes)
    if table.positions is None and options.pixel_size is None:
        notes += table.length_note()
    if options.lights is None and len(present) > 1:
        others = ", ".join(file.name for file in present[1:])
        notes.append(Finding("several-light-files", used=table.path.name, others=others))
    intensities = table.intensities
    strengths = next((path / name for name in _STRENGTH_FILES if (path / name).is_file()), None)
    if intensities is None and strengths is not None:
        intensities = read_intensities(strengths, len(table.vectors))
    if intensities is None:
        notes += [Finding("no-light-strengths")] if options.lights_strengths == "given" else []
    elif not 0.1 < (mean := float(np.mean(intensities))) < 10:
        # Only ratios between lights matter; a scale such as watts would make the albedo unreadable.
        intensities = intensities / mean
        notes.append(Finding("light-strengths-scaled", mean=mean))
    # Balls from another capture's light file are elsewhere.
    balls = table.balls if table.path.resolve().parent == path.resolve() else ()
    table = replace(table, intensities=intensities, balls=balls, notes=tuple(notes))
    return Source(path, LAYOUT, path.name, lights=table, **listed)


def find_alone(path: Path, options: ReadOptions) -> Source:
    """Find the photographs in a folder without a light file, or in its ``Objects/``."""
    inside = path / "Objects"
    listed = _listed(path)
    if inside.is_dir() and not listed["files"]:
        listed = _listed(inside)
    ball = options.path_of("ball")
    name = path.resolve().name
    return Source(path, LAYOUT_ALONE, name, ball=ball, mask_default="auto", **listed)


#: Typical names of folders with photographs of a ball: chrome/, LightProbe-1/, gray/, black-ball/, Kugel/, ball-left/ ...
_LOOK = "(chrome|mirror|silver|steel|shiny|black|matte|matt|gr[ae]y|white)"
_BALL = "(ball|sphere|kugel|light[-_ ]?probe|probe|calibration)"
_SIDE = "(left|right|top|bottom|upper|lower|front|back|links|rechts|[a-d])"
_NAME = re.compile(
    rf"({_LOOK}[-_ ]?{_BALL}?|{_BALL})(s|n)?([-_ ]?\d*|[-_ ]{_SIDE})$", re.IGNORECASE
)


def is_ball_series(folder: Path) -> bool:
    """Whether a folder's name suggests photographs of a ball.

    >>> [is_ball_series(Path(name)) for name in ("chrome", "LightProbe-1", "black ball", "Kugel")]
    [True, True, True, True]
    >>> [is_ball_series(Path(name)) for name in ("sphere1", "ball-left", "cat", "ballPNG", "s1")]
    [True, True, False, False, False]
    """
    return _NAME.match(folder.resolve().name) is not None


def find_ball_series(capture: Path, photographs: Sequence[Path]) -> list[Path]:
    """Find folders in or beside a capture that are named like a ball and have a photograph for each of these."""
    own = photographs[0].resolve().parent
    for parent in (capture, capture.resolve().parent):
        found = []
        for folder in sorted(entry for entry in parent.iterdir() if entry.is_dir()):
            if folder.resolve() == own or not is_ball_series(folder):
                continue
            with suppress(CaptureError):
                pair_photographs(photographs, photographs_and_mask(folder)[0], folder)
                found.append(folder)
        if found:
            return found
    return []


def unpaired_ball_series(capture: Path, photographs: Sequence[Path]) -> list[Path]:
    """Find folders in a capture that are named like a ball, but lack a photograph for some of these."""
    paired = find_ball_series(capture, photographs)
    return [
        folder
        for folder in _folders_with_pictures(capture, photographs)
        if is_ball_series(folder) and folder not in paired
    ]


def other_series(capture: Path, photographs: Sequence[Path]) -> list[Path]:
    """Find folders in a capture that are not named like a ball, but have a photograph for each of these."""
    found = []
    for folder in _folders_with_pictures(capture, photographs):
        with suppress(CaptureError):
            pair_photographs(photographs, photographs_and_mask(folder)[0], folder)
            if not is_ball_series(folder):
                found.append(folder)
    return found


def _folders_with_pictures(capture: Path, photographs: Sequence[Path]) -> list[Path]:
    """Return the folders in a capture that have pictures, without that of its photographs."""
    own = photographs[0].resolve().parent
    return [
        folder
        for folder in sorted(capture.glob("[!.]*/"))
        if folder.resolve() != own and list_images(folder)
    ]


def pair_photographs(
    photographs: Sequence[Path], others: Sequence[Path], folder: Path
) -> list[Path]:
    """Find, for each photograph, the one in ``folder`` under the same light: by name, by number, or by order.

    >>> cat, ball = [Path("cat.0.png"), Path("cat.1.png")], [Path("ref.jpg"), Path("b0.jpg"), Path("b1.jpg")]
    >>> [file.name for file in pair_photographs(cat, ball, Path("chrome"))]
    ['b0.jpg', 'b1.jpg']
    """
    for key in (lambda file: file.stem.casefold(), _number):
        known = {key(file): file for file in others}
        wanted = [key(file) for file in photographs]
        if None not in wanted and len(set(wanted)) == len(wanted) and known.keys() >= set(wanted):
            return [known[which] for which in wanted]
    if len(others) == len(photographs):
        return list(others)
    raise CaptureError(
        f"{folder} has {len(others)} photographs of the ball, but there are {len(photographs)} of "
        "the object. Each light needs one of each, with the same number in their names or in the "
        "same order.",
        code="ball-series-count",
        file=folder,
        found=len(others),
        expected=len(photographs),
    )


def _number(file: Path) -> str | None:
    digits = re.findall(r"\d+", file.stem)
    return digits[-1].lstrip("0") if digits else None
