"""The ledger of a batch: a row in SQLite and a line of JSON for every capture, written the moment it ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.batch.find import Item
from photostereo.errors import OutputError
from photostereo.jobs.store import BUSY_SECONDS

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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._connection() as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as problem:
            raise OutputError(
                f"The ledger cannot be kept in {self.path} ({problem}). Choose a folder on a local disk where you "
                "may write, or remove the file if it is damaged."
            ) from None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as database:
            database.row_factory = sqlite3.Row
            with database:
                yield database

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
        row = [
            json.dumps(values[name]) if name in ("figures", "warnings") else values[name] for name in _COLUMNS
        ]
        marks = ", ".join("?" * len(_COLUMNS))
        with self._connection() as database:
            database.execute(f"INSERT OR REPLACE INTO captures ({', '.join(_COLUMNS)}) VALUES ({marks})", row)
        with self.lines.open("a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows by name."""
        with self._connection() as database:
            found = database.execute("SELECT * FROM captures ORDER BY name").fetchall()
        rows = [dict(row) for row in found]
        for row in rows:
            row["figures"], row["warnings"] = json.loads(row["figures"]), json.loads(row["warnings"])
        return {row["name"]: row for row in rows}
