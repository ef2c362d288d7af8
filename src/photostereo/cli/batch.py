"""``photostereo batch``: many captures with the same settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.cli.cluster_options import GrowingOut, Running
from photostereo.cli.composed import composed
from photostereo.cli.options import Images, PixelSizeChoice, Quiet, Reading, Settings, complete_method
from photostereo.commands.settings import parse_settings
from photostereo.core.errors import ParameterError

#: What the exit code says where captures failed; 2 is an error that stopped the batch itself.
SOME_FAILED = 1


@composed
def batch(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLAN|FOLDERS...", help="A plan as TOML, or captures and folders that hold captures."
        ),
    ],
    out: GrowingOut,
    *,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="A name of `photostereo methods`, or fast or best.",
            autocompletion=complete_method,
        ),
    ] = None,
    prior: Annotated[str | None, typer.Option("--prior", help="A prior on a method that has none.")] = None,
    settings: Settings = None,
    images: Images = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the draw of photographs.")] = None,
    reading: Reading,
    surface: Annotated[bool | None, typer.Option("--surface/--no-surface", help="Depth and mesh.")] = None,
    surface_method: Annotated[str | None, typer.Option(help="poisson, robust or simchony.")] = None,
    pixel_size: PixelSizeChoice = None,
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
    running: Running,
    quiet: Quiet = False,
) -> None:
    """Many captures with the same settings: a folder of results each, a ledger and an overview."""
    from photostereo.batch.find import read_plan
    from photostereo.batch.progress import control_for
    from photostereo.batch.run import batch as run
    from photostereo.batch.settings import Settings as BatchSettings

    chosen = BatchSettings()
    if any(place.suffix.lower() == ".toml" for place in places):
        if len(places) > 1:
            raise ParameterError("Give one plan, or captures and folders; not both.")
        places, chosen = read_plan(places[0])
    given: dict[str, Any] = {
        "method": method, "prior": prior, "images": images, "seed": seed, "surface": surface,
        "surface_method": surface_method, "pixel_size": pixel_size, "report": report, "flip_y": flip_y,
    }  # fmt: skip
    # The command line goes before the plan.
    chosen = replace(
        chosen,
        parameters={**chosen.parameters, **parse_settings(settings)},
        reading=replace(chosen.reading, **_seen_from_anywhere(reading)),
        **{name: value for name, value in given.items() if value is not None},
    )
    end = run(
        places,
        out,
        chosen,
        options=running,
        watch=watch,
        quiet_seconds=settle,
        idle_seconds=idle,
        control=control_for(quiet=quiet),
    )
    if end.failed:
        raise typer.Exit(SOME_FAILED)


def _seen_from_anywhere(reading: ReadOptions) -> dict[str, Any]:
    """The options that were given; paths in full, as workers may live in another folder (words such as "full" stay)."""
    given = reading.given()
    for name in NAMED_FILES:
        if name in given and Path(given[name]).exists():
            given[name] = str(Path(given[name]).absolute())
    return given
