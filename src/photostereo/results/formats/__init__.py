"""Export formats of a result, one module each.

To add one, write a module with a ``FORMAT`` and list it in :mod:`photostereo.results.choice`. The
commands, their help, what they print, and the files that ``mesh`` replaces follow from that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module

from photostereo.core.errors import require_known
from photostereo.results.choice import FORMAT_NAMES
from photostereo.results.formats.format import Format as Format
from photostereo.results.formats.format import Job as Job
from photostereo.results.formats.format import MeshFormat as MeshFormat

#: All formats by name.
FORMATS: dict[str, Format | MeshFormat] = {
    name: import_module(f"{__name__}.{name}").FORMAT for name in FORMAT_NAMES
}
#: The formats of meshes by name.
MESHES = {name: entry for name, entry in FORMATS.items() if isinstance(entry, MeshFormat)}
#: Files that ``mesh`` replaces in a result folder; everything else there stays.
SURFACE_FILES = frozenset(
    [
        "tears.npy",
        "depth.npy",
        "depth.png",
        *(file for entry in FORMATS.values() for file in entry.files),
    ]
)


def check_formats(names: Sequence[str], known: Collection[str] = FORMATS) -> list[str]:
    """Return the names in lower case, without dots or duplicates.

    Parameters
    ----------
    names : sequence of str
        Names of formats, such as ``"PLY"`` or ``".ply"``.
    known : collection of str
        The names to choose from; an error for any other lists them.
    """
    plain = list(dict.fromkeys(name.strip().lower().lstrip(".") for name in names if name.strip()))
    for name in plain:
        require_known(name, known, "format")
    return plain
