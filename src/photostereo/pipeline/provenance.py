"""Everything needed to repeat a result: the exact input, byte by byte, and the command."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.pipeline.settings import Settings


def provenance(
    capture: Capture,
    path: Path,
    settings: Settings,
    digests: Mapping[Path, str],
    command: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Describe the input of a solve for ``summary.json``: command, path, layout, reading options, mask and lights with
    their digests, the random choice of photographs, and name and SHA-256 of each photograph used.

    Only files without an entry in ``digests`` are read.
    """
    origin = capture.origin
    place = path.absolute()
    names = origin.files if origin is not None else ()
    root = origin.path if origin is not None else place
    words = ["photostereo", *sys.argv[1:]] if command is None else list(command)
    return {
        "command": shlex.join(words),
        "path": str(place),
        "layout": origin.layout if origin is not None else "in memory",
        "reading": {
            name: _plain(value) for name, value in vars(settings.reading).items() if name != "workers"
        },
        "mask": {"pixels": capture.pixel_count, "sha256": _array_digest(capture.mask)},
        "lights": {"count": len(capture), "sha256": _array_digest(capture.lights.directions)},
        "images": settings.images,
        "seed": settings.seed,
        "photographs": _photographs(root, names, digests),
    }


def _photographs(root: Path, names: Sequence[str], digests: Mapping[Path, str]) -> list[dict[str, Any]]:
    if root.is_file() and not any((root.parent / name).is_file() for name in names):
        # An archive contains the photographs.
        return [{"file": root.name, "sha256": file_digest(root), "photographs": list(names)}]
    folder = root if root.is_dir() else root.parent
    paths = [folder / name for name in names]
    return [{"file": path.name, "sha256": digests.get(path) or file_digest(path)} for path in paths]


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file in hexadecimal digits; None if it cannot be read (any longer)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _array_digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
