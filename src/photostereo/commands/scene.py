"""``photostereo scene``: a synthetic capture on disk."""

from __future__ import annotations

from pathlib import Path

from photostereo.capture.layouts.diligent import write_diligent
from photostereo.commands.terminal import Terminal
from photostereo.scenes import place_lights, render_scene


def run(
    name: str,
    out: Path,
    *,
    size: int,
    lights: int,
    arrangement: str,
    reflectance: str,
    texture: str | None,
    shadows: bool,
    color: bool,
    seed: int,
    force: bool,
    quiet: bool,
) -> None:
    """Render and write."""
    with Terminal(quiet=quiet) as terminal:
        capture = render_scene(
            name,
            size=size,
            lights=place_lights(arrangement, lights, rng=seed),
            reflectance=reflectance,
            texture=texture,
            cast_shadows=shadows,
            color=color,
            rng=seed,
        )
        write_diligent(capture, out, force=force)
        terminal.say(f"{capture}")
        terminal.say(f"Written: {out}")
