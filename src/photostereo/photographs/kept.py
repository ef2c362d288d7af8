"""Decoded photographs that wait for their next reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from photostereo.io.spool import Spool, Spooled


@dataclass
class Kept:
    """Photographs that have been decoded: some until they are used, and those in a temporary file."""

    first: dict[Path, NDArray[Any]]
    spool: Spool | None = None
    places: dict[Path, Spooled] = field(default_factory=dict)
    holds: bool = False

    def __reduce__(self) -> Any:  # another process decodes for itself
        return Kept, ({},)
