"""All photographs of a capture as one float32 stack, decoded in parallel, each touched once.

The only temporaries are those of the photographs that are being decoded at the moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.photographs.files import PhotographFiles


@dataclass(frozen=True)
class Stack:
    """Photographs on one linear scale and what was noticed on the way.

    Attributes
    ----------
    images : (d, H, W) or (d, H, W, 3) float32
    bit_depth : bits per channel on disk (the largest where they differ)
    notes : what the user should know
    camera_notes : those of them that come from what the camera wrote down
    straightened : whether a tone curve was undone
    """

    images: NDArray[np.float32]
    bit_depth: int
    notes: tuple[str, ...]
    camera_notes: tuple[str, ...] = ()
    straightened: bool = False


def read_stack(files: Sequence[Path], **options: Any) -> Stack:
    """Decode photographs in parallel to linear intensities with the lights' strengths divided out.

    The options are those of :class:`~photostereo.photographs.files.PhotographFiles`, and so are the errors.
    """
    return decoded(PhotographFiles(files, **options))


def decoded(source: PhotographFiles) -> Stack:
    """All photographs of a source, decoded."""
    images = source.all()
    return Stack(images, bit_depth(source), notes_on(source), source.camera_notes, any(source.curved))


def bit_depth(source: PhotographFiles) -> int:
    """Bits per channel of the photographs that have been decoded; the largest where they differ."""
    return max(kind.itemsize * 8 for kind in source.kinds.values())


def notes_on(source: PhotographFiles) -> tuple[str, ...]:
    """What the user should know of the photographs that have been decoded."""
    files, kinds = source.files, [source.kinds[file] for file in source.files if file in source.kinds]
    is_color, color = source.is_color, source.color
    notes = []
    if len(set(kinds)) > 1:
        other = next(number for number, kind in enumerate(kinds) if kind != kinds[0])
        notes.append(
            f"photographs of different bit depth: {files[0].name} is {kinds[0]}, {files[other].name} "
            f"{kinds[other]}; each is divided by its own full scale"
        )
    if color and not is_color:
        notes.append("color was asked for but the photographs are gray")
    if source.curved_by_file and any(source.curved):
        some = "" if all(source.curved) else f"{sum(source.curved)} of "
        notes.append(
            f"{some}the photographs are JPEG or tagged as sRGB: the sRGB curve is undone (--linear takes them as linear)"
        )
    return (*notes, *source.camera_notes)
