"""``photostereo lights``: where the lamps were, from a ball."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from photostereo.capture.calibrate import calibrate_folder
from photostereo.capture.options import ReadOptions
from photostereo.commands.terminal import Terminal
from photostereo.io.atomic import replacing_file
from photostereo.io.names import printable
from photostereo.io.sixteen_bit import write_png
from photostereo.lights.ball.calibration import Calibration
from photostereo.lights.files.writing import write_lights


def run(
    path: Path, out: Path | None, *, finding: ReadOptions, picture: bool, force: bool, quiet: bool
) -> None:
    """Find the lamps, write ``lights.csv`` and the picture beside it, tell."""
    with Terminal(quiet=quiet) as terminal:
        terminal.stage("lights")
        calibration = calibrate_folder(path, finding, terminal)
        target = out or path / "lights.csv"
        write_lights(calibration, target, force=force)
        terminal.say(_table(calibration))
        for warning in calibration.warnings:
            terminal.say(f"Warning: {warning}.")
        terminal.say(f"Lights:  {target}")
        if picture and calibration.picture is not None:
            shown = (
                target.with_suffix(".png")
                if out
                else path.resolve().parent / f"{path.resolve().name}-lights.png"
            )
            with replacing_file(shown, force=force) as partial:
                write_png(partial, calibration.picture)
            terminal.say(f"Picture: {shown}")


def _table(calibration: Calibration) -> Table:
    """One row for each photograph; what all of them were found from is said once, below."""
    sources = tuple(dict.fromkeys(calibration.found_from))
    several = len(sources) > 1
    table = Table("photograph", "x", "y", "z", "strength", "good to", *(["found from"] if several else []))
    for number, name in enumerate(calibration.files):
        x, y, z = calibration.directions[number]
        mark = " ?" if number in calibration.suspects else ""
        table.add_row(
            Text(printable(f"{name}{mark}")),
            *(f"{value:+.3f}" for value in (x, y, z)),
            f"{calibration.strengths[number]:.3f}",
            f"{calibration.residual[number]:.1f}°" if calibration.residual[number] >= 0.1 else "0.1°",
            *([calibration.found_from[number]] if several else []),
        )
    found = "" if several else f"directions: {sources[0]}; "
    table.caption = f"{found}strengths: {calibration.strengths_from}"
    table.caption_justify = "left"
    return table
