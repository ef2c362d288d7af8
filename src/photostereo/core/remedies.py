"""What to do about an error, in the words of each shell.

A remedy that differs between Python, the terminal and the app has an entry here; texts are formatted with the
error's values. To add one, add a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remedy:
    """One remedy; a shell without words of its own uses those of Python."""

    python: str
    terminal: str = ""
    app: str = ""


REMEDIES: Mapping[str, Remedy] = {
    "whole-frame": Remedy('Pass mask="full" to use the whole frame.', "Use --mask full for the whole frame."),
    "automatic-mask": Remedy(
        'Paint the object white and the background black, or pass mask="auto" to find it in the photographs.',
        "Paint the object white and the background black, or find it in the photographs with --mask auto.",
    ),
    "pixel-size": Remedy(
        'Pass pixel_size="0.1mm", or write "pixel_size" into a JSON light file.',
        'Use --pixel-size 0.1mm, or "pixel_size" in a JSON light file.',
    ),
    "default-axes": Remedy(
        "Leave out lights_axes and reverse_lights.", "Leave out --lights-axes and --reverse-lights."
    ),
    "reverse-lights": Remedy(
        "Reverse them with reverse_lights=True{instead}.", "Reverse them with --reverse-lights{instead}."
    ),
    "lights-axes": Remedy(
        'Read it with lights_axes="{axes}"{instead}.{note}',
        "Read it with --lights-axes {axes}{instead}.{note}",
    ),
    "lights-in-order": Remedy(
        "Put the lines of the light file in the order of the photographs, or name the photographs in a column called file."
    ),
    "undo-srgb": Remedy(
        "Undo it with srgb=True, or use raw or linear files.",
        "Undo it with --srgb, or use raw or linear files.",
    ),
    "replace-output": Remedy(
        "Choose another name, or pass force=True to replace it.",
        "Choose another name, or use --force to replace it.",
    ),
    "more-memory": Remedy(
        "Allow more memory (memory=), use only a part (crop=), or reduce the resolution (scale=).",
        "Allow more memory (--memory), use only a part (--crop), or reduce the resolution (--scale).",
    ),
    "give-ball": Remedy(
        "Put a shiny or matte ball beside the object, not on black ground, or photograph one in its place under the same "
        "lights (ball=). If there is a ball, mark it: circle=(x, y, radius) in pixels.",
        "Put a shiny or matte ball beside the object, not on black ground, or photograph one in its place under the same "
        "lights (--ball FOLDER). If there is a ball, mark it: --circle x,y,radius in pixels.",
        "Mark the ball in a photograph, or put one beside the object, not on black ground.",
    ),
    "give-lights": Remedy(
        "Provide a light file (lights=): lights.csv with the columns file,x,y,z (x right, y up, z toward the camera; from "
        "the object to the light). If there is a ball, mark it: circle=(x, y, radius) in pixels, or pass its folder: ball=.",
        "Provide a light file (--lights FILE): lights.csv with the columns file,x,y,z (x right, y up, z toward the camera; "
        "from the object to the light). If there is a ball, mark it with --circle x,y,radius or name its folder: --ball.",
        "Mark the ball in a photograph, or add a light file.",
    ),
    "leave-out": Remedy(
        "Pass strict=False to leave out such photographs.", "Omit --strict to leave it out with its light."
    ),
    "give-data": Remedy(
        "Pass data=, the folder that contains diligent/pmsData and harvard.",
        "Use --data for the folder that contains diligent/pmsData and harvard.",
    ),
    "state-needs-memory": Remedy(
        "Leave out checkpoint and resume, or allow more memory (memory=).",
        "Leave out --checkpoint and --resume, or allow more memory (--memory).",
    ),
    "less-to-write": Remedy(
        "Allow more memory (memory=), write less (surface=False, report=False) or reduce the resolution (scale=).",
        "Allow more memory (--memory), write less (--no-surface, --no-report) or reduce the resolution (--scale).",
    ),
}


def remedy_text(key: str, shell: str, values: Mapping[str, Any]) -> str:
    """The words of a remedy for a shell.

    >>> remedy_text("whole-frame", "app", {})
    'Pass mask="full" to use the whole frame.'
    """
    remedy = REMEDIES[key]
    return (getattr(remedy, shell) or remedy.python).format(**values)
