"""Which captures a batch has: those that are named, those inside folders, those of a plan."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from photostereo.batch.settings import settings_of
from photostereo.capture.options import NAMED_FILES
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.names import folder_name
from photostereo.io.safe import read_text
from photostereo.pipeline.settings import Settings

#: Files that are captures by themselves.
CAPTURE_FILES = (".npz", ".lp")


@dataclass(frozen=True)
class Item:
    """A capture of a batch.

    Attributes
    ----------
    name : of its folder of results
    path : of its folder or file, as every worker sees it
    """

    name: str
    path: Path


def find_captures(places: Iterable[Path], *, out: Path) -> list[Path]:
    """Captures at or inside the places, in the order of their names.

    A place is a capture itself, or a folder that holds captures: then every folder in it counts, also one that cannot
    be read, so that nothing is left out without a word. Hidden ones and ``out`` do not.

    Raises
    ------
    CaptureError
        If a place does not exist or holds nothing.
    """
    found: dict[Path, None] = {}
    for place in places:
        inside = list(_inside(place.expanduser().absolute(), out.expanduser().absolute()))
        found.update(dict.fromkeys(inside))
    return list(found)


def _inside(place: Path, out: Path) -> Iterator[Path]:
    from photostereo.capture.loading import recognize
    from photostereo.io.images import list_images

    if not place.exists():
        raise CaptureError(f"{place} does not exist. Name captures, or a folder that holds captures.")
    if place.is_file() or recognize(place) is not None or list_images(place):
        yield place
        return
    for entry in sorted(place.iterdir()):
        if entry.name.startswith(".") or entry == out or out in entry.parents:
            continue
        if entry.is_dir() or entry.suffix.lower() in CAPTURE_FILES:
            yield entry


def name_captures(paths: Sequence[Path], taken: Iterable[Item] = ()) -> list[Item]:
    """A unique folder name for each capture; captures of the same name get numbers."""
    by_path = {item.path: item.name for item in taken}
    used = set(by_path.values())
    items = []
    for path in paths:
        name = by_path.get(path)
        if name is None:
            plain = folder_name(path.stem if path.is_file() else path.name)
            name, number = plain, 2
            while name in used:
                name, number = f"{plain}-{number}", number + 1
            used.add(name)
        items.append(Item(name, path))
    return items


def read_plan(file: Path) -> tuple[list[Path], Settings]:
    """A plan of a batch: captures and settings, as TOML.

    ::

        captures = ["/data/coins", "one-more/capture"]   # captures, or folders that hold them; beside the plan
        method = "pls"
        lights = "rig/lights.csv"
        parameters = { p = 3 }
    """
    try:
        document: dict[str, Any] = tomllib.loads(
            read_text(file, "plan", remedy="Give the path of a TOML file.")
        )
    except CaptureError as problem:
        raise ParameterError(str(problem)) from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        raise ParameterError(f"{file} is not valid TOML: {problem}. Correct that line.") from None
    captures = document.pop("captures", None)
    if not isinstance(captures, list) or not captures or not all(isinstance(path, str) for path in captures):
        raise ParameterError(f'{file} names no captures. Add a line such as captures = ["coins"].')
    beside = file.absolute().parent
    for label in NAMED_FILES:
        if isinstance(document.get(label), str) and (beside / document[label]).exists():
            document[label] = str(beside / document[label])
    return [beside / Path(path).expanduser() for path in captures], settings_of(document, str(file))
