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
    size: Annotated[int, option("--size", None, "Pixels along a side.", min=16)] = 256,
    lights: Annotated[int, option("--lights", None, "Number of lights.", min=3)] = 20,
    arrangement: Annotated[
        str, option("--arrangement", None, "How the lights are placed: dome, ring or random.")
    ] = "dome",
    reflectance: Annotated[
        str, option("--reflectance", None, "lambertian, blinn-phong, ggx or oren-nayar.")
    ] = "lambertian",
    texture: Annotated[str | None, option("--texture", None, "Texture of the albedo.")] = None,
    shadows: Annotated[bool, option("--shadows/--no-shadows", None, "Cast shadows.")] = True,
    color: Annotated[bool, option("--color", None, "Photographs in RGB.")] = False,
    seed: Annotated[
        int, option("--seed", None, "Random seed (shape, texture and random lights).", min=0)
    ] = 0,
    force: Force = False,
) -> dict[str, Any]:
    """Write a synthetic capture with exact truth, in the DiLiGenT layout."""
    from photostereo.capture.layouts.diligent import write_diligent
    from photostereo.cli.state import capture_line
    from photostereo.io.atomic import require_free
    from photostereo.scenes import place_lights, render_scene

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
    return {"out": str(out.absolute()), "photographs": len(capture), "height": height, "width": width}
