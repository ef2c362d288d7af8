"""A table in SQLite that grows row by row: safe to kill, safe to share.

Every write is a transaction of its own, so that a killed run loses only what was running. Two runs may use one file at
once: SQLite makes writers wait for each other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from photostereo.batch.fingerprint import canonical_json
from photostereo.core.errors import OutputError
from photostereo.io.schema import check_facts

#: Seconds that a writer waits for another one.
BUSY_SECONDS = 60.0


class Database:
    """A SQLite file and its tables, made by the SQL of ``schema`` if they are missing. Mappings and lists are kept as JSON.

    ``read_only`` opens an existing file and changes nothing, so that it works on a read-only disk. Errors of the disk and
    damaged files are an :class:`OutputError`.

    >>> import tempfile
    >>> schema = "CREATE TABLE t (x INTEGER PRIMARY KEY, y);"
    >>> database = Database(Path(tempfile.mkdtemp()) / "a.sqlite", schema, "table")
    >>> database.put("t", {"x": 1, "y": [1, 2]})
    >>> database.put("t", {"x": 1, "y": [3]})
    >>> database.rows("SELECT * FROM t", {"x": int, "y": list})
    [{'x': 1, 'y': [3]}]
    """

    def __init__(self, path: Path, schema: str, what: str, *, read_only: bool = False) -> None:
        self.path, self.what, self.read_only = path, what, read_only
        if read_only:
            return
        with self.explained():
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            connection.executescript(schema)

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
        """Turn errors of the system and of SQLite (a full disk, a damaged file) into an :class:`OutputError`."""
        try:
            yield
        except (OSError, sqlite3.Error, UnicodeError) as problem:
            damaged = isinstance(problem, (sqlite3.DatabaseError, UnicodeError)) and not isinstance(
                problem, sqlite3.OperationalError
            )
            raise self._failure(problem, damaged=damaged) from None

    def _failure(self, problem: Exception | str, *, damaged: bool = False) -> OutputError:
        return OutputError(
            f"The {self.what} in {self.path} are damaged: {problem}. Remove the file to begin anew."
            if damaged
            else f"The {self.what} in {self.path} cannot be read or written ({problem}). Check the free disk space and "
            "the permissions.",
            code="damaged-database" if damaged else "database",
            file=self.path,
            problem=str(problem),
        )

    def put(self, table: str, values: Mapping[str, Any]) -> None:
        """Write one row, in place of an older one with the same key."""
        marks = ", ".join("?" * len(values))
        command = f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) VALUES ({marks})"
        with self._connection() as connection:
            connection.execute(command, [_stored(value) for value in values.values()])

    def rows(self, query: str, spec: Mapping[str, Any], *values: Any) -> list[dict[str, Any]]:
        """The rows of a query, each checked against a spec (see :func:`photostereo.io.schema.check_facts`)."""
        as_json = [name.removesuffix("?") for name, kind in spec.items() if _is_json(kind)]
        with self._connection() as connection:
            found = [dict(row) for row in connection.execute(query, values)]
        try:
            for row in found:
                for name in spec:
                    if name.removesuffix("?") not in row:
                        raise ValueError(f"the column {name.removesuffix('?')} is missing")
                for name in as_json:
                    row[name] = None if row.get(name) is None else json.loads(row[name])
                check_facts(row, spec, ValueError)
        except (ValueError, TypeError, RecursionError) as problem:
            raise self._failure(problem, damaged=True) from None
        return found


def _stored(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return canonical_json(value)
    # Names of files may hold bytes that are not text.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _is_json(kind: Any) -> bool:
    return isinstance(kind, (dict, list)) or kind in (dict, list)
