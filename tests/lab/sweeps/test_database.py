"""The file that results are kept in, shared by several runs."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from photostereo.core.errors import OutputError
from photostereo_lab.sweeps import database as module
from photostereo_lab.sweeps.database import Database

SCHEMA = {"t": {"x": int, "y": str}}


def test_runs_that_begin_at_the_same_moment(tmp_path):
    together = threading.Barrier(4)

    def begin(path, number):
        together.wait(120)
        Database(path, SCHEMA, "results").put("t", {"x": number, "y": "a"})

    with ThreadPoolExecutor(4) as pool:
        for attempt in range(8):
            path = tmp_path / f"{attempt}.sqlite"
            list(pool.map(begin, [path] * 4, range(4)))
            assert len(Database(path, SCHEMA, "results").rows("t")) == 4


def test_reading_makes_no_database(tmp_path):
    (tmp_path / "empty.sqlite").touch()
    for name in ("empty.sqlite", "missing.sqlite"):
        with pytest.raises(OutputError) as caught:
            Database(tmp_path / name, SCHEMA, "results", read_only=True)
        assert caught.value.code == "no-database"
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [
        ("empty.sqlite", 0)
    ]


def test_a_lock_that_stays_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    other.execute("CREATE TABLE busy (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OutputError) as caught:
        Database(tmp_path / "a.sqlite", SCHEMA, "results")
    assert (caught.value.code, "locked" in caught.value.values["problem"]) == ("database", True)
    other.close()


def test_a_full_disk_is_an_error_of_ours(tmp_path, monkeypatch):
    database = Database(tmp_path / "a.sqlite", SCHEMA, "results")
    database.put("t", {"x": 1, "y": "a"})
    with sqlite3.connect(database.path) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connect = sqlite3.connect

    def small(*arguments, **options):  # what a full disk answers, from SQLite itself
        connection = connect(*arguments, **options)
        connection.execute(f"PRAGMA max_page_count={pages}")
        return connection

    monkeypatch.setattr(module.sqlite3, "connect", small)
    with pytest.raises(OutputError) as caught:
        database.put("t", {"x": 2, "y": "a" * 100_000})
    assert (caught.value.code, "full" in caught.value.values["problem"]) == ("database", True)
    assert len(database.rows("t")) == 1


@pytest.mark.parametrize("value", ["{", "[1]", 3, b"\xff"])
def test_a_damaged_row_is_an_error_of_ours(tmp_path, value):
    database = Database(tmp_path / "a.sqlite", {"t": {"x": int, "y": dict}}, "results")
    with sqlite3.connect(database.path) as connection:
        connection.execute("INSERT INTO t VALUES (1, ?)", (value,))
    with pytest.raises(OutputError) as caught:
        database.rows("t")
    assert caught.value.code == "damaged-database"


def test_a_missing_column_is_an_error_of_ours(tmp_path):
    database = Database(tmp_path / "a.sqlite", SCHEMA, "results")
    database.put("t", {"x": 1, "y": "a"})
    with pytest.raises(OutputError) as caught:
        Database(database.path, {"t": {**SCHEMA["t"], "z": dict}}, "results").rows("t")
    assert caught.value.code == "damaged-database"


def test_a_damaged_name_of_a_column_is_an_error_of_ours(tmp_path):
    database = Database(tmp_path / "a.sqlite", {"t": {"unmistakable": str}}, "results")
    database.put("t", {"unmistakable": "1"})
    database.path.write_bytes(
        database.path.read_bytes().replace(b"unmistakable", b"unmis\xffakable")
    )
    with pytest.raises(OutputError) as caught:
        Database(database.path, {"t": {"unmistakable": str}}, "results").rows("t")
    assert caught.value.code in ("database", "damaged-database")


def test_names_that_are_not_text_are_kept_as_escapes(tmp_path):
    database = Database(tmp_path / "a.sqlite", SCHEMA, "results")
    database.put("t", {"x": 1, "y": "bad\udcff"})
    assert database.rows("t") == [{"x": 1, "y": r"bad\udcff"}]
