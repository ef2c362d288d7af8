"""Old names work and warn, for as long as they say."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest

from photostereo import __version__
from photostereo.core.deprecation import deprecated, removal_is_due, rename_parameter

SOURCES = Path(__file__).resolve().parents[2] / "src" / "photostereo"


@rename_parameter("size", "texels", since="0.2", until="0.4")
def area(scale: int, *, texels: int = 1) -> int:
    """Return an area."""
    return scale * texels**2


@deprecated("ps.solve", since="0.2", until="0.4")
def reconstruct(method: str) -> str:
    return method


def test_the_old_name_of_a_parameter_works_and_warns() -> None:
    with pytest.warns(FutureWarning, match="size of area is called texels since version 0.2"):
        assert area(2, size=3) == 18  # type: ignore[call-arg]


def test_the_new_name_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert area(2, texels=3) == 18
    assert area.__doc__ == "Return an area."


def test_both_names_at_once_are_a_mistake() -> None:
    with pytest.raises(TypeError, match="both texels and its old name size"):
        area(2, size=3, texels=3)  # type: ignore[call-arg]


def test_a_deprecated_function_works_and_names_its_successor() -> None:
    with pytest.warns(FutureWarning, match="Use ps.solve") as caught:
        assert reconstruct("ls") == "ls"
    assert caught[0].filename == __file__, "the warning is about the caller's line"


def test_nothing_outlives_its_last_version() -> None:
    overdue = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if name in ("rename_parameter", "deprecated"):
                words = {word.arg: word.value for word in node.keywords}  # type: ignore[attr-defined]
                until = words["until"]
                assert isinstance(until, ast.Constant)
                if removal_is_due(str(until.value), __version__):
                    overdue.append(f"{path}:{node.lineno}")  # type: ignore[attr-defined]
    assert overdue == []
