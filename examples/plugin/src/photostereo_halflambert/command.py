"""A command: ``photostereo brightness CAPTURE``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.cli.command import option
from photostereo.cli.terminal import Terminal


def brightness(
    terminal: Terminal,
    capture: Path,
    digits: int = option("Digits to print.", min=1, default=3),
) -> dict[str, Any]:
    """Print the mean brightness of each photograph."""
    import photostereo as ps

    means = [round(float(photograph.mean()), digits) for photograph in ps.load(capture).images]
    for number, mean in enumerate(means, 1):
        terminal.say(f"{number}: {mean}")
    return {"brightness": means}
