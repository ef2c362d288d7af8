"""Imports point one way: a layer never imports one that stands on it, not even inside a function."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "photostereo"

#: Lowest first. A module may import from its own layer and from those before it.
LAYERS = [
    {"_version", "errors", "conventions", "interruption", "monitor", "threads"},
    {"files", "parameters", "backend", "plugins"},
    {"lights"},
    {"capture"},
    {"quality", "reconstruction", "scenes"},
    {"reflectance", "priors"},
    {"solver"},
    {"testing"},
    {"surface"},
    {"exports"},
    {"report"},
    {"results"},
    {"jobs"},
    {"paper", "batch"},
    {"commands"},
    {"cli", "__init__", "__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
#: Of the rooms below them, what the mathematics may not know: arrays only.
UNKNOWN_TO_MATHEMATICS = {"files", "lights", "capture", "scenes"}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("photostereo."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "photostereo":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("photostereo.")}
    return names


def layer_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"say in LAYERS where {own} belongs"
    if own == "__init__":
        return
    for name in imported(path) - {"__version__"}:
        assert RANK[name] <= RANK[own], f"{path.relative_to(SOURCE)} imports {name}, which stands above it"


@pytest.mark.parametrize("layer", ["reflectance", "priors"])
def test_mathematics_knows_arrays_only(layer: str) -> None:
    for path in (SOURCE / layer).rglob("*.py"):
        assert not imported(path) & UNKNOWN_TO_MATHEMATICS, path
