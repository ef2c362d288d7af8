"""Run the fast tests with the lowest versions that pyproject.toml declares, and with the newest there are.

    make test-versions                 the lowest on Python 3.11, the newest on 3.12 to 3.14
    python tools/test_versions.py 3.11 -- tests/surface -x     one of them, with arguments for pytest

Python versions that are not installed are skipped with a message. Environments are kept in .venv-versions/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PLACE = PROJECT / ".venv-versions"
#: Versions of Python, and how uv resolves the dependencies for each.
CASES = {"3.11": "lowest-direct", "3.12": "highest", "3.13": "highest", "3.14": "highest"}
#: As ``make test`` runs them.
IN_TWO_PROCESSES = ("--numprocesses", "2", "--dist", "loadfile")


def find_python(version: str) -> str | None:
    """Find an interpreter of this version: this one, one on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [
        sys.executable,
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"{version}*/bin/python")),
    ]
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        asked = subprocess.run(
            [str(candidate), "-c", question], capture_output=True, text=True, check=False
        )
        if asked.stdout.strip() == version:
            return str(candidate)
    return None


def install_uv() -> str:
    """Return the path of uv; install it into its own environment if necessary."""
    found = shutil.which("uv")
    if found:
        return found
    place = PLACE / "uv"
    if not (place / "bin" / "uv").exists():
        venv.create(place, with_pip=True)
        subprocess.run(
            [place / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True
        )
    return str(place / "bin" / "uv")


def run_tests(uv: str, version: str, resolution: str, arguments: list[str]) -> bool:
    """Install the packages into an environment for this case, and run the tests; return whether they passed."""
    python = find_python(version)
    if python is None:
        say(f"Python {version} is not installed: skipped.")
        return True
    place = PLACE / f"{version}-{resolution}"
    say(f"Python {version}, {resolution} versions of the dependencies")
    subprocess.run(
        [uv, "venv", "--quiet", "--clear", "--seed", "--python", python, place], check=True
    )
    inside = {**os.environ, "VIRTUAL_ENV": str(place)}
    install = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--resolution",
        resolution,
        "--editable",
        f"{PROJECT}[dev]",
    ]
    install += ["--editable", str(PROJECT / "lab")]
    subprocess.run(install, check=True, env=inside)
    tests = [
        place / "bin" / "python",
        "-m",
        "pytest",
        "-m",
        "not slow",
        *IN_TWO_PROCESSES,
        *arguments,
    ]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(tests, cwd=PROJECT, check=False, env=one_thread).returncode == 0


def say(text: str) -> None:
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


def main() -> int:
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    versions, arguments = words[:cut] or list(CASES), words[cut + 1 :]
    uv = install_uv()
    failed = [
        version for version in versions if not run_tests(uv, version, CASES[version], arguments)
    ]
    say(f"Failed on Python {', '.join(failed)}." if failed else "All passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
