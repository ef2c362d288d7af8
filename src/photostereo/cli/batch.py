"""``photostereo batch``: many captures with the same settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.cli.command import ADVANCED, INPUT, REQUIRED, argument, option
from photostereo.cli.options import GROWING, Making, Reading, Running, output, seen_from_anywhere
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError


def batch(
    terminal: Terminal,
    reading: Reading,
    making: Making,
    running: Running,
    places: list[Path] = argument("A plan (TOML), or captures and folders of captures.", "PLAN|FOLDERS..."),
    out: Path = output(GROWING, default=REQUIRED),
    watch: bool = option("Keep solving captures as they appear in the folders.", INPUT, default=False),
    settle: float = option(
        "With --watch: solve a capture once its files have not changed for this long.",
        ADVANCED,
        "SECONDS",
        min=0,
        default=5.0,
    ),
    idle: float | None = option(
        "With --watch: stop if nothing new appears for this long.", ADVANCED, "SECONDS", min=0
    ),
) -> dict[str, Any]:
    """Solve many captures with the same settings, with a folder of results each and an overview page."""
    from photostereo.batch.run import batch as run
    from photostereo.batch.settings import read_plan
    from photostereo.pipeline.settings import Settings

    settings = Settings()
    if any(place.suffix.lower() == ".toml" for place in places):
        if len(places) > 1:
            raise ParameterError("Give either one plan, or captures and folders.", code="plan-and-folders")
        places, settings = read_plan(places[0])
    given = making.settings(terminal.given)  # has priority over the plan
    given["parameters"] = {**settings.solving.parameters, **given.get("parameters", {})}
    end = run(
        places,
        out,
        settings.changed(**seen_from_anywhere(reading.options()), **given),
        options=running.options(),
        watch=watch,
        quiet_seconds=settle,
        idle_seconds=idle,
        control=terminal,
    )
    words = [f"{end.done} done"]
    if end.failed > end.failed_earlier:
        words.append(f"{end.failed - end.failed_earlier} failed")
    if end.failed_earlier:
        words.append(f"{end.failed_earlier} failed earlier; use --retry-failed")
    terminal.say(", ".join(words))
    terminal.say(terminal.summary())
    overview = out / "index.html"
    terminal.say(f"Overview: {overview}")
    counts = {"done": end.done, "failed": end.failed, "failed_earlier": end.failed_earlier}
    return {"out": str(out.absolute()), "overview": str(overview.absolute()), "total": end.total, **counts}
