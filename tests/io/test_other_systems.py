"""What differs on Windows and macOS, simulated: exchanging folders, signals, processors, names."""

from __future__ import annotations

import ctypes
import os
import signal
from types import SimpleNamespace

import pytest

from photostereo.io.atomic import replacing_directory, replacing_file
from photostereo.io.names import folder_name
from photostereo.runtime.signals import deferred_interrupt, orderly_signals
from photostereo.runtime.threads import processors


@pytest.fixture
def windows(monkeypatch):
    """No library of the system itself, a rename that does not replace."""

    def no_library(name, **options):
        raise TypeError("bad argument type for built-in operation")

    def rename(old, new):
        if os.path.lexists(new):
            raise FileExistsError(new)
        real(old, new)

    real = os.rename
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    monkeypatch.setattr(os, "rename", rename)


def write(out, text, **options):
    with replacing_directory(out, **options) as folder:
        (folder / "summary.json").write_text(text)


def write_half(out):
    with replacing_directory(out, force=True) as folder:
        (folder / "summary.json").write_text("half")
        raise KeyboardInterrupt


def test_results_are_replaced_on_windows(windows, tmp_path):
    out = tmp_path / "out"
    write(out, "old")
    write(out, "new", force=True)
    assert (out / "summary.json").read_text() == "new"
    with pytest.raises(KeyboardInterrupt):
        write_half(out)
    assert (out / "summary.json").read_text() == "new"
    with replacing_file(tmp_path / "file.txt", force=True) as partial:
        partial.write_text("text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.txt", "out"]


def test_folders_are_exchanged_on_macos(monkeypatch, tmp_path):
    asked = []

    def renamex_np(first, second, flag):
        asked.append(flag)
        os.rename(first, first + b"-")
        os.rename(second, first)
        os.rename(first + b"-", second)
        return 0

    monkeypatch.setattr(
        ctypes, "CDLL", lambda name, **options: SimpleNamespace(renamex_np=renamex_np)
    )
    out = tmp_path / "out"
    write(out, "old")
    write(out, "new", force=True)
    assert (out / "summary.json").read_text() == "new" and asked == [2]  # RENAME_SWAP
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_signals_without_masks(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    before = signal.getsignal(signal.SIGINT)
    with orderly_signals(), deferred_interrupt():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_processors_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert processors() == os.cpu_count()


@pytest.mark.parametrize("name", ["con", "AUX", "nul.txt", "com1", "a:b", "end. ", 'q"?*|<>'])
def test_names_that_windows_takes(name):
    made = folder_name(name)
    assert not set(made) & set('<>:"/\\|?*') and not made.endswith((".", " "))
    assert made.split(".")[0].lower() not in {"con", "aux", "nul", "com1"}


def test_folder_names() -> None:
    assert folder_name("a cat/../x\x1b") == "a-cat-..-x"
    assert (folder_name("../.."), folder_name("Aux.1")) == ("capture", "_Aux.1")
