"""One file per layout of a capture on disk, all behind :func:`photostereo.load`; here is what they share."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import exists
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.options import ReadOptions
from photostereo.core.conventions import Float32
from photostereo.lights.files.reading import read_lights
from photostereo.lights.files.table import LightTable

#: Pictures with this prefix are masks painted in the app, never photographs.
MASK_STEM = "photostereo-mask"


def read_table(
    folder: Path, options: ReadOptions, files: Sequence[Path], default: Path
) -> LightTable:
    """Read the light file that the user chose, else the default; it need not have the order of the photographs."""
    chosen = options.path_of("lights")
    file = default if chosen is None else in_folder(folder, chosen)
    return read_lights(file, count=len(files)).naming(files)


def in_folder(folder: Path, name: Path) -> Path:
    """Resolve a file given by the user: unchanged if it exists, else relative to the capture's folder."""
    if exists(name) or not exists(folder / name):
        return name
    return folder / name


def finite_or_zero(truth: NDArray[Any]) -> Float32:
    """Convert truth to float32; NaN and infinite values become zero (unknown)."""
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.asarray(truth, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
