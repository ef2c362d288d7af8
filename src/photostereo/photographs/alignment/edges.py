"""Compare the directions of edges between photographs, to detect those that are rotated or show another object.

Under another light an edge (an outline, a crease, a painted line) becomes brighter or darker, or vanishes, but it does not
turn. So the directions of edges, whatever their sign, are compared: under similar light most of them are the same, and
every photograph has a partner with a similar light. A rotated photograph matches its partner only if it is rotated back;
one of another object never does. Objects that look alike when turned (a weave, a star) prove nothing: there, the
other photographs match their partners after the same rotation, too.
"""

from __future__ import annotations

import cv2
import numpy as np

from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.photographs.alignment.tiles import derivatives
from photostereo.photographs.framing import coarse, moved_back

#: Pixels along the longer side of the pictures that are compared.
SIZE = 80
#: Their blur in pixels, which removes noise.
BLUR = 0.8
#: An edge is weighted by its contrast relative to its surroundings within this blur, in pixels,
AROUND = 3.0
#: and to this share of the contrast of the whole picture, so that noise has no edges.
FLAT = 0.02
#: Photographs whose edges agree with another by more than this are not turned. Turned ones have 0.53 at most.
ALIKE = 0.6
#: A photograph is turned if its edges agree better by this when it is turned back. Still ones have 0.06 at most, turned
#: ones 0.3 to 0.9, except for fine grain without other edges.
TURNED = 0.15
#: At least this many other photographs are turned by the same angle, to see whether they agree, too.
SOME = 24
#: Degrees between the turns that are tried.
STEP = 5.0
#: The smallest of them: smaller turns are movement of the camera.
LEAST = 10.0


def compare_edges(pictures: Float32, control: Control) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How well the edges of at least three pictures (d, H, W) agree with those of the most similar other, from -1 to 1:

    (d,) as they are; (d,) at best, turned or not; and (d,) how much better they agree when turned than as they are, and
    than those of any other picture turned by the same angle. If no turn was tried, the last is 0.
    """
    small = [cv2.GaussianBlur(coarse(picture, SIZE), (0, 0), BLUR) for picture in pictures]
    inside = _disc(small[0].shape)
    angles = np.radians([0.0, *np.arange(LEAST, 360.0 - LEAST + STEP, STEP)])

    def agreement(number: int, angles: FloatArray) -> FloatArray:
        """Agreement of a picture, turned by each angle, with every other: (angles, d)."""
        turned = (moved_back(small[number], np.array([0.0, 0.0, angle])) for angle in angles)
        found = np.stack([_directions(one, inside) for one in turned]) @ directions.T
        found[:, number] = -1.0
        control.check()
        return found

    directions = np.stack([_directions(picture, inside) for picture in small])
    pairs = directions @ directions.T
    np.fill_diagonal(pairs, -1.0)
    alike = pairs.max(axis=1)
    best = alike.copy()
    better = np.zeros_like(alike)
    # Turned back, a turned photograph would agree about as well as usual.
    low = np.flatnonzero(alike < min(ALIKE, float(np.median(alike)) - TURNED))
    suspects = {number: agreement(number, angles) for number in low.tolist()}
    partners = list(range(len(small)))
    while suspects and len(partners) > 2:
        for number, found in suspects.items():
            among = found[:, partners].max(axis=1)
            angle = int(np.argmax(among))
            best[number] = among[angle]
            better[number] = among[angle] - among[0]
            if better[number] > TURNED:
                others = [k for k in partners if k != number]
                some = others[:: max(1, len(others) // SOME)]
                usual = max(
                    agreement(k, angles[[angle]])[0, [j for j in others if j != k]].max()
                    for k in some
                )
                better[number] = min(better[number], among[angle] - usual)
        worst = max(suspects, key=lambda number: float(better[number]))
        if better[worst] <= TURNED:
            break
        del suspects[
            worst
        ]  # it is turned and cannot be a partner: others, when turned, would match it
        partners.remove(worst)
    return alike, best, better


def _directions(picture: Float32, inside: BoolArray) -> Float32:
    """The directions of edges inside, a unit vector: cosine and sine of twice their angle, times their contrast."""
    across, down = derivatives(picture)
    squared = across * across + down * down
    around = cv2.GaussianBlur(squared, (0, 0), AROUND) + (FLAT * float(picture.std())) ** 2 + 1e-20
    both = np.stack([across * across - down * down, 2 * across * down]) / (squared + around)
    found = both[:, inside].ravel()
    return np.asarray(found / (np.linalg.norm(found) + 1e-12), dtype=np.float32)


def _disc(shape: tuple[int, ...]) -> BoolArray:
    """The pixels that stay in the picture however it is turned."""
    rows, columns = (np.arange(side) - 0.5 * (side - 1) for side in shape)
    return np.asarray(np.hypot(rows[:, None], columns) < 0.5 * min(shape) - 1)
