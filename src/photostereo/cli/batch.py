"""``photostereo batch``: many captures with the same settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.cli.cluster_options import GrowingOut, Running
from photostereo.cli.command import ADVANCED, INPUT, METHOD, OUTPUT, RESOURCES
from photostereo.cli.options import (
    Images,
    Material,
    Parameters,
    PixelSizeChoice,
    Reading,
    complete_method,
    option,
    parse_parameters,
    seen_from_anywhere,
)
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError


def batch(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="PLAN|FOLDERS...", help="A plan (TOML), or captures and folders of captures."),
    ],
    out: GrowingOut,
    reading: Reading,
    material: Material,
    running: Running,
    terminal: Terminal,
    method: Annotated[
        str | None,
        option(
            "--method",
            "-m",
            panel=METHOD,
            help="A name from `photostereo methods`, or best, or fast.",
            autocompletion=complete_method,
        ),
    ] = None,
    prior: Annotated[
        str | None, option("--prior", panel=ADVANCED, help="Add a prior to a method that has none.")
    ] = None,
    parameters: Parameters = None,
    images: Images = None,
    seed: Annotated[int | None, option("--seed", panel=ADVANCED, min=0, help="Random seed.")] = None,
    surface: Annotated[
        bool | None, option("--surface/--no-surface", panel=OUTPUT, help="Write depth and meshes.")
    ] = None,
    surface_method: Annotated[
        str | None, option("--surface-method", panel=ADVANCED, help="poisson, robust or simchony.")
    ] = None,
    pixel_size: PixelSizeChoice = None,
    report: Annotated[
        bool | None, option("--report/--no-report", panel=OUTPUT, help="Write a page for each capture.")
    ] = None,
    flip_y: Annotated[
        bool | None, option("--flip-y", panel=OUTPUT, help="normals.png in the DirectX convention.")
    ] = None,
    device: Annotated[str | None, option("--device", panel=RESOURCES, help="cpu or cuda.")] = None,
    watch: Annotated[
        bool, option("--watch", panel=INPUT, help="Keep solving captures as they appear in the folders.")
    ] = False,
    settle: Annotated[
        float,
        option(
            "--settle",
            panel=ADVANCED,
            min=0,
            metavar="SECONDS",
            help="With --watch: take a capture when its files have not changed for this long.",
        ),
    ] = 5.0,
    idle: Annotated[
        float | None,
        option(
            "--idle",
            panel=ADVANCED,
            min=0,
            metavar="SECONDS",
            help="With --watch: stop if nothing new appears for this long.",
        ),
    ] = None,
) -> dict[str, Any]:
    """Solve many captures with the same settings: a folder of results each, a ledger and an overview page."""
    from photostereo.batch.find import read_plan
    from photostereo.batch.run import batch as run
    from photostereo.pipeline.settings import Settings

    settings = Settings()
    if any(place.suffix.lower() == ".toml" for place in places):
        if len(places) > 1:
            raise ParameterError("Give one plan, or captures and folders; not both.", code="plan-and-folders")
        places, settings = read_plan(places[0])
    given = {
        "method": method, "prior": prior, "images": images, "seed": seed, "surface": surface,
        "surface_method": surface_method, "pixel_size": pixel_size, "report": report, "flip_y": flip_y,
        "material": material.kind, "device": device,
    }  # fmt: skip
    # The command line goes before the plan.
    settings = settings.changed(
        parameters={**settings.solving.parameters, **parse_parameters(parameters)},
        **seen_from_anywhere(reading.options()),
        **{name: value for name, value in given.items() if value is not None},
    )
    end = run(
        places,
        out,
        settings,
        options=running.options(),
        watch=watch,
        quiet_seconds=settle,
        idle_seconds=idle,
        control=terminal,
    )
    failed = f", {end.failed} failed" if end.failed else ""
    terminal.say(f"{end.done} done{failed}")
    if end.failed_earlier:
        terminal.say(f"{end.failed_earlier} failed earlier and were not tried again; use --retry-failed")
    overview = out / "index.html"
    terminal.say(f"Overview: {overview}")
    counts = {"done": end.done, "failed": end.failed, "failed_earlier": end.failed_earlier}
    return {"out": str(out.absolute()), "overview": str(overview.absolute()), "total": end.total, **counts}
