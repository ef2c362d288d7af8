"""Regenerate the packaged example.

Run ``python -m photostereo_lab.scenes.example src/photostereo/example/owl.npz``.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np

from photostereo.example import COLOR_UNIT, NORMAL_UNIT
from photostereo.io.atomic import write_bytes
from photostereo_lab.scenes.lights import dome_lights
from photostereo_lab.scenes.render import render_scene


def write_example(file: Path) -> None:
    """Render the figure and store what :func:`photostereo.example.owl` needs."""
    scene = render_scene(
        "figure", size=400, lights=dome_lights(20), reflectance="oren-nayar", color=True
    )
    assert scene.truth is not None and scene.truth_albedo is not None
    normals = scene.truth[scene.mask]
    color = scene.truth_albedo[scene.mask]
    packed = io.BytesIO()
    np.savez_compressed(
        packed,
        mask=scene.mask,
        lights=scene.lights.directions,
        color=np.rint(color / COLOR_UNIT).astype(np.uint8),
        normals=np.rint(normals[:, :2] / NORMAL_UNIT).astype(np.int16),
        lit=np.packbits(scene.images[:, scene.mask].any(axis=-1), axis=0),
    )
    write_bytes(file, packed.getvalue())


if __name__ == "__main__":
    write_example(Path(sys.argv[1]))
