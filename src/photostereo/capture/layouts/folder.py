"""A plain folder: photographs and a light file, as anyone with a camera and a light can make it; or photographs alone,
with a ball in the frame or in a folder nearby.

======================================  ======================================================================
``*.png``, ``*.tif``, ``*.jpg``, ...    the photographs, in natural order of their names
``lights.csv | .txt | .json``           a direction for each, perhaps a strength (:mod:`photostereo.lights.files.reading`)
``intensities.txt | .csv``              strengths in a file of their own (optional)
``ambient.*``, ``flat.*``               with the lights off; of an even surface (optional)
``mask.png``                            white on the object (optional; by default the full frame)
======================================  ======================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from photostereo.capture.edits import MASK_STEM
from photostereo.capture.opening import Found, in_folder, require_matching
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.images import list_images
from photostereo.lights.files.reading import read_intensities, read_lights

LAYOUT = "folder"
EXPECTS = "a plain folder: photographs with lights.csv, lights.txt or lights.json (and perhaps mask.png)"

#: The same without a light file.
LAYOUT_ALONE = "photographs with a ball"
EXPECTS_ALONE = "photographs alone, with a ball beside the object or photographed under the same lights"

LIGHT_FILES = ("lights.csv", "lights.txt", "lights.json", "light_directions.txt")
_STRENGTH_FILES = ("intensities.csv", "intensities.txt", "light_intensities.txt")
#: Pictures with these names are results or truth, not photographs.
_NOT_PHOTOGRAPHS = frozenset({"mask", "ambient", "flat", "normal_gt", "normals", "albedo", "depth"})


def recognizes(path: Path) -> bool:
    """A folder with a light file of one of the known names."""
    return path.is_dir() and any((path / name).is_file() for name in LIGHT_FILES)


def photographs_and_mask(path: Path) -> tuple[list[Path], Path | None]:
    """The photographs in natural order, and the mask picture if there is one."""
    pictures = list_images(path)
    masks = [
        file
        for file in pictures
        if file.stem.casefold() == "mask" or file.stem.casefold().endswith((".mask", "_mask"))
    ]
    if len(masks) > 1:
        names = ", ".join(file.name for file in masks)
        raise CaptureError(code="several-masks", file=path, names=names)
    skip = _NOT_PHOTOGRAPHS
    photographs = [file for file in pictures if file not in masks and file.stem.casefold() not in skip]
    photographs = [file for file in photographs if not file.stem.startswith(MASK_STEM)]
    return photographs, masks[0] if masks else None


def ambient_and_flat(path: Path) -> tuple[Path | None, Path | None]:
    """``ambient.*``, taken with the lights off, and ``flat.*``, of an even surface, if they are in a folder."""
    named = {file.stem.casefold(): file for file in list_images(path)}
    return named.get("ambient"), named.get("flat")


def find(path: Path, options: ReadOptions) -> Found:
    """What lies in the folder, before any photograph is decoded."""
    files, mask = photographs_and_mask(path)
    chosen = options.path_of("lights")
    present = [path / name for name in LIGHT_FILES if (path / name).is_file()]
    source = in_folder(path, chosen) if chosen else present[0]
    table = read_lights(source, count=len(files)).naming(files)
    if table.files is not None:  # its order counts
        require_matching(Found(path, LAYOUT, path.name, files, table), len(table.vectors))
        by_name = {file.name.casefold(): file for file in files}
        files = [by_name[name.casefold()] for name in table.files]
    notes = list(table.length_note() if table.positions is None and options.pixel_size is None else ())
    if chosen is None and len(present) > 1:
        notes.append(
            Finding(
                "several-light-files", used=source.name, others=", ".join(file.name for file in present[1:])
            )
        )
    intensities = table.intensities
    strengths = next((path / name for name in _STRENGTH_FILES if (path / name).is_file()), None)
    if intensities is None and strengths is not None:
        intensities = read_intensities(strengths, len(table.vectors))
    elif intensities is None:
        notes.append(Finding("no-light-strengths"))
    if intensities is not None:
        # Only ratios between lights matter; a scale such as watts would make the albedo unreadable.
        mean = float(np.mean(intensities))
        if not 0.1 < mean < 10:
            intensities = intensities / mean
            notes.append(Finding("light-strengths-scaled", mean=mean))
    ambient, flat = ambient_and_flat(path)
    return Found(
        ambient=ambient,
        flat=flat,
        path=path,
        layout=LAYOUT,
        name=path.name,
        files=files,
        lights=replace(
            table,
            intensities=intensities,
            # Those of another capture's file stand elsewhere.
            balls=table.balls if source.resolve().parent == path.resolve() else (),
        ),
        mask_file=mask,
        notes=tuple(notes),
    )


def find_alone(path: Path, options: ReadOptions) -> Found:
    """The photographs in a folder without a light file, or in its ``Objects/``."""
    inside = path / "Objects"
    place = inside if inside.is_dir() and not photographs_and_mask(path)[0] else path
    files, mask = photographs_and_mask(place)
    ambient, flat = ambient_and_flat(place)
    return Found(
        path=path,
        layout=LAYOUT_ALONE,
        name=path.resolve().name,
        files=files,
        ball=options.path_of("ball"),
        mask_file=mask,
        mask_default="auto",
        ambient=ambient,
        flat=flat,
    )


#: Folders in which people put the photographs of their ball: chrome/, LightProbe-1/, gray/, black-ball/ ...
_LOOK, _BALL = (
    "(chrome|mirror|silver|steel|shiny|black|matte|matt|gr[ae]y|white)",
    "(ball|sphere|light[-_ ]?probe|probe|calibration)",
)
_NAME = re.compile(rf"({_LOOK}[-_ ]?{_BALL}?|{_BALL})s?[-_ ]?\d*$", re.IGNORECASE)


def is_ball_series(folder: Path) -> bool:
    """Whether a folder's name suggests photographs of a ball."""
    return _NAME.match(folder.resolve().name) is not None


def find_ball_series(capture: Path, photographs: Sequence[Path]) -> list[Path]:
    """Folders in or beside a capture whose name suggests a ball and that have a photograph for each of these.

    >>> [bool(_NAME.match(name)) for name in ("chrome", "LightProbe-1", "black ball", "cat", "ballPNG", "12", "s1")]
    [True, True, True, False, False, False, False]
    """
    found = []
    for parent in dict.fromkeys((capture, capture.resolve().parent)):
        for folder in sorted(entry for entry in parent.iterdir() if entry.is_dir()):
            own = folder.resolve() == photographs[0].resolve().parent
            if own or not is_ball_series(folder):
                continue
            try:
                pair_photographs(photographs, photographs_and_mask(folder)[0], folder)
            except CaptureError:
                continue
            found.append(folder)
        if found:
            return found
    return found


def pair_photographs(photographs: Sequence[Path], others: Sequence[Path], folder: Path) -> list[Path]:
    """For each photograph the one in ``folder`` under the same light: by name, by number, or by order.

    >>> cat, ball = [Path("cat.0.png"), Path("cat.1.png")], [Path("ref.jpg"), Path("b0.jpg"), Path("b1.jpg")]
    >>> [file.name for file in pair_photographs(cat, ball, Path("chrome"))]
    ['b0.jpg', 'b1.jpg']
    """
    by_stem = {file.stem.casefold(): file for file in others}
    if all(file.stem.casefold() in by_stem for file in photographs):
        return [by_stem[file.stem.casefold()] for file in photographs]
    by_number = {number: file for file in others if (number := _number(file)) is not None}
    wanted = [_number(file) for file in photographs]
    if (
        None not in wanted
        and len(set(wanted)) == len(wanted)
        and all(number in by_number for number in wanted)
    ):
        return [by_number[number] for number in wanted if number is not None]
    if len(others) == len(photographs):
        return list(others)
    raise CaptureError(code="ball-series-count", file=folder, found=len(others), expected=len(photographs))


def _number(file: Path) -> int | None:
    digits = re.findall(r"\d+", file.stem)
    return int(digits[-1]) if digits else None
