"""The Harvard layout (Xiong et al. 2015).

    Objects/Image_NN.png     the photographs, 8-bit gray, linear
    refined_light.txt        3 × d, commas or blanks; a vector's norm is the strength of its light
    light_directions.txt     3 × d, unit

The refined lights are the authors' own improvement of the chrome-sphere calibration, so they are used if
they exist; ``lights="directions"`` selects the others. There is no mask: the objects stand in front of black cloth,
so the mask is found in the photographs; ``mask="full"`` selects the full frame. The axes match ours (checked: the
brightest side of the objects moves right with x and up with y).

References
----------
Y. Xiong et al., "From Shading to Local Shape", 2015. doi:10.1109/TPAMI.2014.2343211
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from photostereo.capture.layouts import read_table
from photostereo.capture.layouts.folder import photographs_and_mask
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding

LAYOUT = "Harvard"

_REFINED, _DIRECTIONS = "refined_light.txt", "light_directions.txt"


def recognizes(path: Path) -> bool:
    """A folder with ``Objects/`` and one of the two light files."""
    return (path / "Objects").is_dir() and (
        (path / _REFINED).is_file() or (path / _DIRECTIONS).is_file()
    )


def find(path: Path, options: ReadOptions) -> Source:
    """List the contents of the folder without decoding any photograph."""
    files, mask = photographs_and_mask(path / "Objects")
    known = {"refined": path / _REFINED, "directions": path / _DIRECTIONS}
    choice = str(options.lights or ("refined" if known["refined"].is_file() else "directions"))
    if choice in known:
        if not known[choice].is_file():
            name = known[choice].name
            raise CaptureError(
                f"{path} has no {name}, so its {choice} lights cannot be used. Choose the other "
                "light file.",
                code="no-light-file",
                file=known[choice],
                path=path,
                known=name,
                choice=choice,
            )
        options = replace(options, lights=None)
    table = read_table(path, options, files, known.get(choice, path)).in_order_of(files)
    notes = (*table.notes, Finding("light-file", file=table.path.name))
    if table.path.name == _REFINED:
        table = replace(table, intensities=table.lengths, notes=notes)
    else:
        table = replace(table, notes=(*notes, *table.length_note()))
    return Source(
        path=path,
        layout=LAYOUT,
        name=path.name,
        files=files,
        lights=table,
        mask=path / "mask.png" if (path / "mask.png").is_file() else mask,
        mask_default="auto",
    )
