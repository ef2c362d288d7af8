"""Make docs/images/overview.jpg from a finished demo: python tools/overview_picture.py demo docs/images/overview.jpg"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

import photostereo as ps
from photostereo.core.conventions import encode_normals, srgb_from_linear

LIGHT = np.array([-0.62, 0.45, 0.64])


def main() -> None:
    demo, target = Path(sys.argv[1]), Path(sys.argv[2])
    capture = ps.load(demo / "capture", color=True)
    plain, learned = (ps.Reconstruction.load(demo / name) for name in ("ls", "pdlnv"))
    top = np.percentile(capture.images[3], 99.5)
    photograph = 255 * srgb_from_linear(capture.images[3] / top)
    shade = np.clip(learned.normals @ (LIGHT / np.linalg.norm(LIGHT)), 0, None)[..., None]
    relit = learned.albedo / np.percentile(learned.albedo[learned.mask], 99) * (0.06 + shade)
    panels = [
        ("one of 20 photographs", photograph),
        (
            f"least squares, {plain.angular_error.mean:.1f} deg",
            encode_normals(plain.normals, plain.mask, bits=8),
        ),
        (
            f"pdlnv, {learned.angular_error.mean:.1f} deg",
            encode_normals(learned.normals, learned.mask, bits=8),
        ),
        ("relit from the left", 255 * srgb_from_linear(relit.astype(np.float32))),
    ]
    tiles = []
    for words, picture in panels:
        tile = np.ascontiguousarray(np.rint(picture).astype(np.uint8)[..., ::-1])
        tile[~capture.mask] = 24
        foot = np.full((34, tile.shape[1], 3), 24, np.uint8)
        cv2.putText(foot, words, (12, 22), cv2.FONT_HERSHEY_DUPLEX, 0.55, (235, 235, 235), 1, cv2.LINE_AA)
        tiles.append(np.vstack([tile, foot]))
    cv2.imwrite(str(target), np.hstack(tiles), [cv2.IMWRITE_JPEG_QUALITY, 88])


if __name__ == "__main__":
    main()
