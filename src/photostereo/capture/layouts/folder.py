"""A plain folder: photographs and a light file, as anyone with a camera and a light can make it.

======================================  ======================================================================
``*.png``, ``*.tif``, ``*.jpg``, ...    the photographs, in natural order of their names
``lights.csv | .txt | .json``           a direction for each, perhaps a strength (:mod:`photostereo.lights.files.reading`)
``intensities.txt | .csv``              strengths in a file of their own (optional)
``ambient.*``, ``flat.*``               with the lights off; of an even surface (optional)
``mask.png``                            white on the object (optional; by default the full frame)
======================================  ======================================================================
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from photostereo.capture.edits import MASK_STEM
from photostereo.capture.found import Found, in_folder, require_matching
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.io.images import list_images
from photostereo.lights.files.reading import read_intensities, read_lights

LAYOUT = "folder"
EXPECTS = "a plain folder: photographs with lights.csv, lights.txt or lights.json (and perhaps mask.png)"

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
        raise CaptureError(
            f"{path} has several masks: {names}. Keep one, named mask.png.", code="several-masks", file=path
        )
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
            f"several light files: {source.name} is used, {', '.join(p.name for p in present[1:])} not"
        )
    intensities = table.intensities
    strengths = next((path / name for name in _STRENGTH_FILES if (path / name).is_file()), None)
    if intensities is None and strengths is not None:
        intensities = read_intensities(strengths, len(table.vectors))
    elif intensities is None:
        notes.append("no light strengths: all lights are assumed to be equally strong")
    if intensities is not None:
        # Only ratios between lights matter; a scale such as watts would make the albedo unreadable.
        mean = float(np.mean(intensities))
        if not 0.1 < mean < 10:
            intensities = intensities / mean
            notes.append(f"light strengths were divided by their mean, {mean:.4g}")
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
