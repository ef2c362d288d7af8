"""Identify captures and settings by their content, so that finished work is recognized and not repeated."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from photostereo.core.errors import CaptureError

#: Single-file captures up to this size are identified by their content, larger ones by their size.
HASHED_BYTES = 256 * 2**20


def canonical_json(value: Any) -> str:
    """Return the same text for equal values: sorted keys, no spaces, no NaN.

    >>> canonical_json({"b": 1.0, "a": (1, 2)})
    '{"a":[1,2],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(path: Path) -> str:
    """Return sixteen digits from the names and sizes of the files in a folder, or from the content of a single file."""
    state = hashlib.blake2b(digest_size=8)
    try:
        if path.is_file():
            size = path.stat().st_size
            state.update(path.read_bytes() if size <= HASHED_BYTES else os.fsencode(f"{path.name} {size}"))
        else:
            for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
                state.update(os.fsencode(f"{file.relative_to(path).as_posix()} {file.stat().st_size}\n"))
    except OSError as problem:
        raise CaptureError(code="unreadable-capture", file=path, problem=str(problem)) from None
    return state.hexdigest()
