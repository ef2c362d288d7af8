"""The ledger of a batch: a row in SQLite and a line of JSON for every capture, written when its job ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.batch.database import Database
from photostereo.batch.find import Item
from photostereo.core.errors import OutputError
from photostereo.io.schema import NUMBER

_ROW = {
    "name": str, "path": str, "key": str, "status": str, "error?": str, "code?": str, "seconds?": NUMBER,
    "figures": {str: NUMBER}, "warnings": [str], "finished": str,
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a worker reports about one capture; plain data."""

    status: str  #: ``"done"`` or ``"failed"``
    #: error message and its code
    error: str | None = None
    code: str | None = None
    seconds: float | None = None  #: wall-clock time, reading and writing included
    #: numbers by name (see :func:`.worker.figures_of`)
    figures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  #: warnings for the user


def failure(words: str, code: str) -> Outcome:
    """Return the outcome of a capture that failed."""
    return Outcome("failed", words, code)


class Ledger:
    """``batch.sqlite`` and ``batch.jsonl`` in the folder of a batch."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path, self.lines = self.folder / "batch.sqlite", self.folder / "batch.jsonl"
        for path in (self.path, self.lines):
            if path.exists() and not path.is_file():  # a pipe would never end
                raise OutputError(f"{path} is not a file. Remove it.", code="not-a-file", file=path)
        self._database = Database(self.path, {"captures": _ROW}, "records")

    def write(self, item: Item, key: str, outcome: Outcome) -> None:
        """Write a row, replacing an older one of that capture, and append a line."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        values: dict[str, Any] = {
            "name": item.name, "path": item.path_text, "key": key, **asdict(outcome), "finished": now,
        }  # fmt: skip
        self._database.put("captures", values)
        with self._database.explained(), self.lines.open("a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps(values, allow_nan=False, ensure_ascii=False) + "\n")

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows by name."""
        return {row["name"]: row for row in self._database.rows("captures", "ORDER BY name")}
