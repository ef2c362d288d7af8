"""The command ``batch``; what it calls is imported when it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.commands.settings import parse_settings
from photostereo.errors import ParameterError
from photostereo.jobs.limits import Limits

#: What the exit code says where captures failed; 2 is an error that stopped the batch itself.
SOME_FAILED = 1


def batch_command(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLAN|FOLDERS...", help="A plan as TOML, or captures and folders that hold captures."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="OUT", help="Folder for the results; goes on where it stopped."),
    ],
    method: Annotated[str | None, typer.Option("--method", "-m", help="See `photostereo methods`.")] = None,
    prior: Annotated[str | None, typer.Option("--prior", help="A prior on a method that has none.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="A parameter; repeatable.")
    ] = None,
    images: Annotated[
        int | None, typer.Option(min=3, help="Use so many photographs, drawn at random.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the draw of photographs.")] = None,
    color: Annotated[bool | None, typer.Option("--color", help="Keep the colours.")] = None,
    srgb: Annotated[
        bool | None, typer.Option("--srgb/--linear", help="Undo the sRGB curve of the photographs, or not.")
    ] = None,
    mask: Annotated[str | None, typer.Option(help='One mask for all: a picture, "full" or "auto".')] = None,
    lights: Annotated[str | None, typer.Option(help="One light file for all.")] = None,
    surface: Annotated[bool | None, typer.Option("--surface/--no-surface", help="Depth and mesh.")] = None,
    surface_method: Annotated[str | None, typer.Option(help="poisson, robust or simchony.")] = None,
    pixel_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Width of a pixel, such as 0.1mm.")
    ] = None,
    report: Annotated[
        bool | None, typer.Option("--report/--no-report", help="A page for each capture.")
    ] = None,
    flip_y: Annotated[
        bool | None, typer.Option("--flip-y", help="normals.png in the DirectX convention.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on with captures that appear, once their files stand still.")
    ] = False,
    settle: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="With --watch: files must stand still for so long."),
    ] = 5.0,
    idle: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="With --watch: end after so long without news."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786; default: this machine."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine; default: one per core.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Solve failed captures again.")
    ] = False,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="A capture that takes longer has failed.")
    ] = Limits.job,
    wait_for_workers: Annotated[
        float, typer.Option(metavar="SECONDS", help="Give up where no worker is alive for so long.")
    ] = Limits.without_workers,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Many captures with the same settings: a folder of results each, a ledger and an overview."""
    from photostereo.batch.find import read_plan
    from photostereo.batch.run import batch
    from photostereo.batch.settings import Settings
    from photostereo.jobs.progress import monitor_for

    chosen = Settings()
    if any(place.suffix.lower() == ".toml" for place in places):
        if len(places) > 1:
            raise ParameterError("Give one plan, or captures and folders; not both.")
        places, chosen = read_plan(places[0])
    given: dict[str, Any] = {
        "method": method, "prior": prior, "images": images, "seed": seed, "color": color, "srgb": srgb,
        "mask": _absolute(mask), "lights": _absolute(lights), "surface": surface,
        "surface_method": surface_method, "pixel_size": pixel_size, "report": report, "flip_y": flip_y,
    }  # fmt: skip
    # The command line goes before the plan.
    chosen = replace(chosen, **{name: value for name, value in given.items() if value is not None})
    if settings:
        chosen = replace(chosen, parameters={**chosen.parameters, **parse_settings(settings)})
    end = batch(
        places,
        out,
        chosen,
        scheduler=scheduler,
        workers=workers,
        retry_failed=retry_failed,
        watch=watch,
        quiet_seconds=settle,
        idle_seconds=idle,
        limits=Limits(deadline, wait_for_workers),
        monitor=monitor_for(quiet=quiet),
    )
    if end.failed:
        raise typer.Exit(SOME_FAILED)


def _absolute(path: str | None) -> str | None:
    """Workers may live in another folder; words such as "full" stay."""
    return str(Path(path).absolute()) if path is not None and Path(path).is_file() else path


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("batch")(batch_command)
