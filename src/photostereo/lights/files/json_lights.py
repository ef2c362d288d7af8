"""JSON: a list of lights, with files, directions or positions, and strengths; also Meshroom's.

The lights are a list of ``[x, y, z]``, or ``{"lights": [...], "intensities": [...]}``, with a ``"unit"`` for positions.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.units import PixelSize
from photostereo.io.safe import read_json
from photostereo.lights.files.format import LightFileError, LightFormat
from photostereo.lights.files.numbers import base_name
from photostereo.lights.files.table import LightTable

_JSON = (
    'expected {"lights": [{"file": "a.png", "direction": [x, y, z], "intensity": 1}, ...]} '
    "or a list of [x, y, z]"
)


def read(path: Path, count: int | None = None) -> LightTable:
    """Read a JSON file."""
    data = read_json(path, "light file", remedy=_JSON[0].upper() + _JSON[1:] + ".")
    about = data if isinstance(data, dict) else {"lights": data}
    try:
        lights = about["lights"]
        strengths = about.get("intensities")
        if not lights:
            raise LightFileError("light-file-empty", f"contains no lights; {_JSON}.")
        if not isinstance(lights[0], dict):
            rows = np.array(lights, dtype=np.float64)
            lights = [
                {"direction": row} for row in (rows.T if len(rows) == 3 != rows.shape[1] else rows)
            ]
        first = lights[0]
        if "file" in first:
            files = tuple(base_name(str(entry["file"])) for entry in lights)
        else:
            files = None
        if "intensity" in first:
            strengths = [entry["intensity"] for entry in lights]
        key = "position" if "position" in first and "direction" not in first else "direction"
        signs = np.ones(3)
        if (
            "viewId" in first or "lightId" in first
        ):  # Meshroom: y points down, z away from the camera
            signs = np.array([1.0, -1.0, -1.0])
            kinds = {str(entry.get("type", "directional")) for entry in lights}
            if any(kind.lower() != "directional" for kind in kinds):
                other = f"contains lights of other types ({', '.join(kinds)})"
                raise LightFileError(
                    "light-file-type", f"{other}; only directional ones can be used."
                )
        vectors = signs * np.array([entry[key] for entry in lights], dtype=np.float64)
        intensities = None if strengths is None else np.array(strengths, dtype=np.float64)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise LightFileError(
            "light-file-shape", f"does not describe lights ({error!r}); {_JSON}."
        ) from error
    fits = intensities is None or intensities.shape in ((len(vectors),), (len(vectors), 3))
    if vectors.ndim != 2 or vectors.shape[1] != 3 or not fits:
        raise LightFileError(
            "light-file-shape", f"has directions or intensities of uneven shape; {_JSON}."
        )
    table = LightTable(path, np.ascontiguousarray(vectors), intensities, files)
    if key == "direction":
        return table
    unit = about.get("unit", "mm")
    pixel_size = about.get("pixel_size")
    try:
        scale = PixelSize.of(f"1{unit}").millimeters
        size = None if pixel_size is None else PixelSize.of(pixel_size).millimeters
    except ParameterError as error:
        raise CaptureError(f"{path}: {error}", code="light-units", file=path, unit=unit) from error
    return replace(table, positions=scale * table.vectors, unit="mm", pixel_size=size)


JSON = LightFormat(name="JSON", suffixes=(".json",), read=read, names=("lights.json",))
