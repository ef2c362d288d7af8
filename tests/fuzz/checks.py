"""What must be true after every run, whatever it was given."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from .app import APP
from .cases import Case

#: What a run may add to its folder.
_ALLOWED = ("out", "new.npz")
#: What a run may add to or change, by its first word: stores, and what the app keeps beside the photographs.
_GROWING = {
    "sweep": ("swept/",),
    "reproduce": ("swept/",),
    "batch": ("batched/",),
    APP: ("capture/photostereo-", "capture/results", "capture/lights.csv"),
}


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below a folder by name, with a digest of its content."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*files, *folders):
            path = Path(place) / name
            regular = path.is_file() and not path.is_symlink()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if regular else "-"
            found[str(path.relative_to(folder))] = content
    return found


def complaints(
    case: Case, code: int | None, said: str, error: str, before: dict[str, str]
) -> list[str]:
    """What is wrong with how a run ended; empty where nothing is."""
    wrong = []
    # Some of the jobs of these commands may fail.
    has_jobs = case.words[0] in ("batch", "sweep")
    if code not in (0, 2) and not (code == 1 and has_jobs):
        wrong.append(f"exit code {code}")
    if "Traceback" in error or "Traceback" in said:
        wrong.append("traceback")
    if "--json" in case.words:
        wrong += _bad_answer(code, said)
    elif code == 2 and not any(word in error for word in ("Error: ", "Invalid value", "Usage:")):
        wrong.append("exit code 2 without a word")
    if "\x1b" in said + error or "\u202e" in said + error:
        wrong.append("escape sequences printed raw")
    after = snapshot(case.folder)
    in_place = case.words[0] == "mesh" and "--out" not in case.words
    growing = _GROWING.get(case.words[0])
    for name, content in before.items():
        renewed = in_place and code == 0 and name.startswith("solved")
        saved = code == 0 and name == "state.npz" and "--checkpoint" in case.words
        if growing and name.startswith(growing):
            continue
        if after.get(name) != content and not renewed and not saved:
            wrong.append(f"changed or deleted {name}")
    for name in after.keys() - before.keys():
        if growing and name.startswith(growing) and ".partial" not in name:
            continue
        allowed = name.split("/")[0] in _ALLOWED or (in_place and name.startswith("solved/"))
        if (
            not allowed
            or (code != 0 and name != "new.npz")
            or ".partial" in name
            or ".replaced" in name
        ):
            wrong.append(f"left {name}")
    if code == 0:
        written = (case.folder / name for name in sorted(after) if after[name] != before.get(name))
        wrong += _bad_results([path for path in written if path.is_file()])
    return wrong


def _bad_results(written: list[Path]) -> list[str]:
    """Arrays with values that are not finite, JSON that is not strict, among the files that a run wrote."""
    wrong = []
    for path in (path for path in written if path.suffix == ".npy"):
        array = np.load(path, allow_pickle=False)
        if path.name == "depth.npy" and (path.parent / "mask.npy").exists():
            array = array[np.load(path.parent / "mask.npy")]
        elif path.name == "depth.npy":
            array = array[~np.isnan(array)]
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            wrong.append(f"{path.name} has values that are not finite")
        elif path.name == "normals.npy":
            lengths = np.linalg.norm(array, axis=-1)
            if not (np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)).all():
                wrong.append("normals.npy has normals that are not unit vectors")
    for path in (path for path in written if path.suffix == ".json"):
        try:
            json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        except ValueError as problem:
            wrong.append(f"{path.name}: {problem}")
    return wrong


def _bad_answer(code: int | None, said: str) -> list[str]:
    """What is wrong with what ``--json`` printed: one strict JSON object and nothing else, an error where one was."""
    try:
        answer = json.loads(said, parse_constant=_refuse)
    except ValueError as problem:
        return [f"--json printed no JSON: {problem}"]
    is_error = isinstance(answer, dict) and "error" in answer
    return (
        [] if is_error == (code == 2) else [f"--json does not say how it ended (exit code {code})"]
    )


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
