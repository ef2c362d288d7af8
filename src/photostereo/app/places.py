"""Folders of the user: the app's state, dropped photographs, recent captures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Any

from photostereo.capture.layouts.folder import photographs_and_mask
from photostereo.capture.loading import is_capture_folder
from photostereo.core.errors import PhotostereoError
from photostereo.io.atomic import write_json
from photostereo.io.safe import read_json
from photostereo.io.schema import check_facts

#: Maximum number of recent captures.
_RECENT = 12
#: Maximum number of folder entries read.
_LISTED = 2000


def state_folder() -> Path:
    """Return the folder for the app's state; ``PHOTOSTEREO_STATE`` overrides it."""
    if given := os.environ.get("PHOTOSTEREO_STATE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "photostereo"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "photostereo"
    return Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local" / "state")) / "photostereo"


def captures_folder() -> Path:
    """Return the folder for dropped photographs; ``PHOTOSTEREO_CAPTURES`` overrides it."""
    if given := os.environ.get("PHOTOSTEREO_CAPTURES"):
        return Path(given)
    pictures = Path.home() / "Pictures"
    return (pictures if pictures.is_dir() else Path.home()) / "photostereo"


def free_place(folder: Path, name: str, suffix: str = "") -> Path:
    """Return an unused path in a folder: the name, or the name with a number."""
    paths = (folder / f"{name}{'' if n == 1 else f'-{n}'}{suffix}" for n in count(1))
    return next(path for path in paths if not path.exists())


def recent_captures() -> list[dict[str, Any]]:
    """List recent captures that still exist, latest first."""
    file = state_folder() / "recent.json"
    try:
        facts = read_json(file, "list of captures", remedy="")
        check_facts(facts, [{"folder": str}], ValueError)
    except (PhotostereoError, ValueError):
        return []
    folders = [Path(entry["folder"]) for entry in facts]
    return [{"folder": str(f), "name": f.name} for f in folders if f.is_dir()][:_RECENT]


def remember(folder: Path) -> None:
    """Put a capture first in the list of recent captures."""
    known = [{"folder": str(folder)}]
    known += [{"folder": e["folder"]} for e in recent_captures() if e["folder"] != str(folder)]
    with suppress(OSError, PhotostereoError):  # the app also works if the home folder is read-only
        state_folder().mkdir(parents=True, exist_ok=True)
        write_json(state_folder() / "recent.json", known[:_RECENT])


def list_folder(path: Path) -> dict[str, Any]:
    """List the subfolders of a folder and count its photographs; no file content is returned."""
    entries = islice(path.iterdir(), _LISTED)
    folders = [
        entry.name for entry in entries if not entry.name.startswith(".") and os.path.isdir(entry)
    ]
    try:
        photographs = len(photographs_and_mask(path)[0])
    except PhotostereoError:
        photographs = 0
    return {
        "path": str(path),
        "parent": None if path.parent == path else str(path.parent),
        "folders": sorted(folders, key=str.casefold),
        "photographs": photographs,
        "is_capture": is_capture_folder(path),
    }


def show_in_folder(path: Path) -> bool:
    """Open the system's file manager; return False if there is none."""
    if sys.platform == "win32":
        command = ["explorer", f"/select,{path}"]
    else:
        opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
        command = (
            []
            if opener is None
            else [opener, *(["-R"] if sys.platform == "darwin" else []), str(path)]
        )
    if not command:
        return False
    subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return True
