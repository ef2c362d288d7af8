"""The ledger of a batch: a row in SQLite and a line of JSON for every capture, written the moment it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.batch.database import Database
from photostereo.batch.find import Item

_SCHEMA = """
CREATE TABLE IF NOT EXISTS captures (
    name TEXT PRIMARY KEY, path TEXT NOT NULL, key TEXT NOT NULL,
    status TEXT NOT NULL, error TEXT, code TEXT, seconds REAL,
    figures TEXT NOT NULL, warnings TEXT NOT NULL, finished TEXT NOT NULL
);
"""
_COLUMNS = ("name", "path", "key", "status", "error", "code", "seconds", "figures", "warnings", "finished")


@dataclass(frozen=True)
class Outcome:
    """What a worker reports of one capture; plain data.

    Attributes
    ----------
    status : ``"done"`` or ``"failed"``
    error, code : what went wrong in words, and its kind
    seconds : wall-clock time, reading and writing included
    figures : numbers that need no truth, and the error where there is truth
    warnings : what the user should know
    """

    status: str
    error: str | None = None
    code: str | None = None
    seconds: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Ledger:
    """``batch.sqlite`` and ``batch.jsonl`` in the folder of a batch."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path, self.lines = self.folder / "batch.sqlite", self.folder / "batch.jsonl"
        self._database = Database(self.path, _SCHEMA, "ledger")

    def write(self, item: Item, key: str, outcome: Outcome) -> None:
        """One row in place of an older one of that capture, and one more line."""
        facts = asdict(outcome)
        values: dict[str, Any] = {
            "name": item.name,
            "path": str(item.path),
            "key": key,
            **facts,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        line = json.dumps({name: values[name] for name in _COLUMNS}, allow_nan=False, ensure_ascii=False)
        row = {
            name: json.dumps(values[name]) if name in ("figures", "warnings") else values[name]
            for name in _COLUMNS
        }
        self._database.put("captures", row)
        with self.lines.open("a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows by name."""
        rows = [dict(row) for row in self._database.ask("SELECT * FROM captures ORDER BY name")]
        for row in rows:
            row["figures"], row["warnings"] = json.loads(row["figures"]), json.loads(row["warnings"])
        return {row["name"]: row for row in rows}
