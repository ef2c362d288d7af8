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

from photostereo.app.errors import NotFoundError
from photostereo.capture.layouts.folder import photographs_and_mask
from photostereo.capture.loading import is_capture_folder, recognize
from photostereo.core.errors import PhotostereoError
from photostereo.io.atomic import write_json
from photostereo.io.images import is_image, unreadable_folder
from photostereo.io.safe import read_json
from photostereo.io.schema import check_facts

#: Maximum number of recent captures: a screenful.
RECENT = 12
#: Maximum number of folder entries read, so that a folder with a million files does not block the app.
LISTED = 2000


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


def user_path(text: str) -> Path:
    """Return the absolute path that a user means; raise a :class:`NotFoundError` if there can be none."""
    try:
        return Path(text).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # an unknown ~user, a symlink loop, a NUL
        raise NotFoundError(f"There is no folder {text!r}.", code="no-such-folder") from None


def free_place(folder: Path, name: str, suffix: str = "") -> Path:
    """Return an unused path in a folder: the name, or the name with a number."""
    paths = (folder / f"{name}{'' if n == 1 else f'-{n}'}{suffix}" for n in count(1))
    return next(path for path in paths if not path.exists())


def recent_captures() -> list[dict[str, Any]]:
    """List recent captures that still exist, latest first."""
    file = state_folder() / "recent.json"
    try:
        entries = read_json(file, "list of captures", remedy="")
        check_facts(entries, [{"folder": str}], ValueError)
    except (PhotostereoError, ValueError):
        return []
    folders = [Path(entry["folder"]) for entry in entries]
    return [{"folder": str(f), "name": f.name} for f in folders if f.is_dir()][:RECENT]


def remember(folder: Path) -> None:
    """Put a capture first in the list of recent captures."""
    entries = [{"folder": str(folder)}]
    for entry in recent_captures():
        if entry["folder"] != str(folder):
            entries.append({"folder": entry["folder"]})
    with suppress(OSError, PhotostereoError):  # the app also works if the home folder is read-only
        state_folder().mkdir(parents=True, exist_ok=True)
        write_json(state_folder() / "recent.json", entries[:RECENT])


def list_folder(path: Path) -> dict[str, Any]:
    """List the subfolders and capture files of a folder and count its photographs; no file content is returned."""
    try:
        entries = sorted(islice(path.iterdir(), LISTED), key=lambda entry: entry.name.casefold())
    except OSError as problem:
        raise unreadable_folder(path, problem) from None
    entries = [entry for entry in entries if not entry.name.startswith(".")]
    try:
        photographs = len(photographs_and_mask(path)[0])
    except PhotostereoError:
        photographs = 0
    return {
        "path": str(path),
        "parent": None if path.parent == path else str(path.parent),
        "folders": [entry.name for entry in entries if os.path.isdir(entry)],
        "files": [entry.name for entry in entries if is_capture_file(entry)],
        "photographs": photographs,
        "is_capture": is_capture_folder(path),
    }


def is_capture_file(path: Path) -> bool:
    """Whether a file is a capture by itself, such as an archive."""
    try:
        return path.is_file() and not is_image(path) and recognize(path) is not None
    except (PhotostereoError, OSError):
        return False


def needs_import(path: Path) -> bool:
    """Whether a capture is a file, or a folder that its layout can only read as a whole."""
    if path.is_file():
        return True
    try:
        layout: Any = recognize(path)
    except (PhotostereoError, OSError):
        return False
    return layout is not None and not hasattr(layout, "find")


def show_in_folder(path: Path) -> bool:
    """Open the system's file manager; return False if there is none."""
    if sys.platform == "win32":
        command = ["explorer", f"/select,{path}"]
    else:
        name = "open" if sys.platform == "darwin" else "xdg-open"
        opener = shutil.which(name)
        if opener is None:
            return False
        command = [opener, str(path)]
        if sys.platform == "darwin":
            command.insert(1, "-R")
    subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return True
