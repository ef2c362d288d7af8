"""``photostereo lights``: light directions and strengths, from a ball or from the photographs alone."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo.cli.messages import about_lights
from photostereo.cli.options import BallReading
from photostereo.cli.terminal import Terminal, text_table
from photostereo.core.findings import sentences

if TYPE_CHECKING:
    from photostereo.lights.ball.calibration import Calibration

#: Smallest expected error that is printed, in degrees.
LEAST_ERROR = 0.1


def lights(
    terminal: Terminal,
    reading: BallReading,
    capture: Path,
    unknown: bool = False,
    out: Path | None = None,
    picture: bool = True,
    force: bool = False,
) -> dict[str, Any]:
    """Find light directions and strengths from a ball, or estimate them from the photographs alone."""
    from photostereo.capture.loading import calibrate
    from photostereo.capture.options import ESTIMATE
    from photostereo.io.atomic import replacing_file
    from photostereo.io.png import write_png
    from photostereo.lights.files.table import write_lights

    target = out or capture / "lights.csv"
    if capture.is_symlink() and not capture.exists():
        place = capture.absolute()
    else:
        place = capture.resolve()
    shown = target.with_suffix(".png") if out else place.parent / f"{place.name}-lights.png"
    with ExitStack() as both:  # existing files are reported before the work starts
        table = both.enter_context(replacing_file(target, force=force))
        drawn = both.enter_context(replacing_file(shown, force=force)) if picture else None
        terminal.stage("lights")
        given = reading.options().given() | ({"lights": ESTIMATE} if unknown else {})
        calibration = calibrate(capture, control=terminal, **given)
        write_lights(calibration, table, force=True)
        if drawn is not None:
            write_png(drawn, calibration.picture)
    terminal.say(lights_table(calibration))
    written = None if drawn is None else str(shown)
    terminal.say_all(about_lights(calibration.warnings, target, written))
    found = calibration.lights
    return {
        "out": str(target.absolute()),
        "picture": written,
        "files": list(calibration.files),
        "directions": found.directions.tolist(),
        "strengths": found.strengths.tolist(),
        "expected_error_degrees": found.expected_error.tolist(),
        "found_from": list(found.source),
        "strengths_from": found.strengths_source,
        "relief_factor": calibration.relief_factor,
        "warnings": sentences(calibration.warnings),
    }


def lights_table(calibration: Calibration) -> Any:
    """Table with one row per photograph; if all have the same source, it is stated once, below."""
    lights = calibration.lights
    sources = tuple(dict.fromkeys(lights.source))
    header = ["photograph", "x", "y", "z", "strength", "expected error"]
    rows = []
    for number, name in enumerate(calibration.files):
        mark = " ?" if number in calibration.suspects else ""
        x, y, z = lights.directions[number]
        error = max(lights.expected_error[number], LEAST_ERROR)
        strength = f"{lights.strengths[number]:.3f}"
        rows.append(
            [f"{name}{mark}", f"{x:+.3f}", f"{y:+.3f}", f"{z:+.3f}", strength, f"{error:.1f}°"]
        )
    caption = f"strengths: {lights.strengths_source}"
    if len(sources) > 1:
        header.append("found from")
        for row, source in zip(rows, lights.source, strict=True):
            row.append(source)
    else:
        caption = f"directions: {sources[0]}; {caption}"
    table = text_table(header, rows)
    table.caption = caption
    table.caption_justify = "left"
    return table
