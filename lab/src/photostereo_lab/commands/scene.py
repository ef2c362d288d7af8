"""``photostereo scene``: a synthetic capture on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.cli.command import argument, option
from photostereo.cli.terminal import Terminal


def scene(
    terminal: Terminal,
    out: Path,
    name: str = argument("sphere, vase, relief, coin, figure, ..."),
    size: int = option("Pixels along a side.", min=16, default=256),
    lights: int = option("Number of lights.", min=3, default=20),
    arrangement: str = option("How the lights are placed: dome, ring or random.", default="dome"),
    reflectance: str = option("lambertian, blinn-phong, ggx or oren-nayar.", default="lambertian"),
    texture: str | None = option(
        "Texture of the albedo: uniform, checker, marble, glaze or stone; painted for the figure."
    ),
    shadows: bool = option("Cast shadows.", flags="--shadows/--no-shadows", default=True),
    color: bool = option("Photographs in RGB.", default=False),
    seed: int = option("Random seed (shape, texture and random lights).", min=0, default=0),
    force: bool = False,
) -> dict[str, Any]:
    """Write a synthetic capture with exact truth, in the DiLiGenT layout."""
    from photostereo.capture.layouts.diligent import write_diligent
    from photostereo.cli.info import capture_line
    from photostereo.io.atomic import require_free
    from photostereo_lab.scenes import place_lights, render_scene

    require_free(out, force=force)
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
    terminal.say(capture_line(capture))
    terminal.say(f"Written: {out}")
    height, width = capture.frame
    return {
        "out": str(out.absolute()),
        "photographs": len(capture),
        "height": height,
        "width": width,
    }
