"""The settings of a batch: read from a plan, checked before the first capture, and the key by which finished work is
recognized.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from numpy.typing import NDArray

from photostereo.capture.options import KEYWORDS, NAMED_FILES, ReadOptions
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.safe import read_toml
from photostereo.io.schema import NUMBER, check_facts
from photostereo.pipeline.settings import FLAT, Settings

#: Settings that make no sense in a plan: the group of reading options, and those of a single solve or process.
_NOT_IN_A_PLAN = ("reading", "workers", "checkpoint", "resume")
#: Settings that do not change a result and are not part of its key.
_NOT_IN_A_KEY = ("memory", "checkpoint", "resume")
#: Single-file captures up to this size are identified by their content, larger ones by their size.
HASHED_BYTES = 256 * 2**20
#: Settings that are written in a plan in another way than they are declared.
_WRITTEN_AS = {"surface": bool, "surface_method": str, "pixel_size": str, "memory": str}


def read_plan(file: Path) -> tuple[list[Path], Settings]:
    """Read the captures and settings of a batch plan in TOML; paths are relative to the plan."""
    document = read_toml(file, "plan")
    check_facts(document, _plan_spec(), lambda problem: _bad_plan(file, problem), closed=True)
    captures = document.pop("captures")
    if not captures:
        raise _bad_plan(file, "captures is empty")
    beside = file.absolute().parent
    settings = Settings().changed(**seen_from_anywhere(document, beside))
    return [beside / Path(path).expanduser() for path in captures], settings


def seen_from_anywhere(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return settings with absolute paths instead of those relative to a folder; words such as "full" stay."""
    files = {name: folder / given[name] for name in NAMED_FILES if name in given}
    return given | {name: str(file) for name, file in files.items() if file.exists()}


def _plan_spec() -> dict[str, Any]:
    """Return the names and types that a plan may have, from the declarations of the settings."""
    names = {"NDArray": NDArray}  # which the module of the options imports for type checkers only
    declared = {
        **get_type_hints(ReadOptions, localns=names),
        **get_type_hints(Settings, localns=names),
    }
    spec: dict[str, Any] = {"captures": [str]}
    for name in FLAT:
        if name not in _NOT_IN_A_PLAN:
            spec[f"{name}?"] = _WRITTEN_AS.get(name) or _spec_of(declared[name])
    return spec


def _spec_of(hint: Any) -> Any:
    """Return how a declared type is written in TOML, as for :func:`photostereo.io.schema.check_facts`.

    >>> _spec_of(bool), _spec_of(int | None), _spec_of(Sequence[str]), _spec_of(Mapping[str, str])
    (<class 'bool'>, <class 'int'>, [<class 'str'>], {<class 'str'>: <class 'str'>})
    """
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin in (Union, UnionType):
        return _spec_of(arguments[0])
    if origin is Sequence:
        return [_spec_of(arguments[0])]
    if origin is Mapping:
        return {str: _spec_of(arguments[1])}
    if hint is Any:
        return object
    if hint is float:
        return NUMBER
    return hint if hint in (bool, int) else str  # paths are written as text


def _bad_plan(file: Path, problem: str) -> ParameterError:
    end = "" if problem.endswith("?") else "."
    message = f"{file}: {problem.removesuffix('.')}{end}"
    return ParameterError(message, code="invalid-plan", file=file, problem=problem)


def check_settings(settings: Settings) -> None:
    """Raise errors that would affect every capture, before the first is read."""
    from photostereo.pipeline.pipeline import Pipeline

    Pipeline("", settings).check()
    for label in NAMED_FILES:
        path = settings.reading.path_of(label)
        if path is not None and str(path) not in KEYWORDS and not path.exists():
            raise ParameterError(
                f"The {label} file {path} does not exist. Give the path of a file for all "
                "captures.",
                code="missing-file",
                file=path,
                option=label,
            )


def key_of(settings: Settings, capture: str) -> str:
    """Return 24 digits that depend on a capture's files (their fingerprint) and on the settings that affect the results."""
    reading = settings.reading.given()
    for label in NAMED_FILES:
        path = settings.reading.path_of(label)
        if path is not None and path.is_file():
            reading[label] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path is not None and path.is_dir():
            reading[label] = fingerprint(path)
    facts = {name: value for name, value in asdict(settings).items() if name not in _NOT_IN_A_KEY}
    facts |= {"reading": reading, "capture": capture}
    return hashlib.blake2b(canonical_json(facts).encode(), digest_size=12).hexdigest()


def canonical_json(value: Any) -> str:
    """Return the same text for equal values: sorted keys, no spaces, no NaN.

    >>> canonical_json({"b": 1.0, "a": (1, 2)})
    '{"a":[1,2],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(path: Path) -> str:
    """Return sixteen digits from the names and sizes of the files in a folder, or from the content of a single file."""
    state = hashlib.blake2b(digest_size=8)
    try:
        if path.is_file():
            size = path.stat().st_size
            if size <= HASHED_BYTES:
                state.update(path.read_bytes())
            else:
                state.update(os.fsencode(f"{path.name} {size}"))
        else:
            for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
                name = file.relative_to(path).as_posix()
                state.update(os.fsencode(f"{name} {file.stat().st_size}\n"))
    except OSError as problem:
        raise CaptureError(
            f"{path} cannot be read ({problem}). Check the path and its permissions.",
            code="unreadable-capture",
            file=path,
            problem=str(problem),
        ) from None
    return state.hexdigest()
