"""Photographs of a ball under the lights of a capture, in a folder of their own, found by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from photostereo.capture.layouts.folder import photographs_and_mask
from photostereo.core.errors import CaptureError

#: Folders in which people put the photographs of their ball: chrome/, LightProbe-1/, gray/, black-ball/ ...
_NAME = re.compile(
    r"(?=\D)(chrome|mirror|silver|steel|shiny|black|matte|matt|gr[ae]y|white)?[-_ ]?"
    r"(ball|sphere|light[-_ ]?probe|probe|calibration)?s?[-_ ]?\d*$",
    re.IGNORECASE,
)


def is_ball_series(folder: Path) -> bool:
    """Whether a folder's name suggests photographs of a ball."""
    return _NAME.match(folder.resolve().name) is not None


def find_ball_series(capture: Path, photographs: Sequence[Path]) -> list[Path]:
    """Folders in or beside a capture whose name suggests a ball and that have a photograph for each of these.

    >>> [bool(_NAME.match(name)) for name in ("chrome", "LightProbe-1", "black ball", "cat", "ballPNG", "12")]
    [True, True, True, False, False, False]
    """
    found = []
    for parent in dict.fromkeys((capture, capture.resolve().parent)):
        for folder in sorted(entry for entry in parent.iterdir() if entry.is_dir()):
            own = folder.resolve() == photographs[0].resolve().parent
            if own or not is_ball_series(folder):
                continue
            try:
                pair_photographs(photographs, photographs_and_mask(folder)[0], folder)
            except CaptureError:
                continue
            found.append(folder)
        if found:
            return found
    return found


def pair_photographs(photographs: Sequence[Path], others: Sequence[Path], folder: Path) -> list[Path]:
    """For each photograph the one in ``folder`` under the same light: by name, by number, or by order.

    >>> cat, ball = [Path("cat.0.png"), Path("cat.1.png")], [Path("ref.jpg"), Path("b0.jpg"), Path("b1.jpg")]
    >>> [file.name for file in pair_photographs(cat, ball, Path("chrome"))]
    ['b0.jpg', 'b1.jpg']
    """
    by_stem = {file.stem.casefold(): file for file in others}
    if all(file.stem.casefold() in by_stem for file in photographs):
        return [by_stem[file.stem.casefold()] for file in photographs]
    by_number = {number: file for file in others if (number := _number(file)) is not None}
    wanted = [_number(file) for file in photographs]
    if (
        None not in wanted
        and len(set(wanted)) == len(wanted)
        and all(number in by_number for number in wanted)
    ):
        return [by_number[number] for number in wanted if number is not None]
    if len(others) == len(photographs):
        return list(others)
    raise CaptureError(
        f"{folder} has {len(others)} photographs of the ball, but there are {len(photographs)} of the object. Each light "
        "needs one of both, with the same number in their names or in the same order.",
        code="ball-series-count",
        file=folder,
        found=len(others),
        expected=len(photographs),
    )


def _number(file: Path) -> int | None:
    digits = re.findall(r"\d+", file.stem)
    return int(digits[-1]) if digits else None
