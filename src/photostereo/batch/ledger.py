"""The ledger of a batch: a row in SQLite and a line of JSON for every capture, written when its job ends.

Every row is a separate transaction, so a killed run loses only running jobs, and two runs may share a ledger.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.batch.find import as_text
from photostereo.core.errors import OutputError
from photostereo.io.schema import NUMBER, check_facts

#: Columns and their types; those with a question mark may be empty.
_ROW = {
    "name": str,
    "path": str,
    "key": str,
    "status": str,
    "error?": str,
    "code?": str,
    "seconds?": NUMBER,
    "figures": {str: NUMBER},
    "warnings": [str],
    "finished": str,
    "warning_codes": [str],
}
_COLUMNS = [name.removesuffix("?") for name in _ROW]
#: Columns that hold JSON.
_AS_JSON = ("figures", "warnings", "warning_codes")
#: Seconds that a writer waits for another one; a write takes milliseconds.
BUSY_SECONDS = 60.0


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
    warning_codes: tuple[str, ...] = ()  #: their codes, in the same order


def failure(words: str, code: str) -> Outcome:
    """Return the outcome of a capture that failed."""
    return Outcome("failed", words, code)


class Ledger:
    """``batch.sqlite`` and ``batch.jsonl`` in the folder of a batch."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "batch.sqlite"
        self.lines = self.folder / "batch.jsonl"
        for path in (self.path, self.lines):
            if path.exists() and not path.is_file():  # a pipe would never end
                raise OutputError(f"{path} is not a file. Remove it.", code="not-a-file", file=path)
        with self._open() as database:
            columns = ", ".join(_COLUMNS)
            database.execute(f"CREATE TABLE IF NOT EXISTS captures ({columns}, PRIMARY KEY (name))")
            present = {row["name"] for row in database.execute("PRAGMA table_info(captures)")}
            if "warning_codes" not in present:  # a ledger of an earlier version
                database.execute("ALTER TABLE captures ADD COLUMN warning_codes DEFAULT '[]'")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction; a full disk or a damaged file is an :class:`OutputError`."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as database, database:
                database.row_factory = sqlite3.Row
                yield database
        except (
            OSError,
            sqlite3.Error,
            ValueError,
            TypeError,
            LookupError,
            RecursionError,
        ) as problem:
            raise OutputError(
                f"The records in {self.path} cannot be read or written ({problem}). Check the "
                "free disk space and the permissions; if the file is damaged, remove it to start "
                "over.",
                code="database",
                file=self.path,
                problem=str(problem),
            ) from None

    def write(self, name: str, path: Path, key: str, outcome: Outcome) -> None:
        """Write a row, replacing an older one of that capture, and append a line."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        values = {
            "name": name,
            "path": as_text(path),
            "key": key,
            **asdict(outcome),
            "finished": now,
        }
        line = json.dumps(values, allow_nan=False, ensure_ascii=False) + "\n"
        stored = values | {name: json.dumps(values[name]) for name in _AS_JSON}
        for name, value in stored.items():
            if isinstance(value, str):
                stored[name] = as_text(value)
        marks = ", ".join(f":{name}" for name in _COLUMNS)
        with self._open() as database:
            database.execute(f"INSERT OR REPLACE INTO captures VALUES ({marks})", stored)
            with self.lines.open("a", encoding="utf-8", errors="replace") as file:
                file.write(line)

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows by name."""
        with self._open() as database:
            rows = [dict(row) for row in database.execute("SELECT * FROM captures ORDER BY name")]
            for row in rows:
                row |= {name: json.loads(row[name]) for name in _AS_JSON}
                check_facts(row, _ROW, ValueError)
        return {row["name"]: row for row in rows}
