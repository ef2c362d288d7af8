"""Write ``lights.csv``: a calibration as a readable table that can be read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from photostereo.io.atomic import replacing_file, write_text
from photostereo.io.json_text import json_text
from photostereo.lights.ball.calibration import Calibration
from photostereo.lights.files.table import ball_line


def lights_table(calibration: Calibration) -> str:
    """Return the text of ``lights.csv``.

    Balls in the photographs themselves are listed above the table, so that they are removed from the object's mask when
    the file is read back.
    """
    lights = calibration.lights
    columns = ["file", "x", "y", "z", "intensity", "residual_degrees", "found_from"]
    if lights.positions is not None:
        columns += ["position_x", "position_y", "position_z"]
    circles = [ball.circle for ball in calibration.balls] if calibration.in_frame else []
    lines = [f"# strengths: {lights.strengths_source}", *map(ball_line, circles), ",".join(columns)]
    for number, name in enumerate(calibration.files):
        error = lights.expected_error[number]
        cells = [
            name.replace(",", "_"),
            *(f"{value:.6f}" for value in lights.directions[number]),
            f"{lights.strengths[number]:.5f}",
            f"{error:.2f}" if np.isfinite(error) else "",
            lights.source[number].replace(",", " "),
            *(() if lights.positions is None else (f"{value:.1f}" for value in lights.positions[number])),
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def write_lights(calibration: Calibration, path: Path, *, force: bool = False) -> None:
    """Write ``lights.csv``, or a list of files with direction and intensity if the name ends in ``.json``, atomically."""
    if path.suffix.lower() == ".json":
        lights = calibration.lights
        rows = zip(calibration.files, lights.directions, lights.strengths, strict=True)
        text = json_text(
            [
                {"file": name, "direction": direction.tolist(), "intensity": float(strength)}
                for name, direction, strength in rows
            ]
        )
    else:
        text = lights_table(calibration)
    with replacing_file(path, force=force) as partial:
        write_text(partial, text)
