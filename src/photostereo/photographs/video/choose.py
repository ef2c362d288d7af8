"""Which frames of a video to use: spread over what the light did, sharp, and without a hand in the picture.

Every frame is first seen small (:class:`Look`). Divided by its length, such a picture no longer depends on the exposure,
so an automatic camera does not matter. The distance between two of them says how far the light moved in between;
summed up, it is a path. Frames at equal steps along the path spread the lights, however fast or slowly the torch was
walked, and while it rests no frame is wasted.

On each step, the sharpest frame is used that fits the others. What a moving light does to a still object is explained by
a few basis pictures; a hand, a torch or its cable is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, Float32, FloatArray, Indices
from photostereo.core.errors import CaptureError

#: Numbers of frames to use: with fewer than the first the lights are too few, beyond the second nothing improves.
FEWEST = 24
MOST = 60
#: A step along the path between two chosen frames, as a distance between normalized pictures: about 10° of light.
STEP = 0.12
#: Basis pictures that explain an object under any light. Nine explain 99 % of a matte one; gloss and shadows need more.
BASIS = 12
#: A frame is left out if its worst pixels fit the basis this many times worse than those of a usual frame. A hand in a
#: corner has 10 or more, blur 3, a highlight that moves at most 2.
STRANGE = 3.0
#: Share of the typical misfit that is added to each pixel's own, so that dark pixels do not count too much. From 0.1 to
#: 1 a hand stands out clearly.
FLOOR = 0.3
#: A frame is left out if it is less sharp than this share of its neighbors in time. Compression varies it by 10 %.
BLURRED = 0.8
#: Neighbors in time that sharpness is compared with, on either side.
NEIGHBORS = 7
#: Parts of the video that are explained by frames before and after them. A hand stays for less than one of them.
SPELLS = 10
#: Frames that a basis is made of at most; more explain no more.
MOST_EXPLAINED = 200
#: Share of the pixels that a hand or a torch covers at least.
WORST = 0.02


@dataclass(frozen=True, eq=False)
class Look:
    """All frames of a video, seen small."""

    pictures: Float32  #: (n, h, w) gray and linear
    sharpness: FloatArray  #: (n,) energy of fine detail in the frame at full resolution, relative to its brightness


def choose_frames(look: Look) -> Indices:
    """Choose the frames of a video to use as photographs.

    Parameters
    ----------
    look : Look
        All frames.

    Returns
    -------
    (k,) array of int
        Numbers of the chosen frames, in the order of time.

    Raises
    ------
    CaptureError
        If the light does not move.
    """
    good = is_sharp(look.sharpness) & ~is_strange(look.pictures)
    candidates = np.flatnonzero(good)
    if len(candidates) < 3:
        raise CaptureError(
            "Hardly any frame of the video is sharp and free of hands. Prop up the camera and keep "
            "the torch out of the picture.",
            code="video-unusable",
            found=len(candidates),
        )
    path = path_length(look.pictures[candidates])
    if path[-1] < 3 * STEP:
        raise CaptureError(
            "The light hardly moves in the video. Walk a torch around the object while the camera "
            "stands still.",
            code="light-does-not-move",
            length=float(path[-1]),
        )
    count = int(np.clip(round(path[-1] / STEP), FEWEST, MOST))
    count = min(count, len(candidates))
    step = np.minimum((path / path[-1] * count).astype(int), count - 1)
    chosen = []
    for number in np.unique(step):
        on_step = candidates[step == number]
        chosen.append(on_step[np.argmax(look.sharpness[on_step])])
    return np.array(chosen)


def path_length(pictures: Float32) -> FloatArray:
    """How far the light has moved up to each frame: (n,), in distances between normalized pictures.

    Noise and compression make even still frames differ. What two neighbors differ when the light rests, the smallest
    differences of the video, is not counted.
    """
    flat = pictures.reshape(len(pictures), -1)
    unit = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
    distance = np.linalg.norm(np.diff(unit, axis=0), axis=1)
    # Half a second of rest is in every video, at its beginning or its end; where it is not, the slowest part counts less.
    noise = np.percentile(distance, 5)
    moved = np.sqrt(np.maximum(distance**2 - noise**2, 0.0))
    return np.concatenate([[0.0], np.cumsum(moved)])


def is_strange(pictures: Float32) -> BoolArray:
    """Frames with something that is not the object under some light, such as a hand: (n,) bool.

    A hand stays for a while, so frames are explained by those of other times only.
    """
    flat = pictures.reshape(len(pictures), -1).astype(np.float64)
    unit = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
    spell = np.arange(len(unit)) * SPELLS // len(unit)
    rest = np.empty(unit.shape)
    for number in range(SPELLS):
        inside = spell == number
        basis = _basis_of(unit[np.abs(spell - number) > 1])
        rest[inside] = np.abs(unit[inside] - (unit[inside] @ basis.T) @ basis)
    # Pixels in gloss and at shadows are never explained well, those of a dark ground always.
    usual = np.quantile(rest, 0.75, axis=0)
    relative = rest / (usual + FLOOR * usual.mean())
    worst = np.quantile(relative, 1 - WORST, axis=1)
    return np.asarray(worst > STRANGE * np.median(worst))


def _basis_of(unit: FloatArray) -> FloatArray:
    """Orthonormal pictures that explain most of some frames."""
    every = max(len(unit) // MOST_EXPLAINED, 1)
    rank = min(BASIS, max(len(unit) // 3, 1))
    return np.linalg.svd(unit[::every], full_matrices=False)[2][:rank]


def is_sharp(sharpness: FloatArray) -> BoolArray:
    """Frames that are about as sharp as those shortly before and after: (n,) bool."""
    count = len(sharpness)
    typical = np.empty(count)
    for number in range(count):
        around = sharpness[max(number - NEIGHBORS, 0) : number + NEIGHBORS + 1]
        typical[number] = np.median(around)
    return np.asarray(sharpness >= BLURRED * typical)
