"""Options that more than one command has, declared once.

A group is a dataclass whose fields are the options; its fields have the names of the settings that they fill in (see
:mod:`photostereo.pipeline.settings`). What few people need is in the panel "Advanced" of the help.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.cli.command import ADVANCED, INPUT, LIGHTS, METHOD, OUTPUT, RESOURCES
from photostereo.core.errors import ParameterError


def complete_method(incomplete: str) -> list[str]:
    """What ``--method <TAB>`` offers."""
    from photostereo.solver.choice import WORDS
    from photostereo.solver.methods import method_names

    return [name for name in (*method_names(), *WORDS) if name.startswith(incomplete)]


def option(*names: str, panel: str | None = None, help: str, **more: Any) -> Any:
    """An option in a panel of the help."""
    return typer.Option(*names, rich_help_panel=panel, help=help, **more)


CapturePath = Annotated[
    Path, typer.Argument(metavar="CAPTURE", help="Folder of photographs, .lp or .npz file.")
]
OutFolder = Annotated[
    Path, option("--out", "-o", panel=OUTPUT, metavar="OUT", help="Folder for the results.")
]
OutFolderOrDefault = Annotated[
    Path | None,
    option("--out", "-o", panel=OUTPUT, metavar="OUT", help="Folder for the results (default: NAME-METHOD)."),
]
Force = Annotated[bool, option("--force", "-f", panel=OUTPUT, help="Replace an existing OUT.")]
Parameters = Annotated[
    list[str] | None,
    option(
        "--set", "-s", panel=METHOD, metavar="NAME=VALUE", help="A parameter of the method; can be repeated."
    ),
]
PixelSizeChoice = Annotated[
    str | None,
    option(
        "--pixel-size",
        panel=OUTPUT,
        metavar="SIZE",
        help="Width of a pixel: 0.1mm, 50um, 0.002in (no unit: mm).",
    ),
]
SurfaceMethod = Annotated[
    str,
    option("--surface-method", panel=ADVANCED, help="How depth is integrated: poisson, robust or simchony."),
]
Device = Annotated[str, option("--device", panel=RESOURCES, help="cpu or cuda.")]
FlipY = Annotated[
    bool,
    option(
        "--flip-y", panel=ADVANCED, help="Write normal maps in the DirectX convention (green points down)."
    ),
]
Report = Annotated[bool, option("--report/--no-report", panel=OUTPUT, help="Write the page with the viewer.")]
About = Annotated[
    list[str] | None,
    option(
        "--about",
        panel=ADVANCED,
        metavar="NAME=TEXT",
        help="For the page: title, inventory, credit or license; can be repeated.",
    ),
]
Color = Annotated[
    bool,
    option("--color", panel=INPUT, help="Albedo and mesh in color, with methods that look at gray, too."),
]
Images = Annotated[
    int | None,
    option("--images", panel=ADVANCED, min=3, metavar="N", help="Use N randomly chosen photographs."),
]
Seed = Annotated[
    int, option("--seed", panel=ADVANCED, min=0, help="Random seed (choice of photographs, noise).")
]
Ball = Annotated[
    Path | None,
    option("--ball", panel=LIGHTS, metavar="FOLDER", help="Photographs of a ball under the same lights."),
]
BallCircle = Annotated[
    str | None,
    option(
        "--circle", panel=LIGHTS, metavar="X,Y,R", help="Where the ball is: column, row and radius in pixels."
    ),
]
Focal = Annotated[
    float | None,
    option(
        "--focal",
        panel=ADVANCED,
        min=1.0,
        metavar="PIXELS",
        help="Focal length in pixels (default: from EXIF).",
    ),
]
Card = Annotated[
    str | None,
    option(
        "--card",
        panel=ADVANCED,
        metavar="L,T,R,B",
        help="A gray card that faces the camera: its sides in pixels.",
    ),
]
Srgb = Annotated[
    bool | None,
    option(
        "--srgb/--linear",
        panel=ADVANCED,
        help="Undo the sRGB curve, or not (default: for JPEG and files tagged as sRGB).",
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a capture is read."""

    mask: Annotated[
        str | None,
        option(
            "--mask",
            panel=INPUT,
            help='A picture, "auto" (find the object), "bright" or "full" (whole frame).',
        ),
    ] = None
    crop: Annotated[
        str | None,
        option(
            "--crop", panel=INPUT, metavar="X,Y,W,H", help="Use a part, in pixels from the top left corner."
        ),
    ] = None
    scale: Annotated[
        float, option("--scale", panel=INPUT, min=0.001, max=1.0, help="Work at a lower resolution.")
    ] = 1.0
    color: Color = False
    lights: Annotated[
        str | None,
        option(
            "--lights",
            panel=LIGHTS,
            help='A light file, another capture whose lights are used again, or "estimate".',
        ),
    ] = None
    ball: Ball = None
    circle: BallCircle = None
    card: Card = None
    lights_axes: Annotated[
        str | None,
        option(
            "--lights-axes",
            panel=ADVANCED,
            metavar="X,Y,Z",
            help="Axes of the light file: x,-y,z if y points down.",
        ),
    ] = None
    reverse_lights: Annotated[
        bool,
        option(
            "--reverse-lights", panel=ADVANCED, help="The light file points from the light to the object."
        ),
    ] = False
    focal: Focal = None
    srgb: Srgb = None
    ambient: Annotated[
        Path | None,
        option("--ambient", panel=ADVANCED, metavar="PICTURE", help="Taken with the light off, to subtract."),
    ] = None
    flat: Annotated[
        Path | None,
        option(
            "--flat", panel=ADVANCED, metavar="PICTURE", help="Of an evenly lit white surface, to divide by."
        ),
    ] = None

    align: Annotated[
        str,
        option(
            "--align",
            panel=ADVANCED,
            help="Undo the movement of the camera between photographs: auto or off.",
        ),
    ] = "auto"
    leave_out: Annotated[
        list[str] | None,
        option("--leave-out", panel=INPUT, metavar="NAME", help="A photograph not to use; can be repeated."),
    ] = None
    edits: Annotated[
        bool,
        option("--edits/--no-edits", panel=ADVANCED, help="Apply the corrections made in the app."),
    ] = True
    strict: Annotated[
        bool,
        option(
            "--strict",
            panel=ADVANCED,
            help="Stop at a photograph that cannot be used, instead of leaving it out.",
        ),
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
    if "leave_out" in values:
        values["leave_out"] = values["leave_out"] or ()
    for name, count in _NUMBERS.items():
        if name in values:
            values[name] = numbers(values[name], count, f"--{name}", whole=name != "circle")
    return ReadOptions(**values)


#: Options that are lists of numbers, and how many.
_NUMBERS = {"circle": 3, "card": 4, "crop": 4}


def seen_from_anywhere(reading: ReadOptions) -> dict[str, Any]:
    """The options that were given; paths in full, as workers may run in another folder (words such as "full" stay)."""
    given = reading.given()
    for name in NAMED_FILES:
        if name in given and Path(given[name]).exists():
            given[name] = str(Path(given[name]).absolute())
    return given


@dataclass(frozen=True)
class Material:
    """Maps of a flat sample."""

    material: Annotated[
        bool,
        option(
            "--material",
            panel=ADVANCED,
            help="A flat sample: also write maps for renderers and game engines.",
        ),
    ] = False
    tileable: Annotated[
        bool, option("--tileable", panel=ADVANCED, help="Like --material, but make the maps tile seamlessly.")
    ] = False

    @property
    def kind(self) -> str | None:
        """As :class:`photostereo.pipeline.settings.OutputSettings` has it."""
        return "tileable" if self.tileable else "plain" if self.material else None


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
                f'"{text}" is not a setting. Write NAME=VALUE, for instance {example}.',
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
            f'"{text}" is not a value of {option}: it needs {count} numbers with commas, in pixels.',
            code="not-numbers",
            option=option,
            text=text,
        )
    return tuple(int(value) for value in values) if whole else values
