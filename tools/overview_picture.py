"""Make docs/images/overview.jpg from the demo: python tools/overview_picture.py DEMO docs/images/overview.jpg

DEMO is the folder that ``photostereo demo`` wrote; the methods are run again on its photographs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

import photostereo as ps
from photostereo.core.conventions import encode_normals, srgb_from_linear

LIGHT = np.array([-0.62, 0.45, 0.64])
GROUND, WIDTH = 24, 360
METHODS = {"ls": "least squares", "pdlnv": "the paper's pdlnv", "dlnet": "the default, dlnet"}


def main() -> None:
    demo, target = Path(sys.argv[1]), Path(sys.argv[2])
    capture = ps.load(demo / "capture", color=True)
    results = {name: ps.solve(capture, name) for name in METHODS}
    top = np.percentile(capture.images[3], 99.5)
    panels = [("one of 20 photographs", 255 * srgb_from_linear(capture.images[3] / top))]
    for name, words in METHODS.items():
        result = results[name]
        picture = encode_normals(result.normals, result.mask, bits=8)
        panels.append((f"{words}: {result.angular_error.mean:.1f} deg", picture))
    best = results["dlnet"]
    shade = np.clip(best.normals @ (LIGHT / np.linalg.norm(LIGHT)), 0, None)[..., None]
    relit = best.albedo / np.percentile(best.albedo[best.mask], 99) * (0.06 + shade)
    panels.append(("relit from the left", 255 * srgb_from_linear(relit.astype(np.float32))))
    tiles = []
    for words, picture in panels:
        tile = np.ascontiguousarray(np.rint(picture).astype(np.uint8)[..., ::-1])
        tile[~capture.mask] = GROUND
        tile = cv2.resize(tile, (WIDTH, WIDTH), interpolation=cv2.INTER_AREA)
        foot = np.full((34, WIDTH, 3), GROUND, np.uint8)
        white, style = (235, 235, 235), cv2.FONT_HERSHEY_DUPLEX
        cv2.putText(foot, words, (12, 22), style, 0.55, white, 1, cv2.LINE_AA)
        tiles.append(np.vstack([tile, foot]))
    cv2.imwrite(str(target), np.hstack(tiles), [cv2.IMWRITE_JPEG_QUALITY, 88])


if __name__ == "__main__":
    main()
