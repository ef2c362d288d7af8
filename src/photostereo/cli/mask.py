"""``photostereo mask``: write the mask of the object for editing."""

from pathlib import Path
from typing import Any

from photostereo.cli.terminal import Terminal


def mask(
    terminal: Terminal, capture: Path, out: Path | None = None, force: bool = False
) -> dict[str, Any]:
    """Find the object and write its mask at full size, for editing in any image editor."""
    import numpy as np

    from photostereo.capture.loading import read_lazily
    from photostereo.capture.options import ReadOptions
    from photostereo.io.atomic import replacing_file
    from photostereo.io.png import write_png

    target = out or capture / "mask.png"
    with replacing_file(target, force=force) as partial:
        options = ReadOptions(
            mask="auto", pixel_size="1mm"
        )  # of no effect: lights do not determine the mask
        found = read_lazily(capture, options, terminal, need_lights=False)
        write_png(partial, found.whole_mask.astype(np.uint8) * np.uint8(255))
    share = float(found.mask.mean())
    terminal.say(f"Mask:    {target} ({100 * share:.0f} % of the frame; white is the object)")
    return {
        "out": str(target.absolute()),
        "mask_pixels": found.pixel_count,
        "mask_share": round(share, 4),
    }
