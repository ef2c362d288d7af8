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
    found = calibration.lights
    sources = tuple(dict.fromkeys(found.source))
    several = len(sources) > 1
    rows = []
    for number, name in enumerate(calibration.files):
        mark = " ?" if number in calibration.suspects else ""
        rows.append(
            [
                f"{name}{mark}",
                *(f"{value:+.3f}" for value in found.directions[number]),
                f"{found.strengths[number]:.3f}",
                f"{max(found.expected_error[number], 0.1):.1f}°",
                *([found.source[number]] if several else []),
            ]
        )
    header = [
        "photograph",
        "x",
        "y",
        "z",
        "strength",
        "expected error",
        *(["found from"] if several else []),
    ]
    table = text_table(header, rows)
    source = "" if several else f"directions: {sources[0]}; "
    table.caption = f"{source}strengths: {found.strengths_source}"
    table.caption_justify = "left"
    return table
