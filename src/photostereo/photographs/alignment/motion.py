"""Estimate how far the camera moved between photographs, coarse to fine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.photographs.alignment.first_guess import first_guess
from photostereo.photographs.alignment.tiles import SIDE, TileShifts, tile_shifts

#: Pixels along the longer side of the pictures that :func:`estimate_motion` is given at most: the last of its levels.
LONGEST = 1280
#: Pixels along the longer side of the pictures, and how often each is gone through. The first sees 2 to 3 % of the width;
#: more rounds change displacements by less than 0.05 pixel.
LEVELS = ((80, 6), (160, 6), (320, 4), (640, 3), (LONGEST, 2))
#: Pixels along the longer side in which large displacements are guessed.
GUESS_SIZE = 200
#: Tiles along the longer side, at least.
ACROSS = 5
#: Photographs that moved by less than this, in pixels of the reduced picture, are compared as they are.
#: 0.1 and 0.5 give the same displacements within 0.1 pixel.
STILL = 0.25
#: Blur that lets a linear fit see one or two pixels far.
BLUR = 0.8
#: Displacements that no tile is believed: a linear fit cannot see that far.
FARTHEST = 3.0
#: Even a perfect tile is not believed beyond this, in pixels: shading differs from the basis everywhere a little.
TILE_FLOOR = 0.05
#: Tiles with less information than this (in pixels⁻²) say nothing.
LEAST_INFORMATION = 1.0
#: A tile agrees with the others within this share of the displacement, or within this much of a pixel.
AGREEMENT_SHARE, AGREEMENT_LEAST = 1 / 3, 0.25
#: Rounds of robust averaging over tiles.
ROUNDS = 12
#: A tile that differs by this many of its standard deviations counts half.
DOUBTFUL = 2.0


class Motion(NamedTuple):
    """Displacement of d photographs.

    Attributes
    ----------
    shifts : (d, 2) columns and rows in pixels of the full photographs; the median photograph has none
    errors : (d,) standard errors in pixels, infinite if nothing was seen
    agreement : (d,) share of the informative tiles that agree within a third of the displacement (or a quarter pixel)
    gain : (d,) how many times less of a photograph is left unexplained with its displacement undone than as it was taken
    misfit : (d,) logarithm of what the others leave unexplained of a photograph, over what they leave of a typical one
    """

    shifts: NDArray[np.float64]
    errors: NDArray[np.float64]
    agreement: NDArray[np.float64]
    gain: NDArray[np.float64]
    misfit: NDArray[np.float64]


def estimate_motion(
    pictures: Sequence[NDArray[np.float32]] | NDArray[np.float32], scale: float, control: Control = SILENT
) -> Motion:
    """Displacement of photographs, from equally reduced gray pictures of them.

    Parameters
    ----------
    pictures : d arrays (h, w)
        The photographs reduced by ``scale``, linear or not; at least four.
    scale : float
        Reduced size over full size.
    control : Control

    Returns
    -------
    Motion
    """
    stack = np.asarray(pictures, dtype=np.float32)
    longest = max(stack.shape[1:])
    factor = min(1.0, GUESS_SIZE / longest)
    moved = first_guess(np.stack([_resized(picture, factor) for picture in stack])) / factor
    nothing = np.zeros(len(stack))
    found = Motion(moved, np.full(len(stack), np.inf), nothing, np.ones(len(stack)), nothing)
    levels = list(_levels(longest))
    control.stage("alignment", len(levels))
    for factor, rounds in levels:
        small = np.stack([cv2.GaussianBlur(_resized(picture, factor), (0, 0), BLUR) for picture in stack])
        small /= np.sqrt(np.mean(small * small)) + 1e-12
        before = None
        for _ in range(rounds):
            # Photographs that seem still are left alone: if all were moved at once they would wander together, because
            # a displacement that follows the light is nearly a change of light.
            applied = np.where((np.hypot(*moved.T) * factor > STILL)[:, None], moved, 0.0)
            if before is not None and np.array_equal(applied, before):
                break
            before = applied
            undone = np.stack([shifted(p, factor * m) for p, m in zip(small, applied, strict=True)])
            tiles = tile_shifts(undone, _side(undone))
            found = _consensus(tiles, np.hypot(*applied.T) * factor)
            moved = applied + found.shifts / factor
            moved -= np.median(moved, axis=0)
            control.check()
        control.advance()
        found = found._replace(shifts=moved, errors=found.errors / factor)
    gain = _gain(small, moved * factor) if np.hypot(*moved.T).max() * factor > STILL else found.gain
    return Motion(moved / scale, found.errors / scale, found.agreement, gain, found.misfit)


def _gain(pictures: NDArray[np.float32], moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much better each picture is explained with its displacement undone; 1 if nothing was seen.

    Shading that a light from another side turns around may look like a displacement, of half a wave on a wavy surface. But
    then the picture is explained as it is, too.
    """
    undone = np.stack([shifted(p, m) for p, m in zip(pictures, moved, strict=True)])
    side = _side(undone)
    after, before = tile_shifts(undone, side), tile_shifts(undone, side, judged=pictures)
    informed = np.trace(after.information, axis1=2, axis2=3) > LEAST_INFORMATION
    ratio = np.where(informed, before.misfit / after.misfit, np.nan)
    seen = informed.any(axis=0)
    gain = np.ones(len(pictures))
    gain[seen] = np.nanmedian(ratio[:, seen], axis=0)
    return gain


def _side(pictures: NDArray[np.float32]) -> int:
    """Pixels along a tile."""
    return int(min(SIDE, max(pictures.shape[1:]) // ACROSS, *pictures.shape[1:]))


def _levels(longest: int) -> Iterator[tuple[float, int]]:
    """Factor and rounds of every size up to that of the pictures themselves."""
    for size, rounds in LEVELS:
        yield min(1.0, size / longest), rounds
        if size >= longest:
            return


def _resized(picture: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    if factor == 1.0:
        return picture
    small: NDArray[np.float32] = cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    return small


def shifted(picture: NDArray[np.float32], shift: NDArray[np.float64]) -> NDArray[np.float32]:
    """The picture with a displacement undone, by cubic interpolation; the border is continued.

    >>> spot = np.zeros((9, 9), np.float32)
    >>> spot[4, 6] = 1
    >>> np.argwhere(shifted(spot, np.array([2.0, 0.0])) > 0.5).tolist()
    [[4, 4]]
    """
    if not np.any(shift):
        return picture
    move = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], dtype=np.float64)
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    size = picture.shape[1::-1]
    moved: NDArray[np.float32] = cv2.warpAffine(
        picture, move, size, flags=flags, borderMode=cv2.BORDER_REPLICATE
    )
    return moved


def _consensus(found: TileShifts, undone: NDArray[np.float64]) -> Motion:
    """One displacement for each photograph: what most tiles agree on, weighted by their information.

    ``undone`` (d,) is how far the photographs have been moved already.
    """
    count = found.shifts.shape[1]
    shifts, errors, agreement = np.zeros((count, 2)), np.full(count, np.inf), np.zeros(count)
    for number in range(count):
        informed = np.trace(found.information[:, number], axis1=1, axis2=2) > LEAST_INFORMATION
        near = np.abs(found.shifts[:, number]).max(axis=1) < FARTHEST
        used = informed & near
        if used.sum() < 2:
            continue
        moves = found.shifts[used, number]
        floor = TILE_FLOOR**2 * np.eye(2)
        weight = np.linalg.inv(np.linalg.inv(found.information[used, number]) + floor)
        trust = np.ones(len(moves))
        for _ in range(ROUNDS):
            total = np.linalg.inv(np.einsum("t,tij->ij", trust, weight))
            mean = total @ np.einsum("t,tij,tj->i", trust, weight, moves)
            off = moves - mean
            trust = 1.0 / (1.0 + np.einsum("ti,tij,tj->t", off, weight, off) / DOUBTFUL**2)
        pulls = trust[:, None] * np.einsum("tij,tj->ti", weight, off)
        spread = (
            total @ (pulls.T @ pulls) @ total
        )  # from the disagreement of the tiles, not from their own errors
        shifts[number], errors[number] = mean, float(np.sqrt(np.trace(spread) / 2))
        near = np.hypot(*off.T) < max(AGREEMENT_SHARE * undone[number], AGREEMENT_LEAST)
        agreement[number] = float(near.sum() / informed.sum())
    typical = np.median(found.misfit, axis=1, keepdims=True)
    misfit = np.median(np.log(found.misfit / typical), axis=0) if len(found.misfit) else np.zeros(count)
    return Motion(shifts, errors, agreement, np.ones(count), misfit)
