r"""Detect a common rotation of all lights from the estimated normals.

If the lights are turned by a small rotation :math:`\omega`, so are all normals, and no single pixel shows it. But the
slopes p and q of a surface (its derivatives along x and y) have no curl, and those of a turned one do:

.. math:: q_x - p_y = \omega_x (q\, p_y - p\, q_y) + \omega_y (p\, q_x - q\, p_x) + \omega_z (p_x + q_y)

to first order, and exactly with its tangent for a turn about z alone. Least absolute deviations over the pixels give the
three angles, robust to edges and shadows. The surface must be curved; a plane shows nothing.

On a gentle relief these effects are small, and noise also has a curl. A true rotation is the same in every part of the
picture; an apparent one from noise is not, and undoing it does not remove the curl.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float64, Indices

#: Normals that face the camera less than this give little information on slopes.
FACING = 0.3
#: Number of evenly spread pixels used, at most twice as many; a tenth changes the angles of good captures by 0.3°.
SAMPLE = 20_000
#: Pixels across the squares whose mean normals are used: the most certain scale confirmed by the next is used. On a relief
#: whose normals are 0.8° off, noise imitates a turn of 8° at one pixel and of 3° at 4; detail finer than a square
#: imitates 0.4° at 4 pixels, 1.3° at 8.
SCALES = (1, 2, 4, 8)
#: Squares of an object whose mean normals show its detail; 250 or 1000 change the share by a fifth.
SQUARES = 500
#: Parts of the picture, each of which is left out once to estimate the standard error of a turn.
PARTS = 4
#: A turn of fewer standard errors may be chance. That relief shows 1.4, and 4.6 with
#: its lights turned by 10°.
SURE = 2.0
#: Minimum number of pixels in a part.
LEAST_PIXELS = 100
#: Maximum rounds of reweighting.
ROUNDS = 30
#: The rounds end with a step below this many radians.
SETTLED = 1e-5
#: Deviations below this share of a typical curl count equally.
ALIKE = 1e-3


def turn_of_lights(normals: NDArray[Any], mask: BoolArray) -> Float64:
    """Estimate the rotation of all lights, in degrees about x (right), y (up) and z (toward the camera); 0 if uncertain."""
    scaled = [_coarse(normals, mask, scale) for scale in SCALES]
    estimates = [_with_error(*pair) for pair in scaled]
    surest = np.zeros(3)
    least = np.inf
    where = scaled[0]
    for (fine, coarse), pair in zip(pairwise(estimates), scaled, strict=False):
        turn, error = fine
        coarser, its_error = coarse
        # What two scales differ by, beyond chance, is due to noise.
        difference = max(0.0, float(np.sum((turn - coarser) ** 2)) - its_error**2)
        total = float(np.sqrt(error**2 + difference))
        if total < least:
            surest = turn
            least = total
            where = pair
    if np.linalg.norm(surest) <= SURE * least:
        return np.zeros(3)
    undone = cv2.Rodrigues(-np.radians(surest))[0]
    if _share_of_curl(*where, undone) < _share_of_curl(*where, np.eye(3)):
        return surest
    return np.zeros(3)


def coarse_curl(normals: NDArray[Any], mask: BoolArray) -> float:
    """Return the share of the slope variation between :data:`SQUARES` squares that fits no surface, because of detail
    finer than a square, edges in depth, and errors. NaN for a plane, or for too few pixels."""
    scale = max(1, round((float(mask.sum()) / SQUARES) ** 0.5))
    share = _share_of_curl(*_coarse(normals, mask, scale), np.eye(3))
    if np.isinf(share):
        return np.nan
    return share


def _share_of_curl(normals: NDArray[Any], mask: BoolArray, turn: Float64) -> float:
    """Return the share of the slope variation of turned normals that fits no surface."""
    places = _places(normals, mask)
    rows, columns = (part[(normals[places] @ turn[2]) > FACING] for part in places)
    curl, _, varies = _curl(normals, rows, columns, turn)
    if 2 * len(rows) <= len(places[0]) or not varies.any():
        return np.inf
    return float(np.abs(curl).sum() / varies.sum())


def _with_error(normals: NDArray[Any], mask: BoolArray) -> tuple[Float64, float]:
    """Return the rotation estimated from these normals, and its standard error; infinite if there are too few pixels."""
    rows, columns = _places(normals, mask)
    if len(rows) < PARTS * LEAST_PIXELS:
        return np.zeros(3), np.inf
    curl, effects, _ = _curl(normals, rows, columns)
    # Above and below, left and right of the median pixel.
    part = 2 * (rows >= np.median(rows)) + (columns >= np.median(columns))
    without = [_turn(curl[part != k], effects[part != k]) for k in range(PARTS)]
    jackknife = float(np.linalg.norm(np.std(without, axis=0))) * (PARTS - 1) ** 0.5
    return _turn(curl, effects), jackknife


def _places(normals: NDArray[Any], mask: BoolArray) -> tuple[Indices, Indices]:
    """Return rows and columns of the pixels used: they and their neighbors face the camera."""
    usable = mask & (normals[..., 2] > FACING)
    whole = (
        usable[1:-1, 1:-1]
        & usable[1:-1, 2:]
        & usable[1:-1, :-2]
        & usable[2:, 1:-1]
        & usable[:-2, 1:-1]
    )
    rows, columns = np.nonzero(whole)
    step = max(1, len(rows) // SAMPLE)
    return rows[::step] + 1, columns[::step] + 1


def _coarse(normals: NDArray[Any], mask: BoolArray, scale: int) -> tuple[NDArray[Any], BoolArray]:
    """Return mean normals of squares that lie entirely in the mask."""
    if scale == 1:
        return normals, mask
    height, width = (side // scale for side in mask.shape)
    if not (height and width):
        return normals[:0], mask[:0]
    whole = np.s_[: height * scale, : width * scale]
    size = (width, height)
    mean = cv2.resize(normals[whole], size, interpolation=cv2.INTER_AREA)
    share = cv2.resize(mask[whole].astype(np.float32), size, interpolation=cv2.INTER_AREA)
    length = np.linalg.norm(mean, axis=2, keepdims=True)
    return mean / np.maximum(length, 1e-9), np.asarray(share > 1.0 - 0.5 / scale**2)


def _curl(
    normals: NDArray[Any], rows: Indices, columns: Indices, turn: Float64 | None = None
) -> tuple[Float64, Float64, Float64]:
    """Return, for (turned) normals at pixels, the curl of their slopes (n,), the effect of a turn about each axis on it
    (n, 3), and the variation of the slopes (n,)."""

    def slopes(down: int, right: int) -> Float64:
        chosen = np.asarray(normals[rows + down, columns + right], dtype=np.float64)
        chosen = chosen if turn is None else chosen @ turn.T
        return np.asarray(-chosen[:, :2] / np.maximum(chosen[:, 2:], 0.5 * FACING))

    p, q = slopes(0, 0).T
    px, qx = ((slopes(0, 1) - slopes(0, -1)) / 2).T
    py, qy = ((slopes(-1, 0) - slopes(1, 0)) / 2).T
    twist = (py + qx) / 2
    effects = np.stack([q * twist - p * qy, p * twist - q * px, px + qy], axis=1)
    return qx - py, effects, np.sqrt(px**2 + qx**2 + py**2 + qy**2)


def _turn(curl: Float64, effects: Float64) -> Float64:
    """Return the rotation that minimizes the absolute curl."""
    least = ALIKE * float(np.median(np.abs(curl))) + 1e-9
    weight = np.ones(len(curl))
    angles = np.zeros(3)
    for _ in range(ROUNDS):
        weighted = effects * weight[:, None]
        normal = effects.T @ weighted
        normal += (1e-9 * np.trace(normal) + 1e-30) * np.eye(3)  # a plane gives no information
        step = np.linalg.solve(normal, weighted.T @ (curl - effects @ angles))
        angles += step
        if np.abs(step).max() < SETTLED:
            break
        weight = 1.0 / np.maximum(np.abs(curl - effects @ angles), least)
    return np.degrees(np.arctan(angles))
