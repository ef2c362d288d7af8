"""Users read, once, that loops are being compiled; not when they come from the disk."""

from __future__ import annotations

import os
import subprocess
import sys

from photostereo.runtime.compile_notice import MESSAGE, announcing
from photostereo.runtime.loops import njit


def test_said_once_and_only_if_something_is_compiled() -> None:
    def twice(x: float) -> float:
        return 2 * x

    compiled, said = njit()(twice), []
    with announcing(said.append):
        compiled(1.0)
        compiled(1)  # another type: compiled again, but not said again
    assert said == [MESSAGE]
    with announcing(said.append):
        compiled(2.0)
    assert said == [MESSAGE]


def test_the_terminal_says_so_in_a_new_environment(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from photostereo.cli.terminal import Terminal\n"
        "import sys\n"
        "with Terminal(quiet=len(sys.argv) > 1):\n"
        "    from photostereo.runtime.loops import njit\n"
        "    @njit(cache=True)\n"
        "    def three():\n"
        "        return 3\n"
        "    assert three() == 3\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(*options: str) -> str:
        command = [sys.executable, str(program), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stderr.replace("\n", " ")

    assert MESSAGE in run()
    assert MESSAGE not in run()  # from the disk now
    (tmp_path / "other").mkdir()
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "other")
    assert MESSAGE not in run("quiet")
