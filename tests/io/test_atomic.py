"""Results appear complete or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import zlib
from contextlib import contextmanager

import pytest

from photostereo.core.errors import OutputError
from photostereo.io import atomic, ownership
from photostereo.io.atomic import replacing_directory, replacing_file, write_bytes, write_json
from photostereo.io.json_text import json_bytes, json_text
from photostereo.io.locks import lock, unlock
from photostereo.io.ownership import MARK


@contextmanager
def refused(code, **values):
    """The block must not begin: an error with this code and these values comes first."""
    with pytest.raises(OutputError) as caught:
        yield caught
    assert caught.value.code == code
    assert {name: caught.value.values.get(name) for name in values} == values


@pytest.fixture(params=["exchange", "two steps"])
def moving(request, monkeypatch):
    """Both ways of replacing a folder: of systems that can exchange two folders in one step, and of all others."""
    if request.param == "two steps":
        monkeypatch.setattr(atomic, "exchange", lambda first, second: False)
    elif sys.platform not in ("linux", "darwin"):
        pytest.skip("this system cannot exchange folders")
    return request.param


def content(folder):
    """What lies in a folder, but for our marks."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MARK
    }


def write_results(out, **files):
    """A folder as photostereo leaves it."""
    with replacing_directory(out) as folder:
        for name, text in files.items():
            (folder / name).write_text(text)


def test_nothing_is_visible_until_the_end(tmp_path):
    out = tmp_path / "deep" / "er" / "out"
    with replacing_directory(out) as folder:
        (folder / "a.txt").write_text("new")
        assert not out.exists()
        assert folder.parent == out.parent
    assert content(tmp_path) == {"deep/er/out/a.txt": "new"}
    assert sorted(path.name for path in out.iterdir()) == [".photostereo.json", "a.txt"]
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
    with pytest.raises(OutputError) as caught, replacing_directory(out):
        pytest.fail("the work must not begin")
    assert (caught.value.code, caught.value.file) == ("output-exists", out)
    assert "force=True" in str(caught.value) and "--force" in caught.value.rendered("terminal")
    assert content(tmp_path) == {"out/a.txt": "old"}


def test_force_replaces_as_a_whole_and_only_at_the_end(tmp_path, moving):
    out = tmp_path / "out"
    write_results(out, a="old")
    with replacing_directory(out, force=True) as folder:
        (folder / "b").write_text("new")
        assert content(out) == {"a": "old"}
    assert content(tmp_path) == {"out/b": "new"}
    with pytest.raises(RuntimeError), replacing_directory(out, force=True):
        raise RuntimeError
    assert content(tmp_path) == {"out/b": "new"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_failed_move_keeps_the_old_result(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_results(out, a="old")
    rename = os.rename

    def stubborn(source, target):
        if ".partial-" in str(source):
            raise OSError(errno.EACCES, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(atomic, "exchange", lambda first, second: False)
    monkeypatch.setattr(os, "rename", stubborn)
    with (
        refused("cannot-write", reason="Permission denied"),
        replacing_directory(out, force=True) as folder,
    ):
        (folder / "b.txt").write_text("new")
    assert content(tmp_path) == {"out/a": "old"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def interrupted_at(step, run):
    """Run it, raising KeyboardInterrupt at the given line of ours; whether the run got that far."""
    ours, count = {module.__file__ for module in (atomic, ownership)}, 0

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename not in ours:
            return None
        if event == "line":
            count += 1
            if count == step:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return count >= step


def next_run_clears(out):
    """What the next run does first, when this process is no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic, "lock", lambda path: os.open(path, os.O_RDONLY))
        atomic.clear_leftovers(out)


def test_an_interruption_at_any_line_loses_nothing(tmp_path, monkeypatch):
    """Ctrl-C between any two lines: the old result or the new one is there, complete, with the user's own file.

    In two steps, which has more lines; both ways of moving are interrupted around every system call below.
    """
    monkeypatch.setattr(atomic, "exchange", lambda first, second: False)
    old = {"a": "old", "mesh": "old", "notes.txt": "mine"}
    new = {"a": "old", "mesh": "new", "notes.txt": "mine"}
    seen, step = set(), 1
    while True:
        out = tmp_path / str(step) / "out"
        write_results(out, a="old", mesh="old")
        (out / "notes.txt").write_text("mine")

        def renew(out=out):
            with replacing_directory(out, force=True, renew={"mesh"}) as folder:
                for name in ("a", "notes.txt"):
                    shutil.copy2(out / name, folder)
                (folder / "mesh").write_text("new")

        reached = interrupted_at(step, renew)
        next_run_clears(out)
        left = content(out)
        assert left in (old, new), f"line {step}: {sorted(left)}"
        seen.add(left["mesh"])
        assert (
            set(content(out.parent)) <= {f"out/{name}" for name in old} or not out.parent.exists()
        )
        if not reached:
            break
        step += 1
    assert seen == {"old", "new"} and step > 100


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_an_interruption_around_every_system_call_loses_nothing(
    tmp_path, monkeypatch, moving, moment, ending
):
    calls = {(os, "rename"), (atomic, "exchange"), (shutil, "rmtree")}

    def replace(out, at):
        count = 0
        with monkeypatch.context() as patch:
            for module, name in calls:
                original = getattr(module, name)

                def struck(*arguments, call=original, **options):
                    nonlocal count
                    count += 1
                    if count == at and moment == "before":
                        raise ending
                    answer = call(*arguments, **options)
                    if count == at:
                        raise ending
                    return answer

                patch.setattr(module, name, struck)
            try:
                with replacing_directory(out, force=True) as folder:
                    (folder / "a").write_text("new")
                    (folder / "b").write_text("new")
            except ending:
                pass
        return count >= at

    at = 1
    while True:
        out = tmp_path / str(at) / "out"
        write_results(out, a="old", b="old")
        reached = replace(out, at)
        next_run_clears(out)
        assert content(out.parent) in ({"out/a": text, "out/b": text} for text in ("old", "new"))
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        if not reached:
            break
        at += 1
    assert at > 2


def test_a_file_is_replaced_or_stays_when_interrupted(tmp_path):
    step = 1
    while True:
        out = tmp_path / str(step) / "a.txt"
        out.parent.mkdir()
        out.write_text("old")
        reached = interrupted_at(step, lambda out=out: write_bytes(out, b"new"))
        assert out.read_text() in ("old", "new")
        if not reached:
            break
        step += 1


def test_a_copied_result_can_be_replaced(tmp_path):
    """Copies, archives and cloud storage change times, not content."""
    write_results(tmp_path / "out", a="old")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "out", copy, copy_function=shutil.copyfile)
    os.utime(copy / "a", (0, 0))
    with replacing_directory(copy, force=True) as folder:
        (folder / "a").write_text("new")
    assert content(copy) == {"a": "new"}


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    """Another thread may create a file at that moment."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("umask is of the whole process"))
    write_results(tmp_path / "out", a="new")
    write_bytes(tmp_path / "b", b"new")


@pytest.mark.parametrize("out", ["capture", "."])
def test_the_photographs_are_never_replaced(tmp_path, out):
    """Not by name, nor with the folder around them, although both could be ours."""
    with replacing_directory(tmp_path / "home") as folder:
        write_results(folder / "capture", a="photograph")
    before = content(tmp_path)
    target = tmp_path / "home" / out
    needed = tmp_path / "home" / "capture"
    with (
        refused("output-contains-input", needed=str(needed)),
        replacing_directory(target, force=True, keep=[needed]),
    ):
        pytest.fail("the work must not begin")
    assert content(tmp_path) == before


def test_a_folder_of_somebody_else_is_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with refused("not-our-folder", name="thesis.txt"), replacing_directory(tmp_path, force=True):
        pytest.fail("the work must not begin")
    assert content(tmp_path) == {"thesis.txt": "mine"}


def test_a_mark_must_be_ours_in_content(tmp_path):
    """A summary.json, or anything with the name of our mark, does not make a folder ours."""
    for name, text in (
        ("summary.json", "{}"),
        (MARK, "{}"),
        (MARK, '{"format": "photostereo folder"}'),
    ):
        out = tmp_path / "mine"
        out.mkdir()
        (out / name).write_text(text)
        (out / "thesis.tex").write_text("years of work")
        with refused("not-our-folder"), replacing_directory(out, force=True):
            pytest.fail("the work must not begin")
        assert (out / "thesis.tex").read_text() == "years of work"
        shutil.rmtree(out)


def add_file(out):
    (out / "sub").mkdir()
    (out / "sub" / "thesis.tex").write_text("mine")
    return "sub/thesis.tex", "was not written by photostereo"


def add_folder(out):
    (out / "empty").mkdir()
    return "empty", "was not written by photostereo"


def add_link(out):
    (out / "link").symlink_to(out.parent)
    return "link", "was not written by photostereo"


def change_file(out):
    (out / "a").write_text("retouched")
    return "a", "has changed since photostereo wrote it"


def change_file_of_the_same_size(out):
    (out / "a").write_text("ald")
    os.utime(out / "a", (0, 0))
    return "a", "has changed since photostereo wrote it"


@pytest.mark.parametrize(
    "spoil", [add_file, add_folder, add_link, change_file, change_file_of_the_same_size]
)
def test_what_we_did_not_write_is_never_deleted(tmp_path, spoil):
    out = tmp_path / "out"
    write_results(out, a="old")
    name, reason = spoil(out)
    before = content(tmp_path)
    with refused("foreign-file", name=name, reason=reason), replacing_directory(out, force=True):
        pytest.fail("the work must not begin")
    assert content(tmp_path) == before


def test_what_appears_while_we_work_is_not_deleted_either(tmp_path):
    out = tmp_path / "out"
    write_results(out, a="old")

    def run():
        with replacing_directory(out, force=True):
            (out / "thesis.tex").write_text("mine")

    with refused("foreign-file", name="thesis.tex"):
        run()
    assert content(tmp_path) == {"out/a": "old", "out/thesis.tex": "mine"}


def test_litter_of_operating_systems_does_not_count(tmp_path):
    out = tmp_path / "out"
    write_results(out, a="old")
    (out / ".DS_Store").touch()
    with replacing_directory(out, force=True) as folder:
        (folder / "b").write_text("new")
    assert content(tmp_path) == {"out/b": "new"}


def test_files_in_use_are_never_inside_what_is_replaced(tmp_path):
    """Also where they do not exist yet: a checkpoint that would be written into the folder in the making."""
    with (
        refused("output-contains-input"),
        replacing_directory(tmp_path / "out", keep=[tmp_path / "out" / "state.npz"]),
    ):
        pytest.fail("the work must not begin")


def test_a_renewed_folder_takes_over_what_is_not_ours(tmp_path):
    out = tmp_path / "out"
    write_results(out, a="old", mesh="old")
    (out / "notes.txt").write_text("mine")

    def renew():
        with replacing_directory(out, force=True, renew={"mesh"}) as folder:
            shutil.copy2(out / "a", folder)
            shutil.copy2(out / "notes.txt", folder)
            (folder / "mesh").write_text("new")

    renew()
    assert content(tmp_path) == {"out/a": "old", "out/mesh": "new", "out/notes.txt": "mine"}
    renew()
    with refused("foreign-file", name="notes.txt"), replacing_directory(out, force=True):
        pytest.fail("the work must not begin")
    (out / "mesh").write_text("retouched")
    with refused("foreign-file", name="mesh"):
        renew()


@pytest.mark.parametrize("kind", ["partial", "replaced"])
def test_leftovers_of_a_killed_run_are_removed_by_the_next(tmp_path, kind):
    out = tmp_path / "out"
    if kind == "replaced":
        write_results(out, a="old")
    script = """
        import os, shutil, signal, sys
        from photostereo.io import atomic
        rename = os.rename
        def killed(source, target):
            rename(source, target)
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[2] == "replaced":
            os.rename = killed
            atomic.exchange = lambda first, second: False
        with atomic.replacing_directory(sys.argv[1], force=True) as folder:
            (folder / "half.txt").write_text("half")
            if sys.argv[2] == "partial":
                os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(out), kind], check=False)
    assert not out.exists()
    assert len(list(tmp_path.iterdir())) == (1 if kind == "partial" else 2)
    mine = tmp_path / ".out.partial-mine"  # looks like one, but nothing says that it is ours
    mine.mkdir()
    if kind == "replaced":
        with refused("output-exists"), replacing_directory(out):
            pytest.fail("the old result is back")
        assert content(tmp_path) == {"out/a": "old"}
    with replacing_directory(out, force=True) as folder:
        (folder / "b").write_text("new")
    assert content(tmp_path) == {"out/b": "new"}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".out.partial-mine", "out"]


def test_folders_that_only_look_like_leftovers_stay(tmp_path):
    for name in (".out.partial-mine", ".out.partial-0123abcd", ".other.partial-0123abcd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("mine")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".out.partial-89abcdef").symlink_to(tmp_path)
    atomic.clear_leftovers(tmp_path / "out")
    assert len(list(tmp_path.iterdir())) == 4


def test_a_file_that_the_block_removes_is_not_written(tmp_path):
    (tmp_path / "a").write_text("old")
    with replacing_file(tmp_path / "a", force=True) as partial:
        partial.unlink()
    assert content(tmp_path) == {"a": "old"}


def test_the_leftover_of_a_single_file_is_removed_too(tmp_path):
    out = tmp_path / "lights.csv"
    script = """
        import os, signal, sys
        from photostereo.io import atomic
        with atomic.replacing_file(sys.argv[1]) as partial:
            partial.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(out)], check=False)
    assert not out.exists() and len(list(tmp_path.iterdir())) == 1
    with (
        replacing_file(out) as partial,
        replacing_file(tmp_path / "lights.csv", force=True) as second,
    ):
        assert partial.parent.is_dir()  # that of a run that lives stays
        second.write_text("two")
        partial.write_text("one")
    assert content(tmp_path) == {"lights.csv": "one"}


def test_a_run_that_lives_keeps_its_folder(tmp_path):
    out = tmp_path / "out"
    with replacing_directory(out) as first:
        (first / "a").write_text("one")
        with replacing_directory(out) as second:
            (second / "b").write_text("two")
            assert first.is_dir()
        (out / MARK).unlink()
        shutil.rmtree(out)
    assert content(tmp_path) == {"out/a": "one"}


LEFTOVER = ".out.partial-{number:08x}-{owner}"


def leftover_of(tmp_path, owner):
    """A stage of ``tmp_path / "out"`` that nobody has locked."""
    folder = tmp_path / LEFTOVER.format(number=zlib.crc32(b"out"), owner=owner)
    folder.mkdir()
    (folder / "half.txt").write_text("half")
    return folder


@pytest.mark.parametrize("owner", ["89abcdef-1-0123abcd", "89abcdef-none-0123abcd", "strange"])
def test_whoever_wrote_it_what_nobody_holds_is_removed(tmp_path, owner):
    """In a container, the number of a process and the name of the machine say nothing."""
    folder = leftover_of(tmp_path, owner)
    atomic.clear_leftovers(tmp_path / "out")
    assert not folder.exists()


def test_what_a_process_of_another_container_holds_stays(tmp_path):
    folder = leftover_of(tmp_path, "89abcdef-99999999-0123abcd")
    held = lock(folder)
    atomic.clear_leftovers(tmp_path / "out")
    assert folder.exists()
    unlock(held)
    atomic.clear_leftovers(tmp_path / "out")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("owner", "stays"),
    [
        ("{machine}-999999999-0123abcd", False),
        ("{machine}-{process}-0123abcd", True),
        ("89abcdef-999999999-0123abcd", True),
        ("{machine}-none-0123abcd", True),
        ("strange", True),
    ],
)
def test_without_locks_a_leftover_is_removed_if_its_process_has_ended(
    tmp_path, monkeypatch, owner, stays
):
    monkeypatch.setattr(atomic, "lock", lambda path: None)
    folder = leftover_of(tmp_path, owner.format(machine=atomic._MACHINE, process=os.getpid()))
    atomic.clear_leftovers(tmp_path / "out")
    assert folder.exists() is stays


@pytest.mark.parametrize("name", ["n" * 300, "ö" * 130, "a\0b"])
def test_impossible_names_are_told(tmp_path, name):
    for replacing in (replacing_directory, replacing_file):
        with refused("cannot-write"), replacing(tmp_path / name):
            pytest.fail("the work must not begin")


def test_the_longest_names_work(tmp_path):
    for name in ("n" * 255, "ö" * 127):
        with replacing_directory(tmp_path / name) as folder:
            (folder / "a").write_text("new")
        with replacing_file(tmp_path / name / "b", force=True) as partial:
            partial.write_text("new")
    assert len(list(tmp_path.iterdir())) == 2


def test_json_is_strict_and_takes_undecodable_names(tmp_path):
    write_json(
        tmp_path / "a.json", {"error": float("nan"), "top": [float("inf")], "name": "caf\udce9 ö"}
    )
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert "NaN" not in text and "Infinity" not in text and "ö" in text
    assert json.loads(text) == {"error": None, "top": [None], "name": "caf\udce9 ö"}
    assert (
        json_text({"error": float("nan"), "files": ("a", "b")}, indent=None)
        == '{"error":null,"files":["a","b"]}'
    )
    assert json_bytes("caf\udce9", indent=None) == b'"caf\\udce9"\n'


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
        with pytest.raises(OutputError) as caught, replacing_directory(out, force=True):
            pytest.fail("the work must not begin")
        assert (
            caught.value.code in ("output-is-a-file", "cannot-write") and caught.value.file == out
        )
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "ring").symlink_to("ring")
    for out in ("dangling", "ring"):
        with pytest.raises(OutputError), replacing_directory(tmp_path / out):
            pytest.fail("the work must not begin")
    with replacing_directory(tmp_path / "new", keep=[tmp_path / "ring"]):
        pass


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


def test_full_disk_is_explained(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        refused("cannot-write", reason="No space left on device"),
        replacing_directory(tmp_path / "out"),
    ):
        full()
    with refused("cannot-write") as caught, replacing_directory(tmp_path / "out") as folder:
        monkeypatch.setattr(os, "replace", full)
        write_bytes(folder / "a", b"new")
    assert caught.value.file == tmp_path / "out"  # not the hidden folder
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="rights do not bind the superuser"
)
def test_folder_without_rights(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with (
        refused("cannot-write", reason="Permission denied"),
        replacing_directory(tmp_path / "locked" / "out"),
    ):
        pytest.fail("the work must not begin")


@pytest.mark.skipif(
    not os.path.isdir("/proc/self"), reason="needs a folder in which nobody can write"
)
def test_unwritable_place():
    with (
        refused("cannot-write"),
        replacing_directory("/proc/self/photostereo"),
    ):
        pytest.fail("the work must not begin")
    with (
        refused("cannot-write"),
        replacing_file("/proc/self/photostereo.npz"),
    ):
        pytest.fail("the work must not begin")


def test_control_c_in_a_real_process(tmp_path):
    script = """
        import signal, sys, time
        from photostereo.io.atomic import replacing_directory
        # A shell's background job ignores Ctrl-C, and its children inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with replacing_directory(sys.argv[1]) as folder:
            (folder / "half.txt").write_text("half")
            print("ready", flush=True)
            time.sleep(600)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout.readline() == b"ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(signal.SIGINT)
    process.wait(timeout=120)  # the script itself would sleep for ten minutes
    assert list(tmp_path.iterdir()) == []


def test_replacing_a_file(tmp_path):
    out = tmp_path / "deep" / "a.npz"
    with replacing_file(out) as partial:
        assert partial.suffix == ".npz"
        partial.write_text("one")
        assert not out.exists()
    with refused("output-exists"), replacing_file(out):
        pytest.fail("the work must not begin")

    def fail():
        with replacing_file(out, force=True) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert content(tmp_path) == {"deep/a.npz": "one"}
    with refused("output-is-a-folder"), replacing_file(tmp_path / "deep", force=True):
        pytest.fail("the work must not begin")
