"""The settings of a batch: read from a plan, checked before the first capture, and the key of what they decide."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from photostereo.batch.fingerprint import canonical_json, fingerprint
from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.core.errors import ParameterError, did_you_mean
from photostereo.pipeline.settings import FLAT, OutputSettings, Settings, SolveSettings

#: Values of ``mask`` and ``lights`` that are no files.
WORDS = ("full", "auto", "bright", "refined", "directions")
#: Settings that make no sense in a plan: parts of others, and what belongs to a single solve or process.
_NOT_IN_A_PLAN = ("reading", "solving", "output", "workers", "checkpoint", "resume")
#: What does not change a result and is not part of its key.
_NOT_IN_A_KEY = ("memory", "checkpoint", "resume")


def check_settings(settings: Settings) -> None:
    """Raise what would be wrong with every capture, before the first is read."""
    from photostereo.pipeline.pipeline import Pipeline

    Pipeline("", settings).check()
    for label in NAMED_FILES:
        path = settings.reading.path_of(label)
        if path is not None and str(path) not in WORDS and not path.exists():
            raise ParameterError(
                f"The {label} file {path} does not exist. Give the path of a file for all captures.",
                code="missing-file",
                file=path,
                option=label,
            )


def key_of(settings: Settings, capture: str) -> str:
    """Twenty-four digits that depend on a capture's files (their fingerprint) and on what is computed from them."""
    reading = settings.reading.given()
    for label in NAMED_FILES:
        path = settings.reading.path_of(label)
        if path is not None and path.is_file():
            reading[label] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path is not None and path.is_dir():
            reading[label] = fingerprint(path)
    solving = {name: value for name, value in vars(settings.solving).items() if name not in _NOT_IN_A_KEY}
    facts = {**asdict(settings), "reading": reading, "solving": solving, "capture": capture}
    return hashlib.blake2b(canonical_json(facts).encode(), digest_size=12).hexdigest()


def settings_of(values: Mapping[str, Any], where: str) -> Settings:
    """Settings from a table of names and values; an unknown or mistyped one is an error that names ``where``."""
    for name, value in values.items():
        if name not in _TYPES:
            raise ParameterError(
                f'{where}: there is no setting "{name}".{did_you_mean(name, _TYPES)} Known: {", ".join(_TYPES)}.',
                code="unknown-setting",
                file=where,
                name=name,
            )
        if not _fits(value, _TYPES[name]):
            raise ParameterError(
                f"{where}: {name} must be {_WORDS[_TYPES[name].split(' ')[0]]}, not {value!r}.",
                code="wrong-type",
                file=where,
                name=name,
            )
    return Settings().changed(**values)


def _types() -> dict[str, str]:
    """The settings that a plan may have, and their types."""
    declared = {
        entry.name: str(entry.type)
        for kind in (ReadOptions, SolveSettings, OutputSettings, Settings)
        for entry in fields(kind)
    }
    declared |= {
        "surface": "bool",
        "surface_method": "str",
        "pixel_size": "str | None",
        "memory": "str | None",
    }
    return {name: declared[name] for name in FLAT if name not in _NOT_IN_A_PLAN}


_TYPES = _types()
_WORDS = {
    "str": "a text in quotes",
    "int": "a whole number",
    "bool": "true or false",
    "float": "a number",
    "Sequence[int]": "a list of whole numbers",
    "Sequence[float]": "a list of numbers",
    "Mapping[str,": "a table such as { mu = 0.1 }",
}


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return "None" in kind
    if kind.startswith("bool"):
        return isinstance(value, bool)
    if kind.startswith("int"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind.startswith("float"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind.startswith("Sequence"):
        one = "int" if "int" in kind else "float"
        return isinstance(value, list) and all(_fits(number, one) for number in value)
    return isinstance(value, Mapping if kind.startswith("Mapping") else str)
