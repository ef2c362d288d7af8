"""The file that results are kept in, shared by several runs."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from photostereo.batch import database as module
from photostereo.batch.database import Database
from photostereo.core.errors import OutputError

SCHEMA = "CREATE TABLE IF NOT EXISTS t (x INTEGER PRIMARY KEY, y);"


def test_runs_that_begin_at_the_same_moment(tmp_path):
    together = threading.Barrier(4)

    def begin(path, number):
        together.wait(30)
        Database(path, SCHEMA, "results").put("t", {"x": number, "y": "a"})

    with ThreadPoolExecutor(4) as pool:
        for attempt in range(30):
            path = tmp_path / f"{attempt}.sqlite"
            list(pool.map(begin, [path] * 4, range(4)))
            assert len(Database(path, SCHEMA, "results").ask("SELECT x FROM t")) == 4


def test_a_lock_that_stays_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    other.execute("CREATE TABLE busy (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OutputError, match="locked"):
        Database(tmp_path / "a.sqlite", SCHEMA, "results")
    other.close()
