"""Manual corrections, stored in one small file beside the photographs.

The app writes it, and everything that reads a capture applies it: it fills in options that the user did not give.
The user's photographs, light files and masks are never changed::

    {
      "photostereo-edits": 1,
      "mask": "photostereo-mask.png",
      "lights": "estimate",
      "circle": [812.5, 304.0, 96.2],
      "leave_out": ["IMG_0007.JPG"],
      "keep": ["IMG_0009.JPG"],
      "moved_lights": {"IMG_0003.JPG": [0.1, 0.5, 0.86]}
    }

The names are those of :class:`~photostereo.capture.options.ReadOptions`; all are optional. Files are relative to the
folder of the capture.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from photostereo.capture.options import KEYWORDS, ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.io.atomic import write_json
from photostereo.io.json_text import finite_or_null
from photostereo.io.safe import read_json
from photostereo.io.schema import NUMBER, check_facts

#: The name of the file, in the folder of a capture.
EDITS_FILE = "photostereo-edits.json"
_VERSION = 1
#: Largest coordinate of a circle, in pixels: ten times that of the largest photographs.
LARGEST_PIXEL = 1e6
#: Smallest radius of a ball, in pixels; no highlight can be found on a smaller one.
SMALLEST_RADIUS = 0.5
#: Longest direction, and the inverse of the shortest: directions are normalized, but must not overflow.
LONGEST_DIRECTION = 1e6
_SCHEMA = {
    "photostereo-edits": int,
    "mask?": str,
    "lights?": str,
    "circle?": [NUMBER],
    "leave_out?": [str],
    "keep?": [str],
    "moved_lights?": {str: [NUMBER]},
}


@dataclass(frozen=True)
class Edits:
    """Manual corrections to a capture."""

    mask: str | None = None  #: a mask file in the folder, or a keyword such as ``"full"``
    lights: str | None = None  #: another light file, or ``"estimate"``
    circle: tuple[float, float, float] | None = None  #: center and radius of the ball in pixels
    leave_out: tuple[str, ...] = ()  #: names of photographs to leave out
    #: light directions by photograph name
    moved_lights: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    keep: tuple[str, ...] = ()  #: names of photographs to use despite any faults

    def __bool__(self) -> bool:
        return self != Edits()

    def describe(self) -> str:
        """Summarize the corrections in a few words."""
        counts = (
            (self.leave_out, "photograph", "left out"),
            (self.keep, "photograph", "kept"),
            (self.moved_lights, "light", "moved"),
        )
        words = [
            "mask" if self.mask else "",
            {None: "", "estimate": "lights estimated"}.get(
                self.lights, f"lights from {self.lights}"
            ),
            "ball marked by hand" if self.circle else "",
            *(
                f"{len(some)} {what}{'s' * (len(some) > 1)} {done}"
                for some, what, done in counts
                if some
            ),
        ]
        return ", ".join(filter(None, words))

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON, without the corrections that are not set."""
        said = finite_or_null({name: value for name, value in vars(self).items() if value})
        return {"photostereo-edits": _VERSION, **said}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], file: Path | None = None) -> Edits:
        """Build from the output of :meth:`as_dict`; raise a :class:`CaptureError` ``"bad-edits"`` for anything else."""

        def fail(problem: str) -> CaptureError:
            return CaptureError(
                f"The corrections in {file or EDITS_FILE} cannot be used: {problem}. Correct them "
                "in the app, or delete the file.",
                code="bad-edits",
                file=file,
                where=file or EDITS_FILE,
                problem=problem,
            )

        check_facts(facts, _SCHEMA, fail)
        if facts["photostereo-edits"] != _VERSION:
            raise fail(f"their format version {facts['photostereo-edits']} is not supported")
        for name in ("mask", "lights"):
            path = facts.get(name) or ""
            is_rooted = path.startswith(("/", "\\"))  # also on Windows, without a drive
            if is_rooted or ".." in Path(path).parts or "\0" in path or ":" in path:
                raise fail(f"{name} is not a file in the folder of the capture")
        said: dict[str, Any] = {
            name: facts[name] for name in cls.__dataclass_fields__ if facts.get(name)
        }
        said |= {
            name: tuple(said[name]) for name in ("circle", "leave_out", "keep") if name in said
        }
        if "circle" in said and not _is_circle(said["circle"]):
            raise fail("circle needs a center and a radius, in pixels")
        moved = {name: tuple(to) for name, to in said.get("moved_lights", {}).items()}
        for name, to in moved.items():
            if len(to) != 3 or not 1 / LONGEST_DIRECTION < math.hypot(*to) < LONGEST_DIRECTION:
                raise fail(f"moved_lights.{name} is not a direction x, y, z")
        return cls(**{**said, "moved_lights": moved})

    def fill_in(self, options: ReadOptions, folder: Path) -> ReadOptions:
        """Return the options with these corrections; options set by the user take precedence."""
        used = self if options.mask is None else replace(self, mask=None)
        if any(given is not None for given in (options.lights, options.ball, options.circle)):
            used = replace(used, lights=None, circle=None, moved_lights={})
        filled: dict[str, Any] = {name: value for name, value in vars(used).items() if value}
        for name in {"mask", "lights"} & filled.keys():
            filled[name] = filled[name] if filled[name] in KEYWORDS else str(folder / filled[name])
        for name in ("leave_out", "keep"):
            filled[name] = tuple(dict.fromkeys((*getattr(options, name), *getattr(self, name))))
        return replace(options, **filled, edits=used.describe())


def _is_circle(values: Sequence[float]) -> bool:
    """Whether numbers are the center and radius of a circle that may be in a photograph."""
    return (
        len(values) == 3
        and values[2] >= SMALLEST_RADIUS
        and all(abs(value) <= LARGEST_PIXEL for value in values)
    )


def read_edits(path: str | os.PathLike[str]) -> Edits:
    """Read the corrections of a capture; empty if there is no such file."""
    file = Path(path).expanduser() / EDITS_FILE
    if not os.path.lexists(file):
        return Edits()
    facts = read_json(
        file, "file of corrections", remedy="Correct them in the app, or delete the file."
    )
    return Edits.from_dict(facts if isinstance(facts, dict) else {}, file)


def write_edits(path: str | os.PathLike[str], edits: Edits) -> None:
    """Write the corrections beside the photographs, atomically; remove the file if there are none."""
    file = Path(path).expanduser() / EDITS_FILE
    if edits:
        write_json(file, edits.as_dict())
    else:
        file.unlink(missing_ok=True)


def with_edits(path: str | os.PathLike[str], options: ReadOptions) -> ReadOptions:
    """Fill in the options from the corrections of the capture, unless ``options.edits`` is False or they are filled in."""
    edits = read_edits(path) if options.edits is True else Edits()
    if edits:
        return edits.fill_in(options, Path(path).expanduser())
    return options
