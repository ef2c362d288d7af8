"""``photostereo scene``: a synthetic capture on disk."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from photostereo.cli.options import Force, OutFolder, option
from photostereo.cli.terminal import Terminal


def scene(
    name: Annotated[str, typer.Argument(help="sphere, vase, relief, coin, figure, ...")],
    out: OutFolder,
    terminal: Terminal,
    size: Annotated[int, option("--size", min=16, help="Pixels along a side.")] = 256,
    lights: Annotated[int, option("--lights", min=3, help="Number of lights.")] = 20,
    arrangement: Annotated[
        str, option("--arrangement", help="How the lights are placed: dome, ring or random.")
    ] = "dome",
    reflectance: Annotated[
        str, option("--reflectance", help="lambertian, blinn-phong, ggx or oren-nayar.")
    ] = "lambertian",
    texture: Annotated[str | None, option("--texture", help="Texture of the albedo.")] = None,
    shadows: Annotated[bool, option("--shadows/--no-shadows", help="Cast shadows.")] = True,
    color: Annotated[bool, option("--color", help="Photographs in RGB.")] = False,
    seed: Annotated[int, option("--seed", min=0, help="Random seed (shape, texture and random lights).")] = 0,
    force: Force = False,
) -> dict[str, Any]:
    """Write a synthetic capture with exact truth, in the DiLiGenT layout."""
    from photostereo.capture.layouts.diligent import write_diligent
    from photostereo.scenes import place_lights, render_scene

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
    height, width = capture.frame
    return {"out": str(out.absolute()), "photographs": len(capture), "height": height, "width": width}
