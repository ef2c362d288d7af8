"""Options that more than one command has, declared once.

A group is a dataclass whose fields are the options; its fields have the names of the settings that they fill in (see
:mod:`photostereo.pipeline.settings`). What few people need is in the panel "Advanced" of the help.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.batch.options import RunOptions
from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.cli.command import ADVANCED, INPUT, LIGHTS, METHOD, OUTPUT, RESOURCES
from photostereo.core.errors import ParameterError
from photostereo.results.format_names import LEAST_TEXELS, MOST_TEXELS


def complete_method(incomplete: str) -> list[str]:
    """What ``--method <TAB>`` offers."""
    from photostereo.solver.choice import WORDS
    from photostereo.solver.methods import method_names

    return [name for name in (*method_names(), *WORDS) if name.startswith(incomplete)]


def option(names: str, panel: str | None, help: str, metavar: str | None = None, **more: Any) -> Any:
    """An option with its names (``"--out -o"``), in a panel of the help."""
    return typer.Option(*names.split(), rich_help_panel=panel, help=help, metavar=metavar, **more)


CapturePath = Annotated[
    Path, typer.Argument(metavar="CAPTURE", help="Folder of photographs, .lp or .npz file.")
]
OutFolder = Annotated[Path, option("--out -o", OUTPUT, "Folder for the results.", "OUT")]
Force = Annotated[bool, option("--force -f", OUTPUT, "Replace an existing OUT.")]
Parameters = Annotated[
    list[str] | None,
    option("--set -s", METHOD, "A parameter of the method; can be repeated.", "NAME=VALUE"),
]
PixelSizeChoice = Annotated[
    str | None,
    option("--pixel-size", OUTPUT, "Width of a pixel: 0.1mm, 50um, 0.002in (no unit: mm).", "SIZE"),
]
SurfaceMethod = Annotated[
    str, option("--surface-method", ADVANCED, "Integration method: poisson, robust or simchony.")
]
Device = Annotated[str, option("--device", RESOURCES, "Compute on cpu or cuda.")]
FlipY = Annotated[
    bool, option("--flip-y", ADVANCED, "Write normal maps in the DirectX convention (green points down).")
]
Report = Annotated[bool, option("--report/--no-report", OUTPUT, "Write the page with the viewer.")]
About = Annotated[
    list[str] | None,
    option(
        "--about",
        ADVANCED,
        "For the page: title, inventory, credit or license; can be repeated.",
        "NAME=TEXT",
    ),
]
Color = Annotated[
    bool, option("--color", ADVANCED, "Albedo and mesh in color, even if the method uses gray.")
]
Images = Annotated[int | None, option("--images", ADVANCED, "Use N randomly chosen photographs.", "N", min=3)]
Seed = Annotated[int, option("--seed", ADVANCED, "Random seed (choice of photographs, noise).", min=0)]
Ball = Annotated[
    Path | None,
    option("--ball", LIGHTS, "Folder with photographs of a ball under the same lights.", "FOLDER"),
]
BallCircle = Annotated[
    str | None,
    option("--circle", LIGHTS, "Circle of the ball: column, row and radius in pixels.", "X,Y,R"),
]
Focal = Annotated[
    float | None,
    option("--focal", ADVANCED, "Focal length in pixels (default: from EXIF).", "PIXELS", min=1.0),
]
Card = Annotated[
    str | None,
    option(
        "--card", ADVANCED, "A gray card facing the camera: left, top, right, bottom in pixels.", "L,T,R,B"
    ),
]
Srgb = Annotated[
    bool | None,
    option(
        "--srgb/--linear",
        ADVANCED,
        "Undo the sRGB curve, or keep the values (default: undo for JPEG and sRGB tags).",
    ),
]


Texels = Annotated[
    int | None,
    option(
        "--size",
        ADVANCED,
        "Make a material a square of N × N texels.",
        "N",
        min=LEAST_TEXELS,
        max=MOST_TEXELS,
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a capture is read."""

    mask: Annotated[
        str | None,
        option("--mask", INPUT, 'A picture, "auto" (find the object), "bright" or "full" (whole frame).'),
    ] = None
    crop: Annotated[
        str | None,
        option("--crop", INPUT, "Use only this part, in pixels from the top left.", "X,Y,W,H"),
    ] = None
    scale: Annotated[float, option("--scale", INPUT, "Work at a lower resolution.", min=0.001, max=1.0)] = 1.0
    color: Color = False
    lights: Annotated[
        str | None,
        option("--lights", LIGHTS, 'A light file, another capture to take the lights from, or "estimate".'),
    ] = None
    ball: Ball = None
    circle: BallCircle = None
    card: Card = None
    lights_axes: Annotated[
        str | None,
        option("--lights-axes", ADVANCED, "Axes of the light file: x,-y,z if y points down.", "X,Y,Z"),
    ] = None
    reverse_lights: Annotated[
        bool, option("--reverse-lights", ADVANCED, "The light file points from the light to the object.")
    ] = False
    lights_strengths: Annotated[
        str,
        option(
            "--lights-strengths",
            ADVANCED,
            "Light strengths: given (in the light file) or unknown (estimate them).",
        ),
    ] = "given"
    focal: Focal = None
    srgb: Srgb = None
    ambient: Annotated[
        Path | None, option("--ambient", ADVANCED, "Photograph with the light off, to subtract.", "PICTURE")
    ] = None
    flat: Annotated[
        Path | None,
        option("--flat", ADVANCED, "Photograph of an evenly lit white surface, to divide by.", "PICTURE"),
    ] = None
    align: Annotated[
        str,
        option("--align", ADVANCED, "Undo camera movement between photographs: auto or off."),
    ] = "auto"
    leave_out: Annotated[
        list[str] | None, option("--leave-out", INPUT, "Exclude a photograph; can be repeated.", "NAME")
    ] = None
    keep: Annotated[
        list[str] | None,
        option(
            "--keep",
            ADVANCED,
            "Use a photograph even if it is dark, blurred, ...; can be repeated.",
            "NAME",
        ),
    ] = None
    edits: Annotated[
        bool, option("--edits/--no-edits", ADVANCED, "Apply the corrections made in the app.")
    ] = True
    strict: Annotated[
        bool,
        option("--strict", ADVANCED, "Stop at an unusable photograph instead of leaving it out."),
    ] = False

    def options(self) -> ReadOptions:
        """For the library."""
        return read_options(self)


@dataclass(frozen=True)
class BallReading:
    """How lights are estimated."""

    ball: Ball = None
    circle: BallCircle = None
    card: Card = None
    focal: Focal = None
    srgb: Srgb = None


def read_options(group: Reading | BallReading) -> ReadOptions:
    """A group of options for the library; what is not an option of the group has its default."""
    values = {entry.name: getattr(group, entry.name) for entry in fields(group)}
    values |= {name: values[name] or () for name in ("leave_out", "keep") if name in values}
    for name, count in (("circle", 3), ("card", 4), ("crop", 4)):
        if name in values:
            values[name] = numbers(values[name], count, f"--{name}", whole=name != "circle")
    return ReadOptions(**values)


@dataclass(frozen=True)
class Making:
    """How a capture is solved and what is written; with :class:`Reading`, the options of ``solve`` and ``batch``."""

    method: Annotated[
        str,
        option(
            "--method -m",
            METHOD,
            "A name from `photostereo methods`, or best, or fast (default: the best that finishes in minutes).",
            autocompletion=complete_method,
            show_default=False,
        ),
    ] = "auto"
    parameters: Parameters = None
    prior: Annotated[
        str | None,
        option("--prior", ADVANCED, "Add a prior to a method that has none: dictionary or smoothness."),
    ] = None
    strengths: Annotated[
        str, option("--strengths", ADVANCED, "Correct light strengths (auto), or use them as given.")
    ] = "auto"
    images: Images = None
    seed: Seed = 0
    device: Device = "cpu"
    memory: Annotated[
        str | None,
        option("--memory", RESOURCES, "Memory limit, e.g. 4GB (default: half of the free memory)."),
    ] = None
    surface: Annotated[bool, option("--surface/--no-surface", OUTPUT, "Write depth and meshes.")] = True
    surface_method: SurfaceMethod = "poisson"
    pixel_size: PixelSizeChoice = None
    report: Report = True
    material: Annotated[
        bool,
        option("--material", ADVANCED, "For flat samples: also write maps for renderers and game engines."),
    ] = False
    tileable: Annotated[
        bool, option("--tileable", ADVANCED, "Like --material, but make the maps tile seamlessly.")
    ] = False
    texels: Texels = None
    flip_y: FlipY = False
    about: About = None

    def settings(self, given: Collection[str]) -> dict[str, Any]:
        """The settings, by name, of the options that were given on the command line."""
        values = {name: value for name, value in vars(self).items() if name in given}
        if "parameters" in values:
            values["parameters"] = parse_parameters(self.parameters)
        if "about" in values:
            values["about"] = parse_parameters(self.about, "--about license=CC0")
        if values.pop("tileable", False) or "material" in values:
            values["material"] = "tileable" if self.tileable else "plain" if self.material else None
        return values


def seen_from_anywhere(reading: ReadOptions) -> dict[str, Any]:
    """The options that were given; paths in full, as workers may run in another folder (words such as "full" stay)."""
    given = reading.given()
    for name in NAMED_FILES:
        if name in given and Path(given[name]).exists():
            given[name] = str(Path(given[name]).absolute())
    return given


def parse_parameters(settings: list[str] | None, example: str = "--set mu=0.05") -> dict[str, str]:
    """Names and values of a repeated option such as ``--set``.

    >>> parse_parameters(["mu=0.05", "p = 3"])
    {'mu': '0.05', 'p': '3'}
    """
    values: dict[str, str] = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ParameterError(
                f'"{text}" is not a setting. Write NAME=VALUE, for example {example}.',
                code="not-a-setting",
                text=text,
            )
        values[name.strip()] = value.strip()
    return values


def names(text: str | None) -> list[str] | None:
    """Names with commas between them; None if nothing was given.

    >>> names("ls, pdlnv,")
    ['ls', 'pdlnv']
    """
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str | None, count: int, option: str, *, whole: bool = False) -> tuple[float, ...] | None:
    """``count`` numbers with commas between them; an error that names the option otherwise.

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
        raise ParameterError(
            f'"{text}" is not a value of {option}: expected {count} comma-separated numbers.',
            code="not-numbers",
            option=option,
            text=text,
        )
    return tuple(int(value) for value in values) if whole else values


GrowingOut = Annotated[
    Path, option("--out -o", OUTPUT, "Folder for the results; continues an earlier run.", "OUT")
]
OnlyFigures = Annotated[
    bool, option("--only-figures", None, "Redraw tables and figures without computing anything.")
]


@dataclass(frozen=True)
class Running:
    """Where jobs run, and for how long."""

    workers: Annotated[
        int | None,
        option("--workers", RESOURCES, "Processes on this machine (default: one per core).", min=1),
    ] = None
    retry_failed: Annotated[bool, option("--retry-failed", RESOURCES, "Retry what failed earlier.")] = False
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler",
            ADVANCED,
            "Dask scheduler, e.g. tcp://host:8786 (default: this machine).",
            "ADDRESS",
        ),
    ] = None
    deadline: Annotated[
        float,
        option(
            "--deadline", ADVANCED, "Time limit per job; jobs that exceed it are marked as failed.", "SECONDS"
        ),
    ] = RunOptions.deadline
    wait_for_workers: Annotated[
        float,
        option("--wait-for-workers", ADVANCED, "Abort if no worker is available for this long.", "SECONDS"),
    ] = RunOptions.wait_for_workers

    def options(self) -> RunOptions:
        """For the library."""
        return RunOptions(**vars(self))
