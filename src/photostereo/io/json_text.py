"""Strict JSON in UTF-8, which every reader accepts."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(value: Any, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """The value as JSON. NaN and infinity become null."""
    separators = None if indent is not None else (",", ":")
    return json.dumps(
        finite_or_null(value),
        indent=indent,
        ensure_ascii=ascii_only,
        separators=separators,
        allow_nan=False,
    )


def json_bytes(value: Any, *, indent: int | None = 2) -> bytes:
    """The same as a file's content. A lone surrogate (an undecodable file name) is written as JSON's own escape."""
    return (json_text(value, indent=indent) + "\n").encode("utf-8", "backslashreplace")


def finite_or_null(value: Any) -> Any:
    """The same value with None in place of every number that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_or_null(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_null(item) for item in value]
    return value
