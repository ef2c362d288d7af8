"""Build the source archive and the wheel and try both, as somebody who downloads them would.

    python tools/test_package.py               into dist/
    python tools/test_package.py --lowest      with the lowest hatchling that pyproject.toml allows

The wheel is built from the source archive, installed into a new environment and used outside of the checkout; the
source archive passes its own tests of files and conventions.
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
#: Tests that need nothing but the archive and take seconds.
OWN_TESTS = ("tests/test_conventions.py", "tests/test_import_direction.py", "tests/results/test_files.py")


def run(*words: str | Path, cwd: Path) -> None:
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


def python_in(folder: Path, *packages: str) -> Path:
    """The interpreter of a new environment with these packages."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", *packages, cwd=folder)
    return python


def main() -> None:
    lowest = re.search(r'"hatchling>=([\d.]+)"', (PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert lowest is not None
    hatchling = f"hatchling=={lowest[1]}" if "--lowest" in sys.argv else "hatchling"
    dist = PROJECT / "dist"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary).resolve()
        builder = python_in(place / "builder", "build", "twine", hatchling)
        run(builder, "-m", "build", "--no-isolation", "--sdist", "--outdir", dist, PROJECT, cwd=place)
        archive = max(dist.glob("photostereo-*.tar.gz"), key=lambda path: path.stat().st_mtime)
        with tarfile.open(archive) as opened:
            opened.extractall(place, filter="data")
        source = place / archive.name.removesuffix(".tar.gz")
        run(builder, "-m", "build", "--no-isolation", "--wheel", "--outdir", dist, source, cwd=place)
        wheel = max(dist.glob("photostereo-*.whl"), key=lambda path: path.stat().st_mtime)
        run(builder, "-m", "twine", "check", archive, wheel, cwd=place)
        user = python_in(place / "user", f"{wheel}[dev]")
        outside = place / "outside"
        outside.mkdir()
        command = [user, "-m", "photostereo"]
        run(*command, "scene", "sphere", "--out", "ball", "--size", "32", "--lights", "6", cwd=outside)
        run(*command, "solve", "ball", "--method", "ls", "--out", "result", cwd=outside)
        assert (outside / "result" / "report.html").is_file() and (outside / "result" / "mesh.glb").is_file()
        run(user, "-m", "pytest", "-p", "no:cacheprovider", *OWN_TESTS, cwd=source)


if __name__ == "__main__":
    main()
