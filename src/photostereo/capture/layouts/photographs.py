"""A folder of photographs without a light file: the lights are found from a ball, in the frame or in a folder nearby."""

from __future__ import annotations

from pathlib import Path

from photostereo.capture.found import Found
from photostereo.capture.layouts.folder import ambient_and_flat, photographs_and_mask
from photostereo.capture.options import ReadOptions

LAYOUT = "photographs with a ball"
EXPECTS = "photographs alone, with a ball beside the object or photographed under the same lights"


def find(path: Path, options: ReadOptions) -> Found:
    """The photographs in a folder, or in its ``Objects/``."""
    inside = path / "Objects"
    place = inside if inside.is_dir() and not photographs_and_mask(path)[0] else path
    files, mask = photographs_and_mask(place)
    ambient, flat = ambient_and_flat(place)
    return Found(
        path=path,
        layout=LAYOUT,
        name=path.resolve().name,
        files=files,
        mask_file=mask,
        mask_default="auto",
        ambient=ambient,
        flat=flat,
    )
