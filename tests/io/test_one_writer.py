"""Everything is written and read in one place: no file of ours goes around it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"": ROOT / "src" / "photostereo", "lab/": ROOT / "lab" / "src" / "photostereo_lab"}
FILES = {
    f"{prefix}{path.relative_to(source).as_posix()}": path
    for prefix, source in SOURCES.items()
    for path in source.rglob("*.py")
}

#: Calls that write or read a file by themselves.
WRITERS = {
    "write_text",
    "write_bytes",
    "save",
    "savez",
    "savez_compressed",
    "savetxt",
    "dump",
    "imwrite",
}
READERS = {"read_text", "read_bytes", "load", "loads", "loadtxt", "loadmat", "imread", "fromfile"}
OWNERS = {"np", "numpy", "json", "cv2", "pickle", "tifffile"}

#: Where one of them is right, and why.
ALLOWED = {
    "app/process.py": "events from our own worker",
    "app/worker.py": "tasks from our own server",
    "app/endpoints.py": "questions from the page, limited; pictures that our worker has written",
    "app/session.py": "a picture on its way to the worker, in a temporary folder",
    "example/__init__.py": "an archive of the package",
    "lab/scenes/example.py": "into memory",
    "lab/sweeps/database.py": "JSON from our own database",
    "lab/sweeps/worker.py": "maps of a trial and keys, in memory",
    "lab/training/loop.py": "into memory, and checkpoints",
    "batch/ledger.py": "JSON from our own database",
    "batch/local_pool.py": "outcomes from our own workers",
    "batch/local_worker.py": "jobs from our own process",
    "batch/settings.py": "the content of captures and files, hashed",
    "batch/page.py": "pictures that this run has written",
    "core/findings.py": "our own sources",
    "cli/command.py": "our own sources",
    "runtime/cuda_kernels.py": "our own sources",
    "runtime/keeping.py": "our own sources, hashed",
    "report/document.py": "our own sources",
    "report/pictures.py": "our own sources",
    "report/serving.py": "arrays of a result, mapped tile by tile; pages as they are",
    "report/surface_parts.py": "the data of a page that was read safely",
    "results/formats/material.py": "what it has just encoded",
    "results/formats/obj.py": "into memory",
    "results/maps.py": "into the file that the writer has opened",
    "capture/layouts/archive.py": "into the file that the writer has opened",
    "capture/layouts/diligent.py": "into the file that the writer has opened",
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_private_way_to_files(name: str) -> None:
    if name.startswith("io/") or name in ALLOWED:
        return
    for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        called, owner = node.func.attr, node.func.value
        of_library = isinstance(owner, ast.Name) and owner.id in OWNERS
        of_path = called in {"write_text", "write_bytes", "read_text", "read_bytes"}
        assert not (called in WRITERS and (of_library or of_path)), (
            f"{name}:{node.lineno} writes by itself"
        )
        assert not (called in READERS and (of_library or of_path)), (
            f"{name}:{node.lineno} reads by itself"
        )
