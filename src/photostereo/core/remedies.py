"""What to do about an error or a finding, in the words of each shell.

A remedy is an argument in Python, an option in the terminal and often a click in the app. Library code names only its
code (``remedy="pixel-size"``); the shell that reports the problem chooses the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from photostereo.core.wording import filled_in


@dataclass(frozen=True)
class Remedy:
    """One remedy; a shell without words of its own uses those for Python."""

    python: str
    terminal: str = ""
    app: str = ""


REMEDIES: Mapping[str, Remedy] = {
    "whole-frame": Remedy(
        python='Use mask="full" for the whole frame.',
        terminal="Use --mask full for the whole frame.",
    ),
    "automatic-mask": Remedy(
        python=(
            "Paint the object white and the background black, or find it in the photographs "
            'with mask="auto".'
        ),
        terminal=(
            "Paint the object white and the background black, or find it in the photographs "
            "with --mask auto."
        ),
    ),
    "pixel-size": Remedy(
        python='Use pixel_size="0.1mm", or "pixel_size" in a JSON light file.',
        terminal='Use --pixel-size 0.1mm, or "pixel_size" in a JSON light file.',
    ),
    "default-axes": Remedy(
        python="Leave out lights_axes= and reverse_lights=.",
        terminal="Leave out --lights-axes and --reverse-lights.",
    ),
    "reverse-lights": Remedy(
        python="Reverse them with reverse_lights=True{instead}.",
        terminal="Reverse them with --reverse-lights{instead}.",
    ),
    "lights-axes": Remedy(
        python='Read it with lights_axes="{axes}"{instead}.{note}',
        terminal="Read it with --lights-axes {axes}{instead}.{note}",
    ),
    "lights-in-order": Remedy(
        python=(
            "Put the lines of the light file in the order of the photographs, or name the "
            "photographs in a column called file."
        ),
    ),
    "undo-srgb": Remedy(
        python="Undo it with srgb=True, or use raw or linear files.",
        terminal="Undo it with --srgb, or use raw or linear files.",
    ),
    "replace-output": Remedy(
        python="Choose another name, or use force=True to replace it.",
        terminal="Choose another name, or use --force to replace it.",
    ),
    "more-memory": Remedy(
        python=(
            "Allow more memory (memory=), use only a part (crop=), or reduce the resolution "
            "(scale=)."
        ),
        terminal=(
            "Allow more memory (--memory), use only a part (--crop), or reduce the "
            "resolution (--scale)."
        ),
    ),
    "give-ball": Remedy(
        python=(
            "Put a shiny or matte ball beside the object, not on black ground, or photograph "
            "one in its place under the same lights (ball=, its folder). If there is a ball, "
            "mark it: circle=(x, y, radius) in pixels."
        ),
        terminal=(
            "Put a shiny or matte ball beside the object, not on black ground, or "
            "photograph one in its place under the same lights (--ball, its folder). If "
            "there is a ball, mark it: --circle x,y,radius in pixels."
        ),
        app="Mark the ball in a photograph, or put one beside the object, not on black ground.",
    ),
    "give-lights": Remedy(
        python=(
            "Provide a light file (lights=): lights.csv with the columns file,x,y,z (x right, "
            "y up, z toward the camera; from the object to the light). If there is a ball, "
            "mark it with circle=(x, y, radius) in pixels, or name its folder: ball=."
        ),
        terminal=(
            "Provide a light file (--lights): lights.csv with the columns file,x,y,z (x "
            "right, y up, z toward the camera; from the object to the light). If there is a "
            "ball, mark it with --circle x,y,radius in pixels, or name its folder: --ball."
        ),
        app="Mark the ball in a photograph, or add a light file.",
    ),
    "leave-out": Remedy(
        python="Leave out strict=True to use the others without it.",
        terminal="Leave out --strict to use the others without it.",
    ),
    "give-data": Remedy(
        python="Use data= for the folder that contains diligent/pmsData and harvard.",
        terminal="Use --data for the folder that contains diligent/pmsData and harvard.",
    ),
    "state-needs-memory": Remedy(
        python="Leave out checkpoint= and resume=, or allow more memory (memory=).",
        terminal="Leave out --checkpoint and --resume, or allow more memory (--memory).",
    ),
    "less-to-write": Remedy(
        python=(
            "Allow more memory (memory=), write less (surface=False, report=False) or reduce "
            "the resolution (scale=)."
        ),
        terminal=(
            "Allow more memory (--memory), write less (--no-surface, --no-report) or reduce "
            "the resolution (--scale)."
        ),
    ),
    "check-ball": Remedy(
        python="Check the calibration picture",
        app="Check the highlight on the ball in that photograph",
    ),
}


def remedy_text(code: str, shell: str, values: Mapping[str, Any]) -> str:
    """Return the text of a remedy.

    Parameters
    ----------
    code : str
        The remedy.
    shell : {"python", "terminal", "app"}
        Who asks.
    values : mapping
        Names and numbers in the text.

    >>> remedy_text("whole-frame", "terminal", {})
    'Use --mask full for the whole frame.'
    """
    remedy = REMEDIES[code]
    words = {"terminal": remedy.terminal, "app": remedy.app}.get(shell)
    return filled_in(words or remedy.python, values)
