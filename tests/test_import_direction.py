"""Imports point one way: a layer never imports one that stands on it, not even inside a function."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "photostereo"
#: A package of its own that stands on all of them.
LAB = SOURCE.parents[1] / "lab" / "src" / "photostereo_lab"

#: Lowest first. A module may import from its own layer and from those before it.
LAYERS = [
    {"_version", "core"},
    {"runtime"},
    {"io"},
    {"photographs"},
    {"lights"},
    {"masks"},
    {"capture"},
    {"diagnosis"},
    {"reflectance", "priors", "surface"},
    {"solver", "rig"},
    {"example", "results"},
    {"report"},
    {"pipeline"},
    {"app"},
    {"batch"},
    {"cli", "__init__", "__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
#: Of the rooms below them, what the mathematics may not know: arrays only.
UNKNOWN_TO_MATHEMATICS = {"io", "photographs", "lights", "masks", "capture"}
#: A parameter may name a file.
READS_A_FILE = {"priors/dictionary/entry.py", "reflectance/learned/weights.py"}


def without_types(tree: ast.Module) -> list[ast.AST]:
    """The nodes of a module, without what it imports for its types alone."""
    for_types = [
        n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
    ]
    left_out = {id(inner) for node in for_types for inner in ast.walk(node)}
    return [node for node in ast.walk(tree) if id(node) not in left_out]


def imported(path: Path) -> set[str]:
    names = set()
    for node in without_types(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_point_down(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"say in LAYERS where {own} belongs"
    if own == "__init__":
        return
    for name in imported(path) - {"__version__"}:
        assert RANK[name] <= RANK[own], (
            f"{path.relative_to(SOURCE)} imports {name}, which stands above it"
        )


def test_nothing_knows_the_lab() -> None:
    """It is installed separately, and announces its commands."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "photostereo_lab" for name in named), path


@pytest.mark.parametrize("layer", ["reflectance", "priors"])
def test_mathematics_knows_arrays_only(layer: str) -> None:
    for path in (SOURCE / layer).rglob("*.py"):
        if path.relative_to(SOURCE).as_posix() not in READS_A_FILE:
            assert not imported(path) & UNKNOWN_TO_MATHEMATICS, path


MODULES = {
    ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for package in (SOURCE, LAB)
    for path in package.rglob("*.py")
}


def modules_imported(name: str) -> set[str]:
    """Modules that one imports, at once or inside a function, or gives names of; not those for its types alone."""
    found = set()
    for node in without_types(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {full if full in MODULES else node.module for full in named}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    names_given = MODULES[name].with_name("__init__.pyi")
    if MODULES[name].name == "__init__.py" and names_given.is_file():
        stub = ast.parse(names_given.read_text(encoding="utf-8"))
        found |= {
            f"{name}.{node.module}" for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)
        }
    return found & MODULES.keys()


def test_no_module_comes_back_to_itself() -> None:
    """Not even by imports inside functions, or through the names that its package gives out."""
    graph = {name: modules_imported(name) for name in MODULES}
    while graph:  # take away what imports nothing that is left
        free = {name for name, found in graph.items() if not found & graph.keys()}
        assert free, f"in a circle, or above one: {sorted(graph)}"
        graph = {name: found for name, found in graph.items() if name not in free}
