"""Only the lights and the kernels multiply a matrix of light directions; everything else asks them.

``normals @ lights`` is right for distant lights alone. :class:`photostereo.lights.lights.Lights` and the functions of
:mod:`photostereo.runtime.illumination` give the same product for near lights, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "photostereo"

#: They find lights or render under lights of their own; photographs know none.
OWNERS = {"lights", "photographs"}
#: The products themselves; the inner loops of models.
FILES = {
    "runtime/illumination.py",
    "reflectance/learned/torch_network.py",
    "reflectance/piecewise/elimination.py",
    "rig/rig.py",  # distant lights only, and it says so
}
PRODUCTS = {"dot", "einsum", "lstsq", "matmul", "pinv", "tensordot"}
#: What gives the same numbers in another form.
SAME, SAME_METHODS = (
    {"asarray", "ascontiguousarray", "array", "cast", "like"},
    {"astype", "copy", "swapaxes"},
)
NAMES = {"directions", "lamps", "lights"}


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def factors(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    return node.args if isinstance(node, ast.Call) and name_of(node.func) in PRODUCTS else []


def is_bare(node: ast.expr) -> bool:
    """``lights``, perhaps transposed, indexed, in another precision, or as ``lights.matrix``."""
    while name_of(node) not in NAMES:
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and name_of(node.func) in SAME_METHODS:
            node = node.func
        elif isinstance(node, ast.Call) and node.args and name_of(node.func) in SAME:
            node = node.args[0]
        else:
            return False
    return True


def bare_products(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if any(map(is_bare, factors(node))):
            yield node.lineno


def outside() -> list[Path]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        owns = relative.parts[0] in OWNERS or relative.as_posix() in FILES
        if not owns and not path.stem.endswith("kernels"):
            found.append(path)
    return found


def test_nothing_else_multiplies_bare_lights() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in outside()
        for line in bare_products(path.read_text(encoding="utf-8"))
    ]
    assert not found, "use photostereo.runtime.illumination, which knows near lights"


@pytest.mark.parametrize(
    "line",
    [
        "normals @ lights.T",
        "capture.lights.directions @ n",
        "n @ capture.lights.matrix",
        "np.linalg.pinv(lights)",
        "np.tensordot(np.asarray(lights, float), images, axes=1)",
        "values @ like(lights[:, chosen].astype(np.float32), values)",
        "np.einsum('nd,di->ni', weight, self.lights)",
    ],
)
def test_it_would_be_noticed(line: str) -> None:
    assert list(bare_products(line)) == [1]


def test_products_by_name_are_fine() -> None:
    assert not list(bare_products("shading(normals, lights.matrix); seen.shading(normals) @ basis"))
