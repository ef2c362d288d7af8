"""A table in SQLite that grows row by row: safe to kill, safe to share.

Every write is a separate transaction, so a killed run loses only running jobs. Two runs may use one
file at the same time: SQLite makes writers wait for each other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from photostereo.batch.settings import canonical_json
from photostereo.core.errors import OutputError
from photostereo.io.schema import NUMBER, check_facts

Spec = Mapping[str, Any]

#: Seconds that a writer waits for another one; a write takes milliseconds.
BUSY_SECONDS = 60.0


class Database:
    """A SQLite file and its tables, created if missing. Mappings and lists are stored as JSON.

    ``tables`` maps each table to a spec of its rows (see
    :func:`photostereo.io.schema.check_facts`); the first column is the key.

    ``read_only`` opens an existing file and changes nothing, so it works on a read-only disk. Disk
    errors and damaged files raise :class:`OutputError`.

    >>> import tempfile
    >>> database = Database(Path(tempfile.mkdtemp()) / "a.sqlite", {"t": {"x": int, "y": list}}, "table")
    >>> database.put("t", {"x": 1, "y": [1, 2]})
    >>> database.put("t", {"x": 1, "y": [3]})
    >>> database.rows("t")
    [{'x': 1, 'y': [3]}]
    """

    def __init__(
        self, path: Path, tables: Mapping[str, Spec], what: str, *, read_only: bool = False
    ) -> None:
        self.path = path
        self.tables = tables
        self.what = what
        self.read_only = read_only
        if read_only:
            if not path.is_file() or not path.stat().st_size:
                raise OutputError(
                    f"There are no {what} in {path.parent}. Compute them first.",
                    code="no-database",
                    file=path,
                    what=what,
                    folder=path.parent,
                )
            return
        with self.explained():
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            for table, spec in tables.items():
                columns = ", ".join(_column(name, kind) for name, kind in spec.items())
                key = next(iter(spec))
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {table} ({columns}, PRIMARY KEY ({key}))"
                )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        address = self.path.absolute().as_uri() + ("?mode=ro" if self.read_only else "")
        with (
            self.explained(),
            closing(sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)) as connection,
            connection,
        ):
            connection.row_factory = sqlite3.Row
            yield connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the system and of SQLite (a full disk, a damaged file) into :class:`OutputError`."""
        try:
            yield
        except (OSError, sqlite3.Error, UnicodeError) as problem:
            damaged = isinstance(problem, (sqlite3.DatabaseError, UnicodeError)) and not isinstance(
                problem, sqlite3.OperationalError
            )
            raise self._failure(problem, damaged=damaged) from None

    def _failure(self, problem: Exception | str, *, damaged: bool = False) -> OutputError:
        return OutputError(
            f"The {self.what} in {self.path} are damaged: {problem}. Remove the file to start over."
            if damaged
            else f"The {self.what} in {self.path} cannot be read or written ({problem}). Check the free disk space and "
            "the permissions.",
            code="damaged-database" if damaged else "database",
            file=self.path,
            problem=str(problem),
        )

    def put(self, table: str, values: Mapping[str, Any]) -> None:
        """Write one row, replacing an older one with the same key."""
        marks = ", ".join("?" * len(values))
        command = f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) VALUES ({marks})"
        with self._connection() as connection:
            connection.execute(command, [_stored(value) for value in values.values()])

    def rows(self, table: str, condition: str = "", *values: Any) -> list[dict[str, Any]]:
        """Return the checked rows of a table, optionally only those matching an SQL condition such as ``WHERE name = ?``."""
        spec = self.tables[table]
        with self._connection() as connection:
            found = [
                dict(row)
                for row in connection.execute(f"SELECT * FROM {table} {condition}", values)
            ]
        try:
            for row in found:
                for name, kind in spec.items():
                    value = row[column := name.removesuffix("?")]
                    if _is_json(kind) and value is not None:
                        row[column] = json.loads(value)
                check_facts(row, spec, ValueError)
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            raise self._failure(problem, damaged=True) from None
        return found


def _column(name: str, kind: Any) -> str:
    """Return the declaration of a column, by the type of its values."""
    types = {int: "INTEGER", NUMBER: "REAL"}
    kind = types[kind] if not _is_json(kind) and kind in types else "TEXT"
    return f"{name.removesuffix('?')} {kind}" + ("" if name.endswith("?") else " NOT NULL")


def _stored(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return canonical_json(value)
    # File names may contain bytes that are not text.
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _is_json(kind: Any) -> bool:
    return isinstance(kind, (dict, list)) or kind in (dict, list)
