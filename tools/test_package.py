"""Build source archives and wheels of photostereo and the lab, and install and run them in a clean environment.

    python tools/test_package.py               into dist/
    python tools/test_package.py --lowest      with the lowest hatchling that pyproject.toml allows

Each wheel is built from its source archive; both are installed into a new environment and used outside of the checkout.
The source archive passes its own tests of files and conventions.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
DIST = PROJECT / "dist"
#: Tests that need nothing but the archive and take seconds.
OWN_TESTS = (
    "tests/test_conventions.py",
    "tests/test_import_direction.py",
    "tests/results/test_files.py",
)


def run(*words: str | Path, cwd: Path) -> None:
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


def python_in(folder: Path, *packages: str) -> Path:
    """The interpreter of a new environment with these packages."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", *packages, cwd=folder)
    return python


def build(python: Path, project: Path, name: str, place: Path) -> tuple[Path, Path]:
    """The wheel of a project, built from its source archive, both in dist/; the unpacked source."""
    words = (python, "-m", "build", "--no-isolation", "--outdir", DIST)
    run(*words, "--sdist", project, cwd=place)
    archive = max(DIST.glob(f"{name}-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    source = place / archive.name.removesuffix(".tar.gz")
    run(*words, "--wheel", source, cwd=place)
    wheel = max(DIST.glob(f"{name}-*.whl"), key=lambda path: path.stat().st_mtime)
    run(python, "-m", "twine", "check", archive, wheel, cwd=place)
    return wheel, source


def main() -> None:
    lowest = re.search(
        r'"hatchling>=([\d.]+)"', (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert lowest is not None
    hatchling = f"hatchling=={lowest[1]}" if "--lowest" in sys.argv else "hatchling"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary).resolve()
        builder = python_in(place / "builder", "build", "twine", hatchling)
        wheel, source = build(builder, PROJECT, "photostereo", place)
        lab, _ = build(builder, PROJECT / "lab", "photostereo_lab", place)
        user = python_in(place / "user", f"{wheel}[dev]", str(lab))
        outside = place / "outside"
        outside.mkdir()
        command = [user, "-m", "photostereo"]
        run(
            *command,
            "scene",
            "sphere",
            "--out",
            "ball",
            "--size",
            "32",
            "--lights",
            "6",
            cwd=outside,
        )
        run(*command, "solve", "ball", "--method", "ls", "--out", "result", cwd=outside)
        assert (outside / "result" / "report.html").is_file() and (
            outside / "result" / "mesh.glb"
        ).is_file()
        run(*command, "figure", "result", "--out", "figure.pdf", cwd=outside)
        run(*command, "reproduce", "--list", cwd=outside)
        run(user, "-m", "pytest", "-p", "no:cacheprovider", *OWN_TESTS, cwd=source)


if __name__ == "__main__":
    main()
