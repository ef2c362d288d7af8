"""A first guess of large displacements, from the texture that photographs share whatever the light.

Fits that start at zero reach only a few pixels, and two groups of textured photographs, each displaced as a whole,
explain themselves. Phase correlation finds any distance. It is misled by shading where there is no texture, so its
result counts only if the photographs agree on it.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

#: Every photograph is compared with this many others.
PARTNERS = 5
#: Detail finer than this blur is compared, each pixel relative to the contrast around it.
DETAIL, CONTRAST = 3.0, 6.0
#: Contrast that counts as none, as a share of the picture's brightness.
FLAT = 0.02
#: A guess counts if half of its comparisons agree within this many pixels, and if it is not negligible.
AGREED, LEAST = 1.0, 1.5
#: A camera that slipped moves the picture by a few percent of its size. Repeating patterns may match farther away.
FARTHEST = 0.06
#: Rounds until the positions that explain the comparisons settle.
ROUNDS = 20


def first_guess(pictures: NDArray[np.float32]) -> NDArray[np.float64]:
    """(d, 2) displacements of pictures (d, h, w) in columns and rows; zero if they are small or doubtful."""
    details = [_detail(picture) for picture in pictures]
    window = cv2.createHanningWindow(pictures.shape[:0:-1], cv2.CV_32F)
    count = len(pictures)
    rng = np.random.default_rng(0)
    compared: list[list[tuple[int, NDArray[np.float64]]]] = [[] for _ in range(count)]
    for one in range(count):
        for other in rng.permutation(np.delete(np.arange(count), one))[:PARTNERS]:
            found = np.array(cv2.phaseCorrelate(details[one], details[other], window)[0])
            compared[other].append((one, found))
            compared[one].append((int(other), -found))
    positions = np.zeros((count, 2))
    for _ in range(ROUNDS):
        claims = [np.array([positions[other] + found for other, found in own]) for own in compared]
        positions = np.array([np.median(claim, axis=0) for claim in claims])
        positions -= np.median(positions, axis=0)
    off = [
        np.median([np.hypot(*(positions[other] + found - positions[number])) for other, found in own])
        for number, own in enumerate(compared)
    ]
    far = np.hypot(*positions.T)
    believed = (np.array(off) < AGREED) & (far > LEAST) & (far < FARTHEST * max(pictures.shape[1:]))
    return np.where(believed[:, None], positions, 0.0)


def _detail(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Fine detail of a picture relative to the contrast around it; a change of light does not affect it."""
    fine = picture - cv2.GaussianBlur(picture, (0, 0), DETAIL)
    around = np.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), CONTRAST))
    return np.asarray(fine / (around + FLAT * np.sqrt(np.mean(picture * picture)) + 1e-12), dtype=np.float32)
