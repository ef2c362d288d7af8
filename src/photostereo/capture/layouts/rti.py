"""RTI light-position files (``.lp``): the count in the first line, then ``filename x y z``.

Supports variants found in practice: names with blanks, absolute Windows paths in names (the last part counts),
decimal commas, the photographs in the file's folder or in one beside it such as ``jpeg-exports/``. Only the
directions of the positions are used.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from photostereo.capture.layouts import in_folder, read_table
from photostereo.capture.opening import Found
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.images import is_image
from photostereo.io.safe import read_text
from photostereo.lights.files.reading import base_name, content_lines, decimal
from photostereo.lights.files.table import LightTable

LAYOUT = "RTI"


def recognizes(path: Path) -> bool:
    """An ``.lp`` file, or a folder that contains one."""
    if path.is_file():
        return path.suffix.lower() == ".lp"
    return bool(_light_positions(path))


def find(path: Path, options: ReadOptions) -> Found:
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
    table = read_light_positions(source)
    files = _locate(table, source)
    if chosen is not None:
        table = read_table(source.parent, options, files, source).in_order_of(files)
    home = files[0].parent
    mask = next(
        (file for file in (home / "mask.png", source.parent / "mask.png") if file.is_file()), None
    )
    unlisted = sum(is_image(file) and file not in (*files, mask) for file in home.iterdir())
    notes = (Finding("unlisted-photographs", count=unlisted, file=source.name),) if unlisted else ()
    name = source.stem if path.is_file() else path.name
    return Found(path, LAYOUT, name, files, table, mask_file=mask, notes=notes)


def read_light_positions(path: Path) -> LightTable:
    """Read the table in an ``.lp`` file."""
    lines = content_lines(read_text(path, "light-position file"))
    try:
        count = int(lines[0])
    except (IndexError, ValueError) as error:
        raise CaptureError(
            f"The first line of {path} must be the number of photographs; the others: filename x "
            "y z. Correct the file.",
            code="light-file-header",
            file=path,
        ) from error
    entries = [_entry(line, number + 2, path) for number, line in enumerate(lines[1:])]
    if len(entries) != count:
        few = "fewer" if len(entries) < count else "more"
        raise CaptureError(
            f"{path} announces {count} photographs in its first line but lists {len(entries)}, "
            f"{few} than that. Complete the list, or correct the number.",
            code="light-file-count",
            file=path,
            announced=count,
            found=len(entries),
            few=few,
        )
    if not entries:
        raise CaptureError(
            f"{path} lists no photographs. Add lines: filename x y z.",
            code="light-file-empty",
            file=path,
        )
    names = tuple(name for name, _ in entries)
    return LightTable(path, np.array([vector for _, vector in entries]), files=names)


def _entry(line: str, number: int, path: Path) -> tuple[str, tuple[float, float, float]]:
    words = line.rsplit(None, 3)
    if len(words) != 4:
        words = line.rsplit(";", 3) if line.count(";") >= 3 else line.rsplit(",", 3)
    try:
        x, y, z = (decimal(word.strip().rstrip(",;")) for word in words[1:])
        return base_name(words[0].strip().rstrip(",;")), (x, y, z)
    except ValueError as error:
        raise CaptureError(
            f"Line {number} of {path} cannot be understood: {line!r}. Expected: filename x y z.",
            code="light-file-line",
            file=path,
            line=number,
            content=line,
        ) from error


def _light_positions(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("[!.]*") if file.suffix.lower() == ".lp")


def _locate(table: LightTable, source: Path) -> list[Path]:
    """Find the photographs: in the folder of the ``.lp`` file, in a folder inside it, or in one beside it."""
    home = source.resolve().parent
    names = table.files or ()
    best: dict[str, Path] = {}
    for folder in (home, *sorted(home.glob("[!.]*/")), *sorted(home.parent.glob("[!.]*/"))):
        present = {file.name.casefold(): file for file in folder.iterdir() if file.is_file()}
        here = {name: present[name.casefold()] for name in names if name.casefold() in present}
        best = max(best, here, key=len)
        if len(best) == len(set(names)):
            return [best[name] for name in names]
    missing = [name for name in names if name not in best]
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
