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

#: The columns of a table and their types; an optional one ends in a question mark.
Spec = Mapping[str, Any]

#: Seconds that a writer waits for another one; a write takes milliseconds.
BUSY_SECONDS = 60.0


class Database:
    """A SQLite file and its tables, created if missing. Mappings and lists are stored as JSON.

    Disk errors and damaged files raise :class:`OutputError`.

    Parameters
    ----------
    path : path
        The file.
    tables : mapping
        The tables, each with a spec of its rows (see :func:`photostereo.io.schema.check_facts`);
        the first column is the key.
    what : str
        What the tables hold, for messages.
    read_only : bool
        Open an existing file and change nothing, so that it works on a read-only disk.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.sqlite"
    >>> database = Database(path, {"t": {"x": int, "y": list}}, "table")
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
        address = self.path.absolute().as_uri()
        if self.read_only:
            address += "?mode=ro"
        with (
            self.explained(),
            closing(sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)) as connection,
            connection,
        ):
            connection.row_factory = sqlite3.Row
            yield connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the system and of SQLite into :class:`OutputError`."""
        try:
            yield
        except sqlite3.OperationalError as problem:  # such as a full disk
            raise self._unusable(problem) from None
        except (sqlite3.DatabaseError, UnicodeError) as problem:
            raise self._damaged(problem) from None
        except (OSError, sqlite3.Error) as problem:
            raise self._unusable(problem) from None

    def _unusable(self, problem: Exception) -> OutputError:
        return OutputError(
            f"The {self.what} in {self.path} cannot be read or written ({problem}). Check the "
            "free disk space and the permissions.",
            code="database",
            file=self.path,
            problem=str(problem),
        )

    def _damaged(self, problem: Exception) -> OutputError:
        return OutputError(
            f"The {self.what} in {self.path} are damaged: {problem}. Remove the file to start "
            "over.",
            code="damaged-database",
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
        """Return the checked rows of a table.

        Parameters
        ----------
        table : str
            Its name.
        condition : str
            SQL that selects or orders the rows, such as ``WHERE name = ?``.
        *values
            The values of its question marks.
        """
        spec = self.tables[table]
        with self._connection() as connection:
            cursor = connection.execute(f"SELECT * FROM {table} {condition}", values)
            rows = [dict(row) for row in cursor]
        try:
            for row in rows:
                for name, kind in spec.items():
                    column = name.removesuffix("?")
                    if _is_json(kind) and row[column] is not None:
                        row[column] = json.loads(row[column])
                check_facts(row, spec, ValueError)
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            raise self._damaged(problem) from None
        return rows


def _column(name: str, kind: Any) -> str:
    """Return the declaration of a column, by the type of its values."""
    types = {int: "INTEGER", NUMBER: "REAL"}
    declaration = "TEXT"
    if not _is_json(kind):
        declaration = types.get(kind, "TEXT")
    if name.endswith("?"):
        return f"{name[:-1]} {declaration}"
    return f"{name} {declaration} NOT NULL"


def _stored(value: Any) -> Any:
    """Return a value as SQLite stores it."""
    if isinstance(value, (Mapping, list, tuple)):
        return canonical_json(value)
    # File names may contain bytes that are not text.
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _is_json(kind: Any) -> bool:
    return isinstance(kind, (dict, list)) or kind in (dict, list)
