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

from photostereo.capture.opening import Found, in_folder
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.images import list_images
from photostereo.lights.files.reading import read_lights
from photostereo.lights.files.table import LightTable

LAYOUT = "Harvard"
EXPECTS = "Harvard: a folder with Objects/ and refined_light.txt or light_directions.txt"

_REFINED, _DIRECTIONS = "refined_light.txt", "light_directions.txt"


def recognizes(path: Path) -> bool:
    """A folder with ``Objects/`` and one of the two light files."""
    return (path / "Objects").is_dir() and ((path / _REFINED).is_file() or (path / _DIRECTIONS).is_file())


def find(path: Path, options: ReadOptions) -> Found:
    """List the contents of the folder without decoding any photograph."""
    files = [file for file in list_images(path / "Objects") if file.stem.casefold() != "mask"]
    table, use_length = _lights(path, options, files)
    masks = [file for file in (path / "mask.png", path / "Objects" / "mask.png") if file.is_file()]
    return Found(
        path=path,
        layout=LAYOUT,
        name=path.name,
        files=files,
        lights=replace(table, intensities=table.lengths if use_length else table.intensities),
        mask_file=masks[0] if masks else None,
        mask_default="auto",
        notes=(
            Finding("light-file", file=table.path.name),
            *(() if use_length else table.length_note()),
        ),
    )


def _lights(path: Path, options: ReadOptions, files: list[Path]) -> tuple[LightTable, bool]:
    """Return the light table, and whether the norms of its vectors are strengths."""
    choice = options.lights
    if choice is None:
        choice = "refined" if (path / _REFINED).is_file() else "directions"
    known = {"refined": _REFINED, "directions": _DIRECTIONS}.get(str(choice))
    file = path / known if known else in_folder(path, Path(choice).expanduser())
    if known and not file.is_file():
        raise CaptureError(code="no-light-file", file=file, path=path, known=known, choice=choice)
    return read_lights(file, count=len(files)).in_order_of(files), file.name == _REFINED
