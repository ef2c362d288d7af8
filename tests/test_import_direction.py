"""Imports point one way: a layer never imports one that stands on it, not even inside a function or by name."""

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
#: Of the layers below it, what the mathematics may not import: it works on arrays only.
UNKNOWN_TO_MATHEMATICS = {"io", "photographs", "lights", "masks", "capture"}
#: Modules of the mathematics that may read a file: a parameter may name one.
READS_A_FILE = {"priors/dictionary/entry.py", "reflectance/learned/weights.py"}
MODULES = {
    ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for package in (SOURCE, LAB)
    for path in package.rglob("*.py")
}


def without_types(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes of a module, without what it imports for its types alone, and without its docstrings."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            left_out |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Expr):
            left_out.add(id(node.value))
    return [node for node in ast.walk(tree) if id(node) not in left_out]


def named_modules(nodes: list[ast.AST]) -> set[str]:
    """Return the modules that strings name, such as ``import_module("photostereo.report.page")``."""
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and "." in text and text in MODULES}


def imported(source: str) -> set[str]:
    """Return the layers that a module imports from."""
    nodes = without_types(ast.parse(source))
    names = {module.split(".")[1] for module in named_modules(nodes)}
    for node in nodes:
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


def test_imports_point_down() -> None:
    upward = []
    for path in sorted(SOURCE.rglob("*.py")):
        layer = layer_of(path)
        assert layer in RANK, f"say in LAYERS where {layer} belongs"
        if layer == "__init__":
            continue
        for name in imported(path.read_text(encoding="utf-8")) - {"__version__"}:
            if RANK[name] > RANK[layer]:
                upward.append(f"{path.relative_to(SOURCE)} imports {name}, which stands above it")
    assert upward == []


@pytest.mark.parametrize(
    "source",
    [
        "from photostereo.report import page",
        "import photostereo.report.page",
        "from photostereo import report",
        "def f():\n    from photostereo.report.page import write_report",
        'import_module("photostereo.report.page")',
    ],
)
def test_every_way_to_import_is_seen(source: str) -> None:
    assert imported(source) == {"report"}


def test_what_is_imported_for_types_is_no_import() -> None:
    assert imported("if TYPE_CHECKING:\n    from photostereo.report import page") == set()


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
            names = imported(path.read_text(encoding="utf-8"))
            assert not names & UNKNOWN_TO_MATHEMATICS, path


def modules_imported(name: str) -> set[str]:
    """Return the modules that one imports, at once or inside a function; not those for its types alone."""
    nodes = without_types(ast.parse(MODULES[name].read_text(encoding="utf-8")))
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            targets = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {full if full in MODULES else node.module for full in targets}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    stub = MODULES[name].with_name("__init__.pyi")
    if MODULES[name].name == "__init__.py" and stub.is_file():
        tree = ast.parse(stub.read_text(encoding="utf-8"))
        modules |= {
            f"{name}.{node.module}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        }
    return modules & MODULES.keys()


def test_no_module_comes_back_to_itself() -> None:
    """Not even by imports inside functions, or through the names that its package gives out."""
    graph = {name: modules_imported(name) for name in MODULES}
    while graph:  # take away what imports nothing that is left
        free = {name for name, modules in graph.items() if not modules & graph.keys()}
        assert free, f"in a circle, or above one: {sorted(graph)}"
        graph = {name: modules for name, modules in graph.items() if name not in free}
