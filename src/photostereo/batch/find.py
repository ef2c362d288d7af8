"""Which captures a batch has: those that are named, those inside folders, those of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.io.names import folder_name

#: Files that are captures by themselves.
CAPTURE_FILES = (".npz", ".lp")
#: A folder with fewer photographs is no capture; a picture or two may lie beside captures.
FEWEST_PHOTOGRAPHS = 3


@dataclass(frozen=True)
class Item:
    """A capture of a batch: the name of its folder of results, and its path as every worker sees it."""

    name: str
    path: Path

    @property
    def path_text(self) -> str:
        """The path as text; bytes that are not text become escapes."""
        return str(self.path).encode("utf-8", "backslashreplace").decode()


def find_captures(places: Iterable[Path], *, out: Path) -> list[Path]:
    """Captures at or inside the places, in the order of their names.

    A place is a capture itself, or a folder that contains captures: then every folder in it counts, also one that
    cannot be read, except hidden ones, results and ``out``.

    Raises
    ------
    CaptureError
        If a place does not exist.
    """
    found: dict[Path, None] = {}
    for place in places:
        found.update(dict.fromkeys(_inside(place.expanduser().absolute(), out.expanduser().absolute())))
    return list(found)


def _inside(place: Path, out: Path) -> Iterator[Path]:
    from photostereo.capture.loading import recognize
    from photostereo.io.images import list_images
    from photostereo.solver.result_files import is_result

    if not place.exists():
        raise CaptureError(
            f"{place} does not exist. Name captures, or a folder that contains captures.",
            code="missing-capture",
            file=place,
        )
    if place.is_file() or recognize(place) is not None or len(list_images(place)) >= FEWEST_PHOTOGRAPHS:
        yield place
        return
    for entry in sorted(place.iterdir()):
        if entry.name.startswith(".") or entry == out or out in entry.parents or is_result(entry):
            continue
        if entry.is_dir() or entry.suffix.lower() in CAPTURE_FILES:
            yield entry


def name_captures(paths: Sequence[Path], taken: Mapping[str, str] | None = None) -> list[Item]:
    """A unique folder name for each capture; captures of the same name get numbers.

    ``taken`` has the names of earlier captures by the text of their paths.
    """
    known = dict(taken or {})
    items = []
    for path in paths:
        text = Item("", path).path_text
        if text not in known:
            plain = folder_name(path.stem if path.is_file() else path.name)
            known[text], number = plain, 2
            while list(known.values()).count(known[text]) > 1:
                known[text], number = f"{plain}-{number}", number + 1
        items.append(Item(known[text], path))
    return items
