"""``index.md``: every run of a results folder on one page."""

from __future__ import annotations

from pathlib import Path

from photostereo.experiments.runs import NAMED_RUNS
from photostereo.experiments.store import Store


def write_index(store: Store) -> Path:
    """One page from the pages of the runs, in the paper's order."""
    parts = ["# The paper's experiments\n"]
    pages = [store.folder / name / "page.md" for name in NAMED_RUNS]
    parts += [page.read_text(encoding="utf-8") for page in pages if page.exists()]
    path = store.folder / "index.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path
