"""Read and write the DiLiGenT layout.

    light_directions.txt    d lines x y z
    light_intensities.txt   d lines R G B: each channel of a photograph is divided by its light's strength
    filenames.txt           d file names (if missing: all pictures in natural order)
    mask.png                white on the object
    Normal_gt.mat           true normals, key ``Normal_gt`` (optional)
    Depth_gt.mat            true depth, key ``Depth_gt`` (optional, photostereo only)
    Albedo_gt.mat           true albedo, key ``Albedo_gt`` (optional, photostereo only)
    photostereo.json        written by photostereo: do not clip intensities

The benchmark's published figures come from gray intensities clipped to at most 1 after the division, and the
clip matters: without it least squares gives 4.17 instead of 4.10 degrees on ball and 19.94 instead of 19.80
on reading (the other shared objects have no such values). So the reader clips, unless
``photostereo.json`` says that larger values are valid, as in captures with noise.

References
----------
B. Shi et al., "A Benchmark Dataset and Evaluation for Non-Lambertian and Uncalibrated Photometric Stereo",
2019. doi:10.1109/TPAMI.2018.2799222
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.capture import Capture
from photostereo.capture.layouts import finite_or_zero, read_table
from photostereo.capture.layouts.folder import photographs_and_mask
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.conventions import Float32
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, sentences
from photostereo.io.atomic import replacing_directory, replacing_file, write_json, write_text
from photostereo.io.png import write_photographs, write_png
from photostereo.io.safe import read_json, read_mat, read_text, unreadable_file
from photostereo.lights.files.numbers import base_name, content_lines
from photostereo.lights.files.reading import read_intensities

LAYOUT = "DiLiGenT"

_DIRECTIONS, _INTENSITIES, _NAMES = "light_directions.txt", "light_intensities.txt", "filenames.txt"
_SIDECAR = "photostereo.json"
_TRUTHS = {"truth": "Normal_gt", "truth_depth": "Depth_gt", "truth_albedo": "Albedo_gt"}


def recognizes(path: Path) -> bool:
    """A folder with light directions and with intensities or a list of file names."""
    return (path / _DIRECTIONS).is_file() and (
        (path / _INTENSITIES).is_file() or (path / _NAMES).is_file()
    )


def find(path: Path, options: ReadOptions) -> Source:
    """List the contents of the folder without decoding any photograph."""
    sidecar = _read_sidecar(path / _SIDECAR)
    files = _photographs(path)
    table = read_table(path, options, files, path / _DIRECTIONS).in_order_of(files)
    strengths = path / _INTENSITIES
    given = table.intensities if options.lights else None
    if given is None and not strengths.is_file():
        raise CaptureError(
            f"{path} looks like the DiLiGenT layout but has no {_INTENSITIES}. Add it (one line "
            f"R G B per light); if all lights are equally strong, rename {_DIRECTIONS} to "
            "lights.txt, so that the folder is read as a plain one.",
            code="no-strengths",
            file=strengths,
            path=path,
        )
    given = read_intensities(strengths, len(files)) if given is None else given
    mask = path / "mask.png"
    stored = {label: (path / f"{key}.mat", key) for label, key in _TRUTHS.items()}
    return Source(
        path=path,
        layout=LAYOUT,
        name=str(sidecar.get("name") or path.name.removesuffix("PNG") or path.name),
        files=files,
        lights=replace(table, intensities=given),
        mask=mask if mask.is_file() else None,
        gray_limit=1.0 if sidecar.get("clip_gray", True) else None,
        truths={
            name: (file, _read_mat(file, key))
            for name, (file, key) in stored.items()
            if file.is_file()
        },
        expected_bits=16,
        notes=tuple(Finding("note", note=note) for note in sidecar.get("notes", ())),
    )


def write_diligent(
    capture: Capture,
    directory: str | os.PathLike[str],
    *,
    force: bool = False,
    keep: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Write a capture in the DiLiGenT layout with 16-bit RGB PNG files; reading it restores the capture.

    One exposure for the whole capture maps its largest value to the 16-bit full scale; it is stored in
    ``light_intensities.txt``, so the division on reading restores each value to within half a step,
    ``capture.images.max() / 131070``, also above 1. Negative values cannot be stored and become 0, which
    is noted in the folder. A gray capture gets three equal channels.
    """
    from scipy.io import savemat

    top = float(capture.images.max())
    exposure = 1.0 / top if top > 0 else 1.0
    notes = list(capture.origin.notes) if capture.origin is not None else []
    negative = sum(int((image < 0).sum()) for image in capture.images)
    if negative:
        share = 100 * negative / capture.images.size
        notes.append(Finding("negative-intensities", count=negative, share=share))
    digits = max(3, len(str(len(capture))))
    names = [f"{number:0{digits}d}.png" for number in range(1, len(capture) + 1)]
    with replacing_directory(directory, force=force, keep=keep) as folder:
        write_photographs(capture.images, [folder / name for name in names], exposure)
        write_png(folder / "mask.png", capture.mask.astype(np.uint8) * np.uint8(255))
        _write_table(folder / _DIRECTIONS, capture.lights.directions)
        _write_table(folder / _INTENSITIES, np.full((len(capture), 3), exposure))
        write_text(folder / _NAMES, "\n".join(names) + "\n")
        for label, key in _TRUTHS.items():
            truth = getattr(capture, label)
            if truth is not None:
                with replacing_file(folder / f"{key}.mat") as partial:
                    savemat(partial, {key: truth}, do_compression=True)
        sidecar = {
            "format": "photostereo capture",
            "name": capture.name,
            "clip_gray": False,
            "notes": sentences(notes),
        }
        write_json(folder / _SIDECAR, sidecar)
    return Path(directory)


def _photographs(path: Path) -> list[Path]:
    names = path / _NAMES
    if names.is_file():
        return [
            path / base_name(line)
            for line in content_lines(read_text(names, "list of photographs"))
        ]
    return photographs_and_mask(path)[0]


def _read_sidecar(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content = read_json(path, "capture description", remedy="Restore it, or remove it.")
    if not isinstance(content, dict) or not isinstance(content.get("notes", []), list):
        raise CaptureError(
            f'{path} does not describe a capture: expected {{"name": ..., "notes": [...]}}. '
            "Restore it, or remove it.",
            code="bad-sidecar",
            file=path,
        )
    return content


def _read_mat(path: Path, key: str) -> Float32:
    remedy = (
        f"Save the truth as {key} in a MATLAB file of version 5 to 7 (not 7.3), or remove the file."
    )
    arrays = read_mat(path, "truth", remedy=remedy)
    if key not in arrays:
        problem = f"it has no numbers named {key}, only {', '.join(arrays) or 'nothing'}"
        raise unreadable_file(path, "truth", remedy, problem)
    return finite_or_zero(arrays[key])


def _write_table(path: Path, values: NDArray[Any]) -> None:
    """Write numbers with 17 digits, which restore the same float64."""
    with replacing_file(path) as partial:
        np.savetxt(partial, values, fmt="%.17g")
