"""No thread imports anything: beside another thread that imports, a module may be only half there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from photostereo.capture import write_diligent
from photostereo_lab.scenes import dome_lights, render_scene

#: Run the command line, and print the modules that another than the main thread looked for.
WATCHED = """
import json, sys, threading

class Watch:
    found = []

    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            self.found.append(name)
        return None

sys.meta_path.insert(0, Watch())
if sys.argv[1] == "--thread":  # shows that the watch sees one
    thread = threading.Thread(target=lambda: __import__("this_module_is_not_there"))
    threading.excepthook = lambda problem: None
    thread.start()
    thread.join()
else:
    from photostereo.__main__ import main

    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
print(json.dumps(Watch.found))
"""


def imported_by_threads(*words: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def test_the_watch_sees_a_thread_that_imports() -> None:
    assert imported_by_threads("--thread") == ["this_module_is_not_there"]


@pytest.mark.parametrize(
    "options",
    [[], ["--method", "dlsr", "--color"], ["--no-surface"], ["--no-report"]],
)
def test_no_thread_of_a_solve_imports(tmp_path, options: list[str]) -> None:
    scene = render_scene("vase", size=40, lights=dome_lights(6), color=True)
    folder = write_diligent(scene, tmp_path / "vasePNG")
    out = str(tmp_path / "out")
    assert imported_by_threads("solve", str(folder), "--out", out, "-q", *options) == []
