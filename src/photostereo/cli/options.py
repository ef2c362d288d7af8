"""Options that more than one command has, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.capture.options import ReadOptions
from photostereo.cli.composed import Group
from photostereo.core.errors import ParameterError

CapturePath = Annotated[
    Path, typer.Argument(metavar="CAPTURE", help="Folder of photographs, .lp or .npz file.")
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for the results.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace an existing OUT.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
]
Images = Annotated[int | None, typer.Option(min=3, help="Use so many photographs, drawn at random.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the draw of photographs and of noise.")]
SurfaceMethod = Annotated[str, typer.Option(help="poisson, robust or simchony.")]
PixelSizeChoice = Annotated[
    str | None,
    typer.Option("--pixel-size", metavar="SIZE", help="Width of a pixel: 0.1mm, 50um, 0.002in (alone: mm)."),
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]

# How a capture is read.

Color = Annotated[bool, typer.Option("--color", help="Keep the colors: albedo and mesh in RGB.")]
Srgb = Annotated[
    bool | None,
    typer.Option(
        "--srgb/--linear", help="Undo the sRGB curve, or not (default: of JPEG and what is tagged as sRGB)."
    ),
]
MaskChoice = Annotated[
    str | None,
    typer.Option(
        "--mask", help='Another mask: a picture, "full", "auto" (found in the photographs) or "bright".'
    ),
]
LightsChoice = Annotated[
    str | None,
    typer.Option("--lights", help="Another light file, or another capture whose lights are used again."),
]
LightsAxes = Annotated[
    str | None,
    typer.Option(
        "--lights-axes", metavar="X,Y,Z", help="Axes of the light file: x,-y,z where y points down."
    ),
]
ReverseLights = Annotated[
    bool, typer.Option("--reverse-lights", help="The light file points from the lamps to the object.")
]
Ambient = Annotated[
    Path | None, typer.Option("--ambient", metavar="PICTURE", help="Taken with the lamps off: subtracted.")
]
Flat = Annotated[
    Path | None, typer.Option("--flat", metavar="PICTURE", help="Of an even surface: divided by.")
]
BallFolder = Annotated[
    Path | None, typer.Option("--ball", metavar="FOLDER", help="Photographs of a ball under the same lamps.")
]
BallCircle = Annotated[
    str | None, typer.Option("--circle", metavar="X,Y,R", help="The ball: column, row and radius in pixels.")
]
Focal = Annotated[
    float | None,
    typer.Option(min=1.0, metavar="PIXELS", help="Focal length in pixels, for the perspective of the ball."),
]
Card = Annotated[
    str | None,
    typer.Option(
        "--card", metavar="L,T,R,B", help="A gray card that faces the camera: left, top, right, bottom."
    ),
]
Crop = Annotated[
    str | None,
    typer.Option("--crop", metavar="X,Y,W,H", help="A part only, in pixels from the top left corner."),
]
Scale = Annotated[float, typer.Option("--scale", min=0.001, max=1.0, help="At a lower resolution.")]


def read_options(
    color: Color = False,
    srgb: Srgb = None,
    mask: MaskChoice = None,
    lights: LightsChoice = None,
    lights_axes: LightsAxes = None,
    reverse_lights: ReverseLights = False,
    ambient: Ambient = None,
    flat: Flat = None,
    ball: BallFolder = None,
    circle: BallCircle = None,
    focal: Focal = None,
    crop: Crop = None,
    scale: Scale = 1.0,
) -> ReadOptions:
    """How a capture is read."""
    return ReadOptions(
        color=color,
        srgb=srgb,
        mask=mask,
        lights=lights,
        lights_axes=lights_axes,
        reverse_lights=reverse_lights,
        ambient=ambient,
        flat=flat,
        ball=ball,
        circle=numbers(circle, 3, "--circle"),
        focal=focal,
        crop=whole_numbers(crop, 4, "--crop"),
        scale=scale,
    )


def ball_options(
    ball: BallFolder = None,
    circle: BallCircle = None,
    focal: Focal = None,
    card: Card = None,
    srgb: Srgb = None,
) -> ReadOptions:
    """How the lamps are found."""
    circle_numbers, card_numbers = numbers(circle, 3, "--circle"), whole_numbers(card, 4, "--card")
    return ReadOptions(ball=ball, circle=circle_numbers, focal=focal, card=card_numbers, srgb=srgb)


Reading = Annotated[ReadOptions, Group(read_options)]
BallReading = Annotated[ReadOptions, Group(ball_options)]


def complete_method(incomplete: str) -> list[str]:
    """What ``--method <TAB>`` offers."""
    from photostereo.solver.choice import WORDS
    from photostereo.solver.methods import method_names

    return [name for name in (*method_names(), *WORDS) if name.startswith(incomplete)]


def names(text: str | None) -> list[str] | None:
    """Names with commas; None where nothing was said.

    >>> names("ls, pdlnv,")
    ['ls', 'pdlnv']
    """
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str | None, count: int, option: str) -> tuple[float, ...] | None:
    """So many numbers with commas; an error that names the option otherwise.

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
        raise ParameterError(f'"{text}" is not what {option} needs: {count} numbers with commas, in pixels.')
    return values


def whole_numbers(text: str | None, count: int, option: str) -> tuple[int, ...] | None:
    """As :func:`numbers`, without their fractions."""
    values = numbers(text, count, option)
    return None if values is None else tuple(int(value) for value in values)
