"""Read light files of all formats. ``docs/lights.md`` describes their content."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from photostereo.core.conventions import Float64
from photostereo.core.plugins import registered
from photostereo.io.safe import read_text
from photostereo.lights.files.format import LightFileError, LightFormat
from photostereo.lights.files.numbers import content_lines, numbers, rectangle
from photostereo.lights.files.table import LightTable, require_strengths
from photostereo.lights.files.text import TEXT

#: Modules of this folder, one per format. To add a format, write a module and list it here.
OWN = ("text", "json_lights", "matlab", "light_positions")


@cache
def formats() -> dict[str, LightFormat]:
    """All formats by name, ours first; those of other packages are entry points ``photostereo.lights``."""
    return registered(
        LightFormat, "photostereo.lights", (f"{__package__}.{module}" for module in OWN)
    )


@cache
def light_file_names() -> tuple[str, ...]:
    """Names of light files that are looked for in a folder, in the order in which they are tried."""
    names = [name for entry in formats().values() for name in entry.names]
    return tuple(sorted(names, key=lambda name: not name.startswith("lights.")))


def read_lights(path: Path, *, count: int | None = None) -> LightTable:
    """Read a light file in the format of its suffix, by default text.

    Parameters
    ----------
    path : path
        The file.
    count : int, optional
        The number of photographs, which determines the meaning of 3 lines of 4 or 6 numbers.
    """
    suffix = path.suffix.lower()
    chosen = next((entry for entry in formats().values() if suffix in entry.suffixes), TEXT)
    try:
        return chosen.read(path, count)
    except LightFileError as bad:
        raise bad.about(path) from bad


def read_intensities(path: Path, count: int) -> Float64:
    """Read strengths of the lights, (d,) or (d, 3): d lines of 1 or 3 numbers, or 1 or 3 lines of d numbers."""
    try:
        values = rectangle(numbers(content_lines(read_text(path, "light intensity file"))))
        if values.shape in ((1, count), (3, count)) and values.shape != (count, count):
            values = values.T
        if values.shape[1] not in (1, 3):
            raise LightFileError(
                "light-file-shape", "must have one strength or three (R G B) per line."
            )
        if len(values) != count:
            words = f"has the strengths of {len(values)} lights, but there are {count} photographs. Each photograph needs"
            raise LightFileError(
                "lights-count",
                f"{words} exactly one line: add the missing ones or remove the extra ones.",
            )
    except LightFileError as bad:
        raise bad.about(path) from bad
    require_strengths(values, path)
    if values.shape[1] == 1:
        return values[:, 0]
    return values
