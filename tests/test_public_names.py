"""The public names are what they say, whatever was imported before."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import photostereo as ps

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
#: What a SciPy user expects, in the order in which a capture meets it.
STEPS = ("load", "calibrate", "diagnose", "solve", "integrate", "write_report", "save")


def test_a_submodule_does_not_hide_the_function_of_its_name():
    code = "from photostereo.solver.prepared import prepare; import photostereo as ps; assert callable(ps.solve), ps.solve"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import photostereo.solver.solve; import photostereo as ps; assert callable(ps.solve) and callable(ps.load)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", sorted({*ps.__all__, *STEPS} - {"__version__"}))
def test_public_names_are_documented(name):
    """Each is in the reference, each function with an example that the doctests run."""
    item = getattr(ps, name)
    assert item.__doc__
    if inspect.isfunction(item):
        assert ">>>" in item.__doc__
    if not issubclass(item if inspect.isclass(item) else object, Warning | Exception):  # a page of their own
        assert f"photostereo.{name}\n" in REFERENCE.read_text(encoding="utf-8")


def test_the_architecture_page_names_what_there_is():
    """Every function of the data flow."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    way = page.split("## Data flow")[1].split("## Contracts")[0]
    names = re.findall(r"`((?:[a-z_]+\.)+[A-Za-z_.]+)`", way)
    assert len(names) > 12
    for name in names:
        assert pkgutil.resolve_name(f"photostereo.{name}") is not None, name
