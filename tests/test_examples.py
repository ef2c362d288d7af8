"""Every example of the gallery runs from start to end, as a reader would run it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples" / "gallery").glob("plot_*.py"))


def test_the_gallery_is_found() -> None:
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_notebook_runs() -> None:
    """Its cells in turn; what the last line of a cell gives can be shown."""
    path = EXAMPLES[0].parents[1] / "notebook.ipynb"
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            *before, last = cell["source"].split("\n")
            exec("\n".join(before), names)
            assert "<" in eval(last, names)._repr_html_()
