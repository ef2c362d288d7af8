"""Tests that need torch are marked `torch`: `make test` skips them without it, `make test-torch` runs them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

_TORCH_TESTS = Path(__file__).parent / "tests" / "gpu"
_SOURCES = [Path(__file__).parent / "src", Path(__file__).parent / "lab" / "src"]
_TRAINING = _SOURCES[1] / "photostereo_lab" / "training"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not collect doctests of modules that cannot be imported without torch."""
    needs_torch = collection_path.name.startswith("torch_") or _TRAINING in collection_path.parents
    own = any(source in collection_path.parents for source in _SOURCES)
    return True if own and needs_torch and find_spec("torch") is None else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of the torch code path and doctests that import torch; skip them without torch."""
    without = pytest.mark.skip(reason="PyTorch is not installed (the gpu extra)")
    for item in items:
        imports_torch = isinstance(item, pytest.DoctestItem) and any(
            "import torch" in example.source for example in item.dtest.examples
        )
        if imports_torch or _TORCH_TESTS in item.path.parents:
            item.add_marker(pytest.mark.torch)
        if item.get_closest_marker("torch") is not None and find_spec("torch") is None:
            item.add_marker(without)
