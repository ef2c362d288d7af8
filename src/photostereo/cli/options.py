"""Options shared by several commands, declared once.

A group is a dataclass whose fields are options, named after the settings that they fill in (see
:mod:`photostereo.pipeline.settings`). Rarely used options are in the panel "Advanced" of the help.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from photostereo.batch.options import RunOptions
from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.cli.command import (
    ADVANCED,
    INPUT,
    LIGHTS,
    METHOD,
    OUTPUT,
    RESOURCES,
    argument,
    option,
)
from photostereo.core.errors import ParameterError
from photostereo.results.format_names import LEAST_TEXELS, MOST_TEXELS


def complete_method(incomplete: str) -> list[str]:
    """Complete ``--method <TAB>``."""
    from photostereo.solver.choice import WORDS
    from photostereo.solver.methods import method_names

    return [name for name in (*method_names(), *WORDS) if name.startswith(incomplete)]


def output(help: str = "Folder for the results.", metavar: str = "OUT", default: Any = None) -> Any:
    """``--out``: where the results go."""
    return option(help, OUTPUT, metavar, flags="--out -o", default=default)


CAPTURE = argument("Folder of photographs, .lp or .npz file.", "CAPTURE")
#: For commands that continue earlier runs.
GROWING = "Folder for the results; continues an earlier run."
FORCE = option("Replace an existing OUT.", OUTPUT, flags="--force -f", default=False)
PIXEL_SIZE = option("Width of a pixel: 0.1mm, 50um, 0.002in (no unit: mm).", OUTPUT, "SIZE")
SURFACE_METHOD = option("Integration method: poisson, robust or simchony.", ADVANCED, default="poisson")
DEVICE = option("Compute on cpu or cuda.", RESOURCES, default="cpu")
FLIP_Y = option("Write normal maps in the DirectX convention (green points down).", ADVANCED, default=False)
REPORT = option("Write the page with the viewer.", OUTPUT, flags="--report/--no-report", default=True)
COLOR = option("Albedo and mesh in color, even if the method uses gray.", ADVANCED, default=False)
IMAGES = option("Use N randomly chosen photographs.", ADVANCED, "N", min=3)
SEED = option("Random seed (choice of photographs, noise).", ADVANCED, min=0, default=0)
BALL = option("Folder with photographs of a ball under the same lights.", LIGHTS, "FOLDER")
CIRCLE = option("Circle of the ball: column, row and radius in pixels.", LIGHTS, "X,Y,R")
FOCAL = option("Focal length in pixels (default: from EXIF).", ADVANCED, "PIXELS", min=1.0)
CARD = option("A gray card facing the camera: left, top, right, bottom in pixels.", ADVANCED, "L,T,R,B")
SRGB = option(
    "Undo the sRGB curve, or keep the values (default: undo for JPEG and sRGB tags).",
    ADVANCED,
    flags="--srgb/--linear",
)
TEXELS = option(
    "Make a material a square of N × N texels.",
    ADVANCED,
    "N",
    flags="--size",
    min=LEAST_TEXELS,
    max=MOST_TEXELS,
)


@dataclass(frozen=True)
class Reading:
    """How a capture is read."""

    mask: str | None = option('A picture, "auto" (find the object), "bright" or "full" (whole frame).', INPUT)
    crop: str | None = option("Use only this part, in pixels from the top left.", INPUT, "X,Y,W,H")
    scale: float = option("Work at a lower resolution.", INPUT, min=0.001, max=1.0, default=1.0)
    color: bool = COLOR
    lights: str | None = option(
        'A light file, another capture to take the lights from, or "estimate".', LIGHTS
    )
    ball: Path | None = BALL
    circle: str | None = CIRCLE
    card: str | None = CARD
    lights_axes: str | None = option("Axes of the light file: x,-y,z if y points down.", ADVANCED, "X,Y,Z")
    reverse_lights: bool = option(
        "Vectors in the light file point from the light to the object.", ADVANCED, default=False
    )
    lights_strengths: str = option(
        "Light strengths: given (in the light file) or unknown (estimate them).", ADVANCED, default="given"
    )
    focal: float | None = FOCAL
    srgb: bool | None = SRGB
    ambient: Path | None = option("Photograph with the light off, to subtract.", ADVANCED, "PICTURE")
    flat: Path | None = option(
        "Photograph of an evenly lit white surface, to divide by.", ADVANCED, "PICTURE"
    )
    align: str = option(
        "Undo camera movement between photographs: auto, or off (only report it).", ADVANCED, default="auto"
    )
    leave_out: list[str] | None = option("Exclude a photograph; can be repeated.", INPUT, "NAME")
    keep: list[str] | None = option(
        "Use a photograph even if it is dark, blurred, ...; can be repeated.", ADVANCED, "NAME"
    )
    edits: bool = option(
        "Apply the corrections made in the app.", ADVANCED, flags="--edits/--no-edits", default=True
    )
    strict: bool = option(
        "Stop at an unusable photograph instead of leaving it out.", ADVANCED, default=False
    )

    def options(self) -> ReadOptions:
        """Convert to the library's options."""
        return read_options(self)


@dataclass(frozen=True)
class BallReading:
    """How lights are estimated."""

    ball: Path | None = BALL
    circle: str | None = CIRCLE
    card: str | None = CARD
    focal: float | None = FOCAL
    srgb: bool | None = SRGB


def read_options(group: Reading | BallReading) -> ReadOptions:
    """Convert a group to the library's options; settings without an option keep their defaults."""
    values = {entry.name: getattr(group, entry.name) for entry in fields(group)}
    values |= {name: values[name] or () for name in ("leave_out", "keep") if name in values}
    for name, count in (("circle", 3), ("card", 4), ("crop", 4)):
        if name in values:
            values[name] = numbers(values[name], count, f"--{name}", whole=name != "circle")
    return ReadOptions(**values)


@dataclass(frozen=True)
class Making:
    """How a capture is solved and what is written; with :class:`Reading`, the options of ``solve`` and ``batch``."""

    method: str = option(
        "A name from `photostereo methods`, or best, or fast (default: the best that finishes in minutes).",
        METHOD,
        flags="--method -m",
        autocompletion=complete_method,
        show_default=False,
        default="auto",
    )
    parameters: list[str] | None = option(
        "A parameter of the method; can be repeated.", METHOD, "NAME=VALUE", flags="--set -s"
    )
    prior: str | None = option("Add a prior to a method that has none: dictionary or smoothness.", ADVANCED)
    strengths: str = option("Correct light strengths (auto), or use them as given.", ADVANCED, default="auto")
    images: int | None = IMAGES
    seed: int = SEED
    device: str = DEVICE
    memory: str | None = option("Memory limit, e.g. 4GB (default: half of the free memory).", RESOURCES)
    surface: bool = option("Write depth and meshes.", OUTPUT, flags="--surface/--no-surface", default=True)
    surface_method: str = SURFACE_METHOD
    pixel_size: str | None = PIXEL_SIZE
    report: bool = REPORT
    material: bool = option(
        "For flat samples: also write maps for renderers and game engines.", ADVANCED, default=False
    )
    tileable: bool = option("Like --material, but make the maps tile seamlessly.", ADVANCED, default=False)
    texels: int | None = TEXELS
    flip_y: bool = FLIP_Y
    about: list[str] | None = option(
        "For the page: title, inventory, credit or license; can be repeated.", ADVANCED, "NAME=TEXT"
    )

    def settings(self, given: Collection[str]) -> dict[str, Any]:
        """Return the settings, by name, of the options given on the command line."""
        values = {name: value for name, value in vars(self).items() if name in given}
        if "parameters" in values:
            values["parameters"] = parse_parameters(self.parameters)
        if "about" in values:
            values["about"] = parse_parameters(self.about, "--about license=CC0")
        if values.pop("tileable", False) or "material" in values:
            values["material"] = "tileable" if self.tileable else "plain" if self.material else None
        return values


def seen_from_anywhere(reading: ReadOptions) -> dict[str, Any]:
    """Return the given options with absolute paths, as workers may run in another folder (words such as "full" stay)."""
    given = reading.given()
    for name in NAMED_FILES:
        if name in given and Path(given[name]).exists():
            given[name] = str(Path(given[name]).absolute())
    return given


def parse_parameters(settings: list[str] | None, example: str = "--set mu=0.05") -> dict[str, str]:
    """Parse names and values of a repeated option such as ``--set``.

    >>> parse_parameters(["mu=0.05", "p = 3"])
    {'mu': '0.05', 'p': '3'}
    """
    values: dict[str, str] = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ParameterError(code="not-a-setting", text=text, example=example)
        values[name.strip()] = value.strip()
    return values


def names(text: str | None) -> list[str] | None:
    """Split comma-separated names; None if nothing was given.

    >>> names("ls, pdlnv,")
    ['ls', 'pdlnv']
    """
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str | None, count: int, option: str, *, whole: bool = False) -> tuple[float, ...] | None:
    """Parse ``count`` comma-separated numbers; an error names the option.

    >>> numbers("120,80,30.5", 3, "--circle")
    (120.0, 80.0, 30.5)
    """
    if text is None:
        return None
    try:
        values = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        values = ()
    if len(values) != count or not all(abs(value) < 1e9 for value in values):
        raise ParameterError(code="not-numbers", option=option, text=text, count=count)
    return tuple(int(value) for value in values) if whole else values


@dataclass(frozen=True)
class Running:
    """Where jobs run, and their time limits."""

    workers: int | None = option("Processes on this machine (default: one per core).", RESOURCES, min=1)
    retry_failed: bool = option("Retry jobs that failed earlier.", RESOURCES, default=False)
    scheduler: str | None = option(
        "Dask scheduler, e.g. tcp://host:8786 (default: this machine).", ADVANCED, "ADDRESS"
    )
    deadline: float = option(
        "Time limit per job; jobs that exceed it are marked as failed.",
        ADVANCED,
        "SECONDS",
        default=RunOptions.deadline,
    )
    wait_for_workers: float = option(
        "Abort if no worker is available for this long.",
        ADVANCED,
        "SECONDS",
        default=RunOptions.wait_for_workers,
    )

    def options(self) -> RunOptions:
        """Convert to the library's options."""
        return RunOptions(**vars(self))
