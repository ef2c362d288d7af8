"""Results appear complete or not at all."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest

from photostereo.errors import OutputError
from photostereo.files.atomic import replacing_directory, replacing_file


def content(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_visible_until_the_end(tmp_path):
    out = tmp_path / "deep" / "er" / "out"
    with replacing_directory(out) as folder:
        (folder / "a.txt").write_text("new")
        assert not out.exists()
        assert folder.parent == out.parent
    assert content(tmp_path) == {"deep/er/out/a.txt": "new"}
    assert stat.S_IMODE(out.stat().st_mode) == 0o777 & ~umask()


def umask():
    current = os.umask(0)
    os.umask(current)
    return current


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_failure_leaves_no_trace(tmp_path, error):
    def run():
        with replacing_directory(tmp_path / "deep" / "out") as folder:
            (folder / "sub").mkdir()
            (folder / "sub" / "a.txt").write_text("half")
            raise error

    with pytest.raises(error):
        run()
    assert list(tmp_path.iterdir()) == []


def test_existing_results_are_kept_without_force(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_text("old")
    with pytest.raises(OutputError, match=r"exists already.*--force"), replacing_directory(out):
        pytest.fail("the work must not begin")
    assert content(tmp_path) == {"out/a.txt": "old"}


def test_force_replaces_as_a_whole_and_only_at_the_end(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "summary.json").write_text("old")
    with replacing_directory(out, force=True) as folder:
        (folder / "comparison.json").write_text("new")
        assert content(out) == {"summary.json": "old"}
    assert content(tmp_path) == {"out/comparison.json": "new"}
    with pytest.raises(RuntimeError), replacing_directory(out, force=True):
        raise RuntimeError
    assert content(tmp_path) == {"out/comparison.json": "new"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_failed_move_brings_the_old_result_back(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "summary.json").write_text("old")
    rename = os.rename

    def stubborn(source, target):
        if ".partial-" in str(source):
            raise OSError(errno.EACCES, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(os, "rename", stubborn)
    with (
        pytest.raises(OutputError, match="Permission denied"),
        replacing_directory(out, force=True) as folder,
    ):
        (folder / "b.txt").write_text("new")
    assert content(tmp_path) == {"out/summary.json": "old"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("out", ["capture", "."])
def test_the_photographs_are_never_replaced(tmp_path, out):
    """Not by name, nor with the folder around them, although both could be ours."""
    (tmp_path / "home" / "capture").mkdir(parents=True)
    for place in (tmp_path / "home", tmp_path / "home" / "capture"):
        (place / "photostereo.json").write_text("{}")
    before = content(tmp_path)
    target = tmp_path / "home" / out
    with (
        pytest.raises(OutputError, match="holds the photographs"),
        replacing_directory(target, force=True, keep=tmp_path / "home" / "capture"),
    ):
        pytest.fail("the work must not begin")
    assert content(tmp_path) == before


def test_a_folder_of_somebody_else_is_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="does not look like"), replacing_directory(tmp_path, force=True):
        pytest.fail("the work must not begin")
    assert content(tmp_path) == {"thesis.txt": "mine"}


def test_empty_folder_may_be_used(tmp_path):
    (tmp_path / "out").mkdir()
    with replacing_directory(tmp_path / "out") as folder:
        (folder / "a.txt").write_text("new")
    assert content(tmp_path) == {"out/a.txt": "new"}


def test_link_to_a_folder_keeps_pointing(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with replacing_directory(tmp_path / "out") as folder:
        (folder / "a.txt").write_text("new")
    assert (tmp_path / "out").is_symlink()
    assert content(tmp_path / "real") == {"a.txt": "new"}


def test_files_in_the_way(tmp_path):
    (tmp_path / "out").write_text("a file")
    for out in (tmp_path / "out", tmp_path / "out" / "inside"):
        with pytest.raises(OutputError, match="out"), replacing_directory(out, force=True):
            pytest.fail("the work must not begin")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="leads nowhere"), replacing_directory(tmp_path / "dangling"):
        pytest.fail("the work must not begin")


def test_force_never_deletes_where_people_live(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (home / "precious.txt").write_text("mine")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    for place in (home, tmp_path, home / "work", tmp_path / "repo", "."):
        with pytest.raises(OutputError), replacing_directory(place, force=True):
            pytest.fail("the work must not begin")
    assert (home / "precious.txt").read_text() == "mine"


def test_full_disk_is_the_users_to_mend(tmp_path):
    with pytest.raises(OutputError, match="No space left"), replacing_directory(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="rights do not bind the superuser")
def test_folder_without_rights(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with (
        pytest.raises(OutputError, match="Permission denied"),
        replacing_directory(tmp_path / "locked" / "out"),
    ):
        pytest.fail("the work must not begin")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nobody can write")
def test_unwritable_place():
    with (
        pytest.raises(OutputError, match="Cannot write the results"),
        replacing_directory("/proc/self/photostereo"),
    ):
        pytest.fail("the work must not begin")
    with (
        pytest.raises(OutputError, match="Cannot write the results"),
        replacing_file("/proc/self/photostereo.npz"),
    ):
        pytest.fail("the work must not begin")


def test_control_c_in_a_real_process(tmp_path):
    script = """
        import signal, sys, time
        from photostereo.files.atomic import replacing_directory
        # A shell's background job ignores Ctrl-C, and its children inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with replacing_directory(sys.argv[1]) as folder:
            (folder / "half.txt").write_text("half")
            print("ready", flush=True)
            time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout.readline() == b"ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    process.wait(timeout=60)
    assert time.monotonic() - started < 20
    assert list(tmp_path.iterdir()) == []


def test_replacing_a_file(tmp_path):
    out = tmp_path / "deep" / "a.npz"
    with replacing_file(out) as partial:
        assert partial.suffix == ".npz"
        partial.write_text("one")
        assert not out.exists()
    with pytest.raises(OutputError, match="exists already"), replacing_file(out):
        pytest.fail("the work must not begin")

    def fail():
        with replacing_file(out, force=True) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert content(tmp_path) == {"deep/a.npz": "one"}
    with pytest.raises(OutputError, match="is a folder"), replacing_file(tmp_path / "deep", force=True):
        pytest.fail("the work must not begin")
