"""Files are read and written in one place, ``photostereo.io``: no other module goes around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"": ROOT / "src" / "photostereo", "lab/": ROOT / "lab" / "src" / "photostereo_lab"}
FILES = {
    f"{prefix}{path.relative_to(source).as_posix()}": path
    for prefix, source in SOURCES.items()
    for path in source.rglob("*.py")
}

#: Functions of libraries that read or write a file, or decode what was read.
OF_LIBRARIES = {
    "save",
    "savez",
    "savez_compressed",
    "savetxt",
    "dump",
    "imwrite",
    "load",
    "loads",
    "loadtxt",
    "loadmat",
    "imread",
    "fromfile",
}
LIBRARIES = {"np", "numpy", "json", "cv2", "pickle", "tifffile"}
#: Methods of paths.
OF_PATHS = {"write_text", "write_bytes", "read_text", "read_bytes"}
#: Objects whose ``open`` opens no file.
NO_FILES = {"webbrowser", "os", "self", "session", "sessions", "examination"}

#: Where one of them is right, and why.
ALLOWED = {
    "app/drops.py": "photographs from the browser, in a folder of their own",
    "app/endpoints.py": "questions from the page, limited; our own pages",
    "app/process.py": "events from our own worker",
    "app/server.py": "the page that opens the browser",
    "app/session.py": "a picture on its way to the worker, in a temporary folder",
    "app/work_folder.py": "a lock",
    "app/worker.py": "tasks from our own server",
    "batch/ledger.py": "JSON from our own database, and a line at the end of a file",
    "batch/local_pool.py": "outcomes from our own workers",
    "batch/local_worker.py": "jobs from our own process",
    "batch/settings.py": "the content of captures and files, hashed",
    "capture/layouts/archive.py": "into the file that the writer has opened",
    "capture/layouts/diligent.py": "into the file that the writer has opened",
    "cli/command.py": "our own sources",
    "cli/crash.py": "the last resort: writing atomically may be what failed",
    "cli/streams.py": "output that goes nowhere",
    "core/findings.py": "our own sources",
    "example/__init__.py": "an archive of the package",
    "lab/plausible/captures.py": "captures of a run, in its own folder",
    "lab/scenes/example.py": "into memory",
    "lab/sweeps/database.py": "JSON from our own database",
    "lab/sweeps/worker.py": "maps of a trial and keys, in memory",
    "lab/training/loop.py": "into memory, checkpoints, and a line at the end of a file",
    "pipeline/write_results.py": "the digest of a photograph",
    "report/document.py": "our own sources",
    "report/pictures.py": "our own sources",
    "results/formats/obj.py": "into memory",
    "results/maps.py": "into the file that the writer has opened",
    "runtime/cuda_kernels.py": "our own sources",
    "runtime/numba_cache.py": "our own sources, hashed",
    "surface/topography.py": "into memory",
}


def own_ways(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every call that reads or writes by itself."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield node.lineno, "open"
        if not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        owner = node.func.value
        last = getattr(owner, "id", "") or getattr(owner, "attr", "")
        of_library = name in OF_LIBRARIES and isinstance(owner, ast.Name) and last in LIBRARIES
        opens = name == "open" and last not in NO_FILES
        if of_library or name in OF_PATHS or opens:
            yield node.lineno, name


def test_no_module_has_its_own_way_to_files() -> None:
    guilty = [
        f"{name}:{line} calls {call}"
        for name, path in sorted(FILES.items())
        if not name.startswith("io/") and name not in ALLOWED
        for line, call in own_ways(path.read_text(encoding="utf-8"))
    ]
    assert guilty == []


def test_every_exception_is_needed() -> None:
    idle = [
        name
        for name in ALLOWED
        if name not in FILES or not any(own_ways(FILES[name].read_text(encoding="utf-8")))
    ]
    assert idle == []


@pytest.mark.parametrize(
    "source",
    ["open(path)", "path.open()", "self.path.open('a')", "np.load(path)", "path.read_text()"],
)
def test_every_way_is_seen(source: str) -> None:
    assert len(list(own_ways(source))) == 1
