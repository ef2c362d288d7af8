"""Make docs/images/ball.jpg: a coin and two balls under four lights. python -m tools.ball_picture docs/images/ball.jpg"""

from __future__ import annotations

import sys

import cv2
import numpy as np

from photostereo.core.conventions import srgb_from_linear
from tests.ball_scenes.balls import shoot_table
from tests.ball_scenes.studio import Ball, Studio

LIGHTS = {
    "the upper left": (-0.6, 0.5, 0.62),
    "the upper right": (0.6, 0.5, 0.62),
    "the left": (-0.75, 0.0, 0.66),
    "below": (0.1, -0.75, 0.65),
}
GROUND = 24


def main() -> None:
    shoot = shoot_table(
        [Ball("black", 395, 95, 52), Ball("matte", 395, 225, 52)],
        size=(320, 470),
        scene="coin",
        lights=list(LIGHTS.values()),
        studio=Studio(table=0.25, texture=0.35, window=0.2, second=0.01, lamp_width=7.0),
        rng=3,
    )
    tiles = []
    for words, image in zip(LIGHTS, shoot.images, strict=True):
        picture = np.rint(255 * srgb_from_linear(0.75 * image)).astype(np.uint8)
        foot = np.full((34, picture.shape[1]), GROUND, np.uint8)
        place, style = (12, 22), cv2.FONT_HERSHEY_DUPLEX
        cv2.putText(foot, f"light from {words}", place, style, 0.55, 235, 1, cv2.LINE_AA)
        tiles.append(
            cv2.copyMakeBorder(
                np.vstack([picture, foot]), 0, 0, 0, 6, cv2.BORDER_CONSTANT, value=GROUND
            )
        )
    sheet = np.vstack([np.hstack(tiles[:2]), np.hstack(tiles[2:])])
    cv2.imwrite(sys.argv[1], sheet, [cv2.IMWRITE_JPEG_QUALITY, 86])


if __name__ == "__main__":
    main()
