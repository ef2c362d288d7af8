"""``photostereo batch``: many captures with the same settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.batch.options import RunOptions
from photostereo.cli.messages import about_batch
from photostereo.cli.options import Making, Reading
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError


def batch(
    terminal: Terminal,
    reading: Reading,
    making: Making,
    options: RunOptions,
    places: list[Path],
    out: Path,
    watch: bool = False,
    settle: float = 5.0,
    idle: float | None = None,
) -> dict[str, Any]:
    """Solve many captures with the same settings, with a folder of results each and an overview page."""
    from photostereo.batch.run import batch as run
    from photostereo.batch.settings import read_plan, seen_from_anywhere
    from photostereo.pipeline.settings import Settings

    settings = Settings()
    if any(place.suffix.lower() == ".toml" for place in places):
        if len(places) > 1:
            raise ParameterError(
                "Give either one plan, or captures and folders.", code="plan-and-folders"
            )
        places, settings = read_plan(places[0])
    given = making.settings(terminal.given)  # has priority over the plan
    given["parameters"] = {**settings.parameters, **given.get("parameters", {})}
    end = run(
        places,
        out,
        settings.changed(**seen_from_anywhere(reading.options().given(), Path.cwd()), **given),
        options=options,
        watch=watch,
        quiet_seconds=settle,
        idle_seconds=idle,
        control=terminal,
    )
    terminal.some_failed = end.failed > 0
    overview = out / "index.html"
    terminal.say_all(about_batch(end, terminal.summary(), overview))
    counts = {"done": end.done, "failed": end.failed, "failed_earlier": end.failed_earlier}
    return {
        "out": str(out.absolute()),
        "overview": str(overview.absolute()),
        "total": end.total,
        **counts,
    }
