"""A table in SQLite that grows row by row: safe to kill, safe to share.

Every write is a transaction of its own in the write-ahead log, so that a killed run loses only what was running. Two
runs may use one file at once: SQLite makes writers wait for each other.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from photostereo.core.errors import OutputError

#: Seconds that a writer waits for another one.
BUSY_SECONDS = 60.0


class Database:
    """A SQLite file and its tables.

    Parameters
    ----------
    path : of the file; its folder is made where it is missing
    schema : SQL that makes the tables where they are missing
    what : the name of its content, for messages

    Raises
    ------
    OutputError
        If it cannot be opened or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> database = Database(Path(tempfile.mkdtemp()) / "a.sqlite", "CREATE TABLE t (x INTEGER PRIMARY KEY, y);", "table")
    >>> database.put("t", {"x": 1, "y": "a"})
    >>> database.put("t", {"x": 1, "y": "b"})
    >>> [dict(row) for row in database.ask("SELECT * FROM t")]
    [{'x': 1, 'y': 'b'}]
    """

    def __init__(self, path: Path, schema: str, what: str) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection:
                _begin_log(connection)
                connection.executescript(schema)
        except (OSError, sqlite3.Error) as problem:
            raise OutputError(
                f"The {what} cannot be kept in {path} ({problem}). Choose a folder on a local disk where you may "
                "write, or remove the file if it is damaged."
            ) from None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as connection:
            connection.row_factory = sqlite3.Row
            with connection:
                yield connection

    def put(self, table: str, values: Mapping[str, Any]) -> None:
        """One row, in place of an older one with the same key."""
        marks = ", ".join("?" * len(values))
        command = f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) VALUES ({marks})"
        with self._connection() as connection:
            connection.execute(command, list(values.values()))

    def ask(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """The rows of a query."""
        with self._connection() as connection:
            return connection.execute(query, values).fetchall()


def _begin_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. For this SQLite does not wait: another run that begins at the same moment is
    answered "locked" at once, so it is asked again.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
