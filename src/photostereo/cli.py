"""The command line: parses, calls, prints. Heavy libraries are imported by the commands that need them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from photostereo._version import __version__
from photostereo.commands.settings import parse_settings
from photostereo.errors import ParameterError, PhotostereoError
from photostereo.files.names import printable
from photostereo.interruption import ended_by, orderly_signals, tell_end
from photostereo.threads import shorten_spinning

app = typer.Typer(
    name="photostereo",
    help="Robust photometric stereo: photographs under known lights to normals, albedo, depth, mesh and a page.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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
Color = Annotated[bool, typer.Option("--color", help="Keep the colours: albedo and mesh in RGB.")]
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
Ambient = Annotated[
    Path | None, typer.Option("--ambient", metavar="PICTURE", help="Taken with the lamps off: subtracted.")
]
ReverseLights = Annotated[
    bool, typer.Option("--reverse-lights", help="The light file points from the lamps to the object.")
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
PixelSizeChoice = Annotated[
    str | None,
    typer.Option("--pixel-size", metavar="SIZE", help="Width of a pixel: 0.1mm, 50um, 0.002in (alone: mm)."),
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]


def _complete_method(incomplete: str) -> list[str]:
    """What ``--method <TAB>`` offers."""
    from photostereo.solver.methods import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


def _complete_methods(incomplete: str) -> list[str]:
    """The same after the last comma; a method is not offered twice."""
    given, comma, last = incomplete.rpartition(",")
    return [given + comma + name for name in _complete_method(last) if name not in given.split(",")]


def main() -> None:
    """The entry point: errors that the user can mend become one paragraph and exit code 2."""
    with orderly_signals():
        shorten_spinning()  # before NumPy comes
        words = sys.argv[1:]
        if words[:1] == ["solve"] and "--json" in words:
            from photostereo.commands.as_json import run_as_json

            sys.exit(run_as_json(app, words))
        try:
            app()
        except PhotostereoError as problem:
            _fail(str(problem))
        except MemoryError:
            _fail("There is not enough memory for this. Use fewer or smaller photographs, or crop them.")
        except OSError as problem:  # whatever the system refuses is the user's to mend
            if ended_by() is None:
                _fail(
                    f"{problem.strerror or problem}{_place(problem)}. Check the name, the rights and the room."
                )
            sys.exit(tell_end())
        except BaseException:
            if ended_by() is not None:  # what Ctrl-C has become by now
                sys.exit(tell_end())
            raise


def _fail(message: str) -> NoReturn:
    """One paragraph in one piece, so that a path can be copied from it, and exit code 2."""
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble(("Error: ", "bold red"), printable(message))
    Console(stderr=True, highlight=False, soft_wrap=True).print(text)
    sys.exit(2)


def _place(problem: OSError) -> str:
    return "" if problem.filename is None else f": {os.fsdecode(problem.filename)}"


def _version(show: bool) -> None:
    if show:
        typer.echo(f"photostereo {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Robust photometric stereo."""


@app.command()
def demo(out: OutFolder = Path("photostereo-demo"), force: Force = False, quiet: Quiet = False) -> None:
    """A synthetic object, end to end, in under a minute."""
    from photostereo.commands.demo import run

    run(out, force=force, quiet=quiet)


@app.command()
def info(
    capture: CapturePath,
    color: Color = False,
    srgb: Srgb = None,
    mask: MaskChoice = None,
    lights: LightsChoice = None,
    lights_axes: LightsAxes = None,
    reverse_lights: ReverseLights = False,
    ambient: Ambient = None,
    ball: BallFolder = None,
    circle: BallCircle = None,
    focal: Focal = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """What was found in a capture, and what is wrong with it."""
    from photostereo.commands.info import run

    run(
        capture,
        reading={
            "color": color,
            "srgb": srgb,
            "mask": mask,
            "lights": lights,
            "lights_axes": lights_axes,
            "reverse_lights": reverse_lights,
            "ambient": None if ambient is None else str(ambient),
            **_ball(ball, circle, focal),
        },
        as_json=as_json,
    )


@app.command()
def lights(
    capture: CapturePath,
    ball: BallFolder = None,
    circle: BallCircle = None,
    focal: Focal = None,
    card: Card = None,
    srgb: Srgb = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write (default: CAPTURE/lights.csv)."),
    ] = None,
    picture: Annotated[bool, typer.Option(help="The picture to check it by, beside the file.")] = True,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Where the lamps were: directions and strengths from a ball in the photographs."""
    from photostereo.commands.lights import run

    run(
        capture,
        out,
        finding={**_ball(ball, circle, focal), "card": _numbers(card, 4, "--card"), "srgb": srgb},
        picture=picture,
        force=force,
        quiet=quiet,
    )


@app.command()
def solve(
    capture: CapturePath,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Folder for the results (default: NAME-METHOD)."),
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="See `photostereo methods`.", autocompletion=_complete_method),
    ] = "dlsr",
    prior: Annotated[
        str | None, typer.Option("--prior", help="A prior on a method that has none: dictionary.")
    ] = None,
    settings: Settings = None,
    images: Images = None,
    seed: Seed = 0,
    color: Color = False,
    srgb: Srgb = None,
    mask: MaskChoice = None,
    lights: LightsChoice = None,
    lights_axes: LightsAxes = None,
    reverse_lights: ReverseLights = False,
    ambient: Ambient = None,
    ball: BallFolder = None,
    circle: BallCircle = None,
    focal: Focal = None,
    surface: Annotated[bool, typer.Option(help="Depth and mesh.")] = True,
    surface_method: Annotated[str, typer.Option(help="poisson, robust or simchony.")] = "poisson",
    pixel_size: PixelSizeChoice = None,
    material: Annotated[
        bool, typer.Option("--material", help="A flat sample: also its maps for renderers and game engines.")
    ] = False,
    tileable: Annotated[bool, typer.Option("--tileable", help="The same, and the maps wrap.")] = False,
    report: Annotated[bool, typer.Option(help="The page to look at.")] = True,
    flip_y: Annotated[bool, typer.Option("--flip-y", help="normals.png in the DirectX convention.")] = False,
    checkpoint: Annotated[Path | None, typer.Option(help="Save the state here every ten iterations.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on from a saved state.")] = None,
    device: Device = "cpu",
    memory: Annotated[
        str | None, typer.Option(help="Stay within so much, e.g. 4GB (default: half of what is free).")
    ] = None,
    crop: Annotated[
        str | None, typer.Option(metavar="X,Y,W,H", help="A part only, in pixels from the top left corner.")
    ] = None,
    scale: Annotated[float, typer.Option(min=0.001, max=1.0, help="At a lower resolution.")] = 1.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else; errors too.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Normals, albedo, depth, mesh and a report of a capture."""
    from photostereo.commands.solve import run
    from photostereo.exports.pixel_size import PixelSize
    from photostereo.results.folder import SurfaceChoice

    run(
        capture,
        out,
        method=method,
        prior=prior,
        parameters=parse_settings(settings),
        images=images,
        seed=seed,
        reading={
            "color": color,
            "srgb": srgb,
            "mask": mask,
            "lights": lights,
            "lights_axes": lights_axes,
            "reverse_lights": reverse_lights,
            "ambient": None if ambient is None else str(ambient),
            **_ball(ball, circle, focal),
            "crop": _numbers(crop, 4, "--crop"),
            "scale": scale,
        },
        surface=SurfaceChoice(method=surface_method, pixel_size=PixelSize.of(pixel_size))
        if surface
        else None,
        material="tileable" if tileable else "plain" if material else None,
        report=report,
        flip_y=flip_y,
        checkpoint=checkpoint,
        resume=resume,
        device=device,
        memory=memory,
        as_json=as_json,
        force=force,
        quiet=quiet,
    )


@app.command()
def compare(
    capture: CapturePath,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", help="Names with commas (default: all methods).", autocompletion=_complete_methods
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Folder for the results (default: NAME-compare)."),
    ] = None,
    images: Images = None,
    seed: Seed = 0,
    color: Color = False,
    srgb: Srgb = None,
    mask: MaskChoice = None,
    lights: LightsChoice = None,
    lights_axes: LightsAxes = None,
    reverse_lights: ReverseLights = False,
    ambient: Ambient = None,
    ball: BallFolder = None,
    circle: BallCircle = None,
    focal: Focal = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-s", metavar="METHOD.NAME=VALUE", help="A parameter of one method; repeatable."
        ),
    ] = None,
    meshes: Annotated[bool, typer.Option("--meshes", help="Write a mesh for each method.")] = False,
    report: Annotated[bool, typer.Option(help="The page to look at.")] = True,
    device: Device = "cpu",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Several methods on one capture: a table and side-by-side pictures."""
    from photostereo.commands.compare import run

    run(
        capture,
        out,
        methods=None if methods is None else [name.strip() for name in methods.split(",") if name.strip()],
        images=images,
        seed=seed,
        reading={
            "color": color,
            "srgb": srgb,
            "mask": mask,
            "lights": lights,
            "lights_axes": lights_axes,
            "reverse_lights": reverse_lights,
            "ambient": None if ambient is None else str(ambient),
            **_ball(ball, circle, focal),
        },
        settings=parse_settings(settings),
        meshes=meshes,
        report=report,
        device=device,
        force=force,
        quiet=quiet,
    )


@app.command()
def methods(
    name: Annotated[
        str | None, typer.Argument(help="One method, in full.", autocompletion=_complete_method)
    ] = None,
) -> None:
    """Every method: what it assumes, its parameters and defaults, its citation."""
    from photostereo.commands.methods import run

    run(name)


@app.command()
def scene(
    name: Annotated[str, typer.Argument(help="sphere, vase, relief, coin, figure, ...")],
    out: OutFolder,
    size: Annotated[int, typer.Option(min=16, help="Pixels along a side.")] = 256,
    lights: Annotated[int, typer.Option(min=3, help="Number of lights.")] = 20,
    arrangement: Annotated[str, typer.Option(help="Of the lights: dome, ring or random.")] = "dome",
    reflectance: Annotated[
        str, typer.Option(help="lambertian, blinn-phong, ggx or oren-nayar.")
    ] = "lambertian",
    texture: Annotated[str | None, typer.Option(help="Of the albedo.")] = None,
    shadows: Annotated[bool, typer.Option(help="Cast shadows.")] = True,
    color: Annotated[bool, typer.Option("--color", help="Photographs in RGB.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of shape, texture and random lights.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a synthetic capture with exact truth, in the DiLiGenT layout."""
    from photostereo.commands.scene import run

    run(
        name,
        out,
        size=size,
        lights=lights,
        arrangement=arrangement,
        reflectance=reflectance,
        texture=texture,
        shadows=shadows,
        color=color,
        seed=seed,
        force=force,
        quiet=quiet,
    )


@app.command()
def corrupt(
    capture: CapturePath,
    out: OutFolder,
    poisson: Annotated[float | None, typer.Option(metavar="DB", help="Poisson noise at this SNR.")] = None,
    salt_pepper: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of entries set to 0 or 1.")
    ] = None,
    gaussian: Annotated[
        float | None, typer.Option(metavar="SIGMA", help="Gaussian noise, intensities in [0, 1].")
    ] = None,
    images: Images = None,
    seed: Seed = 0,
    color: Color = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """A capture with noise added, in the DiLiGenT layout."""
    from photostereo.commands.corrupt import run

    run(
        capture,
        out,
        poisson=poisson,
        salt_pepper=salt_pepper,
        gaussian=gaussian,
        images=images,
        seed=seed,
        color=color,
        force=force,
        quiet=quiet,
    )


@app.command()
def mesh(
    source: Annotated[Path, typer.Argument(metavar="OUT", help="Results of a solve, or a normal-map PNG.")],
    method: Annotated[str, typer.Option(help="poisson, robust or simchony.")] = "poisson",
    formats: Annotated[
        str, typer.Option("--format", help="Of ply, glb, obj, stl, with commas; other meshes in OUT go.")
    ] = "ply,glb",
    pixel_size: PixelSizeChoice = None,
    decimate: Annotated[int | None, typer.Option(min=4, help="Reduce to about so many triangles.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="PLY and STL with every pixel, beyond two million triangles.")
    ] = False,
    watertight: Annotated[
        bool, typer.Option("--watertight", help="Close with walls and a base, for printing.")
    ] = False,
    highpass: Annotated[float | None, typer.Option(help="Flatten shapes wider than so many pixels.")] = None,
    exr: Annotated[bool, typer.Option("--exr", help="Normals and depth as EXR too (extra `exr`).")] = False,
    mask: Annotated[Path | None, typer.Option(help="Mask picture, with a normal-map PNG.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Another folder (default: into OUT; beside the PNG: NAME-mesh)."),
    ] = None,
    flip_y: Annotated[
        bool, typer.Option("--flip-y", help="The DirectX convention for normal pictures.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Depth and mesh again, with other options, or from any normal map."""
    from photostereo.commands.mesh import run
    from photostereo.exports.pixel_size import PixelSize
    from photostereo.results.folder import SurfaceChoice

    choice = SurfaceChoice(
        method=method,
        formats=tuple(word.strip().lower() for word in formats.split(",") if word.strip()),
        pixel_size=PixelSize.of(pixel_size),
        decimate=decimate,
        full=full,
        watertight=watertight,
        exr=exr,
        options={} if highpass is None else {"highpass": highpass},
    )
    run(source, choice, mask=mask, out=out, flip_y=flip_y, force=force, quiet=quiet)


@app.command()
def export(
    source: Annotated[Path, typer.Argument(metavar="RESULT", help="Results of a solve.")],
    to: Annotated[
        str,
        typer.Option(help="Of glb, obj, ply, stl, tiff, exr, material, ptm, relight, with commas."),
    ] = "glb,tiff,ptm,relight",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="A folder (default: RESULT-export).")
    ] = None,
    pixel_size: PixelSizeChoice = None,
    photographs: Annotated[
        Path | None, typer.Option(metavar="CAPTURE", help="Measure a material's roughness from these.")
    ] = None,
    tileable: Annotated[bool, typer.Option("--tileable", help="Make a material that wraps.")] = False,
    linear: Annotated[
        bool, typer.Option("--linear", help="PTM and relight in linear intensities, for measuring.")
    ] = False,
    flip_y: Annotated[bool, typer.Option("--flip-y", help="normals.exr in the DirectX convention.")] = False,
    surface_method: Annotated[str, typer.Option(help="poisson, robust or simchony.")] = "poisson",
    decimate: Annotated[int | None, typer.Option(min=4, help="About so many triangles in meshes.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """A result in the formats that other programs open."""
    from photostereo.commands.export import run
    from photostereo.exports.pixel_size import PixelSize

    run(
        source,
        out,
        kinds=to.split(","),
        pixel_size=PixelSize.of(pixel_size),
        photographs=photographs,
        tileable=tileable,
        linear=linear,
        flip_y=flip_y,
        surface_method=surface_method,
        decimate=decimate,
        force=force,
        quiet=quiet,
    )


@app.command()
def figure(
    sources: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Results of solves, a compare, or a sweep.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FIG", help="A .pdf, .svg or .png.")],
    truth: Annotated[
        Path | None, typer.Option(help="A capture with truth, or true normals as .npy or .png: error maps.")
    ] = None,
    zoom: Annotated[list[str] | None, typer.Option(metavar="X,Y,W,H", help="A close-up; repeatable.")] = None,
    relit: Annotated[
        list[str] | None, typer.Option(metavar="X,Y,Z", help="A row lit from there; repeatable.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, with commas.")] = None,
    limit: Annotated[float | None, typer.Option(min=0.1, help="Degrees at which the colours end.")] = None,
    width: Annotated[float, typer.Option(min=1.0, max=40.0, help="Inches.")] = 7.16,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Results side by side, for a paper: normals, close-ups, errors, relit."""
    from photostereo.commands.figure import run

    run(
        sources,
        out,
        truth=truth,
        zooms=zoom or [],
        lights=relit or [],
        methods=None if methods is None else [name.strip() for name in methods.split(",") if name.strip()],
        limit=limit,
        width=width,
        force=force,
        quiet=quiet,
    )


@app.command()
def train(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The weights, an .npz archive.")],
    minutes: Annotated[float, typer.Option(min=0.01, help="Wall-clock time of the training.")] = 10.0,
    seed: Seed = 0,
    width: Annotated[
        int, typer.Option(min=8, max=512, help="Numbers per photograph inside the network.")
    ] = 96,
    tokens: Annotated[int, typer.Option(min=1000, help="Photographs of pixels per step.")] = 400_000,
    device: Annotated[str, typer.Option(help="cuda, cpu, or auto.")] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside FILE.")] = False,
    begin: Annotated[Path | None, typer.Option(help="Start from a checkpoint's network.")] = None,
    evaluate: Annotated[
        Path | None, typer.Option(help="Then try `net` on the captures in this folder.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train the learned reflectance model on synthetic pixels (needs PyTorch, better a GPU)."""
    from photostereo.commands.train import run

    run(
        out,
        minutes=minutes,
        seed=seed,
        width=width,
        device=device,
        tokens=tokens,
        resume=resume,
        begin=begin,
        evaluate=evaluate,
        force=force,
        quiet=quiet,
    )


@app.command()
def view(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Results of a solve, a compare or the demo.")],
    serve: Annotated[
        bool | None,
        typer.Option(
            "--serve/--no-serve",
            help="Serve it on 127.0.0.1, or open the file (default: serve where the result is finer than the page).",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
) -> None:
    """Open the report."""
    from photostereo.commands.view import run

    run(out, serving=serve, port=port)


def _ball(folder: Path | None, circle: str | None, focal: float | None) -> dict[str, Any]:
    return {"ball": folder, "circle": _numbers(circle, 3, "--circle"), "focal": focal}


def _numbers(text: str | None, count: int, option: str) -> tuple[float, ...] | None:
    if text is None:
        return None
    words = text.replace(",", " ").split()
    try:
        values = tuple(float(word) for word in words)
    except ValueError:
        values = ()
    if len(values) != count or not all(abs(value) < 1e9 for value in values):
        raise ParameterError(f'"{text}" is not what {option} needs: {count} numbers with commas, in pixels.')
    return values if option == "--circle" else tuple(int(value) for value in values)


def _register_experiments() -> None:
    from photostereo.commands import batch, experiments

    batch.register(app)
    experiments.register(app)


_register_experiments()


if __name__ == "__main__":
    main()
