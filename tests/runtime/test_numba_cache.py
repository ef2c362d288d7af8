"""Compiled loops on disk: never an old one, and no trouble from a full, read-only or damaged disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import caching

from photostereo.runtime import numba_cache
from photostereo.runtime.compile_notice import MESSAGE, announcing
from photostereo.runtime.loops import njit

CALLER = """
from photostereo.runtime.compile_notice import announcing
from photostereo.runtime.loops import njit
import called, constants

@njit(cache=True)
def caller(x):
    return called.loop(x) + constants.SHIFT

said = []
with announcing(said.append):
    print(caller(1.0), bool(said))
"""
CALLED = """
from photostereo.runtime.loops import njit

@njit(cache=True)
def loop(x):
    return {} * x
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a program that prints the result of a loop and whether it was compiled."""
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "called.py").write_text(CALLED.format(10))
    (tmp_path / "constants.py").write_text("SHIFT = 1")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def answer() -> str:
        command = [sys.executable, str(tmp_path / "caller.py")]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()

    return answer


def test_a_loop_is_compiled_again_if_one_that_it_calls_or_a_constant_changes(
    run, tmp_path: Path
) -> None:
    assert run() == "11.0 True"
    assert run() == "11.0 False"
    (tmp_path / "called.py").write_text(CALLED.format(200))
    assert run() == "201.0 True"
    (tmp_path / "constants.py").write_text("SHIFT = 3000")
    assert run() == "3200.0 True"
    assert run() == "3200.0 False"


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_damaged_files_are_replaced(run, tmp_path: Path, kind: str) -> None:
    """A crash of the system can leave empty files."""
    assert run() == "11.0 True"
    for file in (tmp_path / "kept").rglob(f"caller.*.{kind}"):
        file.write_bytes(b"")
    assert run() == "11.0 True"
    assert run() == "11.0 False"


def twice(x: float) -> float:
    return 2 * x


def test_without_a_folder_to_write_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert njit(cache=True)(twice)(1.0) == 2.0


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If only the data cannot be written, the index must not name the file of an older version."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", full)
    said: list[str] = []
    for _ in range(2):
        with announcing(said.append):
            assert njit(cache=True)(twice)(1.0) == 2.0
    assert said == [MESSAGE] * 2
    assert not list(tmp_path.rglob("*.nbi"))


def test_without_a_compiler(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "photostereo", "demo", "--out", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert (
        done.returncode == 2
        and "NUMBA_DISABLE_JIT" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_bad_settings_of_numba_are_named() -> None:
    program = (
        "from photostereo.core.errors import PhotostereoError\n"
        "try:\n"
        "    import numpy as np\n"
        "    from photostereo.runtime.loops import njit, prange\n"
        "    @njit(parallel=True)\n"
        "    def double(x):\n"
        "        out = np.empty_like(x)\n"
        "        for i in prange(len(x)):\n"
        "            out[i] = 2 * x[i]\n"
        "        return out\n"
        "    double(np.ones(9))\n"
        "except PhotostereoError as problem:\n"
        "    print(problem.code, end='')\n"
    )
    for name, value, code in (
        ("NUMBA_NUM_THREADS", "0", "bad-numba-settings"),
        ("NUMBA_THREADING_LAYER", "nonsense", "no-threading-layer"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, name: value},
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, code), done.stderr


def test_a_read_only_installation_and_home_compile_once(tmp_path: Path) -> None:
    """Files stand where Numba would make its folders, so that not even root can write there."""
    (tmp_path / "program.py").write_text(
        CALLER.replace("import called, constants", "").replace(
            "called.loop(x) + constants.SHIFT", "x + 10"
        )
    )
    (tmp_path / "__pycache__").write_text("")
    (tmp_path / "cache").write_text("")
    (tmp_path / "temporary").mkdir()
    environment = {
        **os.environ,
        "HOME": str(tmp_path / "cache"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "temporary"),
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, str(tmp_path / "program.py")]

    def answer() -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stdout.strip()

    assert [answer(), answer()] == ["11.0 True", "11.0 False"]
    (folder,) = (tmp_path / "temporary").glob("photostereo-compiled-*")
    folder.chmod(0o777)  # anybody could put code there
    assert answer() == "11.0 True"


def test_without_the_private_parts_of_numba_its_own_cache_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba_cache, "EXTENDS", False)
    assert njit(cache=True)(twice)(1.0) == 2.0
    assert list(tmp_path.rglob("*.nbi"))
