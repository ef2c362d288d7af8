"""Remedies for errors and findings, worded for each shell.

A remedy that names an option has an entry here; texts are formatted with the values of the error. The options are
written as in Python, between backticks; the terminal has its own spelling for them: ```mask="full"``` is
``--mask full``. To add a remedy, add a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REMEDIES: Mapping[str, str] = {
    "whole-frame": 'Use `mask="full"` for the whole frame.',
    "automatic-mask": 'Paint the object white and the background black, or find it in the photographs with `mask="auto"`.',
    "pixel-size": 'Use `pixel_size="0.1mm"`, or "pixel_size" in a JSON light file.',
    "default-axes": "Leave out `lights_axes=` and `reverse_lights=`.",
    "reverse-lights": "Reverse them with `reverse_lights=True`{instead}.",
    "lights-axes": 'Read it with `lights_axes="{axes}"`{instead}.{note}',
    "lights-in-order": "Put the lines of the light file in the order of the photographs, or name the photographs in a "
    "column called file.",
    "undo-srgb": "Undo it with `srgb=True`, or use raw or linear files.",
    "replace-output": "Choose another name, or use `force=True` to replace it.",
    "more-memory": "Allow more memory (`memory=`), use only a part (`crop=`), or reduce the resolution (`scale=`).",
    "give-ball": "Put a shiny or matte ball beside the object, not on black ground, or photograph one in its place under "
    "the same lights (`ball=`, its folder). If there is a ball, mark it: `circle=(x, y, radius)` in pixels.",
    "give-lights": "Provide a light file (`lights=`): lights.csv with the columns file,x,y,z (x right, y up, z toward the "
    "camera; from the object to the light). If there is a ball, mark it with `circle=(x, y, radius)` in pixels, or name "
    "its folder: `ball=`.",
    "leave-out": "Leave out `strict=True` to use the others without it.",
    "give-data": "Use `data=` for the folder that contains diligent/pmsData and harvard.",
    "state-needs-memory": "Leave out `checkpoint=` and `resume=`, or allow more memory (`memory=`).",
    "less-to-write": "Allow more memory (`memory=`), write less (`surface=False`, `report=False`) or reduce the "
    "resolution (`scale=`).",
}

#: Remedies that are a click in the app.
IN_APP: Mapping[str, str] = {
    "give-ball": "Mark the ball in a photograph, or put one beside the object, not on black ground.",
    "give-lights": "Mark the ball in a photograph, or add a light file.",
}


def remedy_text(key: str, shell: str, values: Mapping[str, Any]) -> str:
    """The text of a remedy for a shell: ``"python"``, ``"terminal"`` or ``"app"``.

    >>> remedy_text("replace-output", "terminal", {})
    'Choose another name, or use --force to replace it.'
    """
    if shell == "app" and key in IN_APP:
        return IN_APP[key]
    text = REMEDIES[key].format(**values)
    return re.sub("`(.*?)=(.*?)`", _as_option if shell == "terminal" else r"\1=\2", text)


def _as_option(written: re.Match[str]) -> str:
    name, value = written[1].replace("_", "-"), written[2].strip('"()').replace(", ", ",")
    if value == "False":
        return f"--no-{name}"
    return f"--{name}" if value in ("", "True") else f"--{name} {value}"
