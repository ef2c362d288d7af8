"""RTI light-position files (``.lp``): the count in the first line, then ``filename x y z``.

Supports variants found in practice: names with blanks, absolute Windows paths in names (the last part counts),
decimal commas, the photographs in the file's folder or in one beside it such as ``jpeg-exports/``. Only the
directions of the positions are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from photostereo.capture.layouts import in_folder, read_table
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.core.wording import listed
from photostereo.io.images import is_image
from photostereo.lights.files.light_positions import read_positions, wrong_count
from photostereo.lights.files.table import LightTable, whole_names

LAYOUT = "RTI"
#: RTIBuilder writes its ``.lp`` file into this folder, beside ``jpeg-exports/``.
ASSEMBLY = "assembly-files"


def recognizes(path: Path) -> bool:
    """An ``.lp`` file, or a folder that contains one."""
    if path.is_file():
        return path.suffix.lower() == ".lp"
    return bool(_light_positions(path))


def find(path: Path, options: ReadOptions) -> Source:
    """List the contents of the folder without decoding any photograph."""
    source = path
    chosen = options.path_of("lights")
    if chosen is not None and chosen.suffix.lower() == ".lp":
        source = in_folder(path if path.is_dir() else path.parent, chosen)
        chosen = None
    elif path.is_dir():
        source, *others = _light_positions(path)
        if others:
            found = [source.name, *(file.name for file in others)]
            names = ", ".join(found)
            raise CaptureError(
                f"{path} has several .lp files: {names}. Give the path of the one to use.",
                code="several-light-files",
                file=path,
                found=found,
                names=names,
            )
    table, announced = read_positions(source)
    places = _locate(table, source)
    if len(table.vectors) != announced:
        if len(places) != announced:
            raise wrong_count(source, announced, len(table.vectors))
        table = _without_missing(table, places)
    files = _complete(places, table, source)
    table = replace(table, files=tuple(file.name for file in files))
    if chosen is not None:
        table = read_table(source.parent, options, files, source).in_order_of(files)
    home = files[0].parent
    mask = next(
        (file for file in (home / "mask.png", source.parent / "mask.png") if file.is_file()), None
    )
    unlisted = sum(is_image(file) and file not in (*files, mask) for file in home.iterdir())
    notes = (Finding("unlisted-photographs", count=unlisted, file=source.name),) if unlisted else ()
    name = source.stem if path.is_file() else path.name
    return Source(path, LAYOUT, name, files, table, mask=mask, notes=notes)


def _light_positions(folder: Path) -> list[Path]:
    """Return the ``.lp`` files of a folder, or those of RTIBuilder's ``assembly-files`` in it."""
    within = [entry for entry in folder.glob("[!.]*/") if entry.name.casefold() == ASSEMBLY]
    for place in (folder, *within):
        files = sorted(file for file in place.glob("[!.]*") if file.suffix.lower() == ".lp")
        if files:
            return files
    return []


def _locate(table: LightTable, source: Path) -> dict[str, Path]:
    """Find the photographs, by the names in the table: in the folder of the ``.lp`` file, in a folder inside it, or in
    one beside it."""
    home = source.resolve().parent
    names = table.files or ()
    best: dict[str, Path] = {}
    for folder in (home, *sorted(home.glob("[!.]*/")), *sorted(home.parent.glob("[!.]*/"))):
        present = {file.name.casefold(): file for file in folder.iterdir() if file.is_file()}
        pictures = [file for file in present.values() if is_image(file)]
        whole = dict(zip(names, whole_names(names, pictures), strict=True))
        here = {
            name: present[file.casefold()]
            for name, file in whole.items()
            if file.casefold() in present
        }
        best = max(best, here, key=len)
        if len(best) == len(set(names)):
            break
    return best


def _without_missing(table: LightTable, places: Mapping[str, Path]) -> LightTable:
    """Return the lights whose photographs exist, with a note."""
    names = table.files or ()
    missing = [name for name in names if name not in places]
    note = Finding(
        "lights-without-photographs",
        file=table.path.name,
        count=len(missing),
        names=listed(missing),
    )
    there = [number for number, name in enumerate(names) if name in places]
    return replace(table.take(there), notes=(*table.notes, note))


def _complete(places: Mapping[str, Path], table: LightTable, source: Path) -> list[Path]:
    """Return the photographs in the order of the table; raise an error if one is missing."""
    names = table.files or ()
    missing = [name for name in names if name not in places]
    if not missing:
        return [places[name] for name in names]
    raise CaptureError(
        f"{source} lists {len(names)} photographs; some were not found, the first is "
        f"{missing[0]}. Put the photographs into the folder of the .lp file, under the names it "
        "gives.",
        code="missing-photographs",
        file=source,
        missing=missing,
        count=len(names),
        first=missing[0],
    )
