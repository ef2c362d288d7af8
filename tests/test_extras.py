"""A plain installation works without Dask, matplotlib and the lab, and says what is missing if they are needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from photostereo.capture.layouts.diligent import write_diligent
from photostereo_lab.scenes import render_scene

BLOCKED = """
import importlib.abc, importlib.util, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("dask", "distributed", "matplotlib", "torch"):
            raise ModuleNotFoundError(name)
        return None
sys.meta_path.insert(0, Missing())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("distributed", "matplotlib", "torch") else find(name, *rest)
from photostereo.__main__ import main
main()
"""
WITHOUT_LAB = """
import importlib.metadata
importlib.metadata.entry_points = lambda group: ()
from photostereo.__main__ import main
main()
"""


def run(*words: object, script: str = BLOCKED) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_solve_needs_neither(tmp_path) -> None:
    write_diligent(render_scene("sphere", size=32), tmp_path / "s")
    done = run("solve", tmp_path / "s", "-m", "ls", "--out", tmp_path / "o", "-q")
    assert done.returncode == 0, done.stderr


def test_a_batch_on_this_machine_needs_no_dask(tmp_path) -> None:
    write_diligent(render_scene("sphere", size=32), tmp_path / "s")
    done = run("batch", tmp_path / "s", "-m", "ls", "--out", tmp_path / "o", "--workers", 2, "-q")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "s" / "normals.npy").is_file()


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["batch", "{home}/s", "--out", "{home}/b", "--scheduler", "tcp://127.0.0.1:1"], "batch"),
        (["figure", "{home}/o", "--out", "{home}/f.png"], "figures"),
        (["train", "--out", "{home}/w.npz"], "gpu"),
    ],
)
def test_what_is_missing_is_named(words, extra, tmp_path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "capture.npz").touch()
    done = run(*(word.format(home=tmp_path) for word in words))
    assert done.returncode == 2
    assert f"photostereo[{extra}]" in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("command", ["figure", "sweep", "reproduce", "train"])
def test_without_the_lab_its_commands_say_how_to_install_it(command) -> None:
    done = run(command, "--help", script=WITHOUT_LAB)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "pip install" in done.stderr
    error = json.loads(run(command, "--json", script=WITHOUT_LAB).stdout)["error"]
    assert (error["code"], error["values"]) == ("missing-lab", {"command": command})


def test_without_the_lab_the_help_lists_what_is_there() -> None:
    shown = run("--help", script=WITHOUT_LAB).stdout
    assert "│ export " in shown and "│ sweep " not in shown and "─ Research " not in shown
