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
from photostereo.capture.options import ReadOptions

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
    if not issubclass(
        item if inspect.isclass(item) else object, Warning | Exception
    ):  # a page of their own
        assert f"photostereo.{name}\n" in REFERENCE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", re.findall(r"autofunction:: photostereo\.(\S+)", REFERENCE.read_text(encoding="utf-8"))
)
def test_docstrings_name_exactly_the_parameters(name):
    """As numpydoc wants it: ``a, b : type`` under *Parameters*. ``load`` refers to the fields of ``ReadOptions``."""
    function = pkgutil.resolve_name(f"photostereo.{name}")
    declared = set(inspect.signature(function).parameters)
    section = re.search(
        r"Parameters\n-+\n(.*?)(?=\n\S[^\n]*\n-+\n|\Z)", inspect.cleandoc(function.__doc__), re.S
    )
    assert (section is not None) == bool(declared)
    entries = [line for line in section[1].splitlines() if re.match(r"\S", line)] if section else []
    named = {
        part.strip().lstrip("*") for entry in entries for part in entry.split(" : ")[0].split(",")
    }
    if name == "load":
        named |= {*ReadOptions.__dataclass_fields__}
        named -= {"options"}
    assert named == declared


def test_the_architecture_page_names_what_there_is():
    """Every function of the data flow."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "architecture.md").read_text(
        encoding="utf-8"
    )
    way = page.split("## Data flow")[1].split("## Contracts")[0]
    names = re.findall(r"`((?:[a-z_]+\.)+[A-Za-z_.]+)`", way)
    assert len(names) > 12
    for name in names:
        assert pkgutil.resolve_name(f"photostereo.{name}") is not None, name
