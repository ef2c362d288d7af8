"""Estimate how far the camera moved and turned between photographs, coarse to fine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import cv2
import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.photographs.alignment.edges import Edges, compare_edges
from photostereo.photographs.alignment.tiles import SIDE, TileShifts, tile_shifts
from photostereo.photographs.framing import Float32, coarse, moved_back, resized
from photostereo.runtime.threads import in_turn, processors

#: Pixels along the longer side of the pictures that :func:`estimate_motion` is given at most: the last of its levels.
LONGEST = 1280
#: Pixels along the longer side of the pictures, and rounds at each size. The first size detects displacements of 2 to 3 %
#: of the width; more rounds change displacements by less than 0.05 pixel.
LEVELS = ((80, 6), (160, 8), (320, 6), (640, 4), (LONGEST, 2))
#: The first guess: every photograph is compared with this many others, in pictures with this longer side.
PARTNERS, GUESS_SIZE = 5, 200
#: Detail finer than this blur is compared, each pixel relative to the contrast around it; and the contrast that counts as
#: none, as a share of the picture's brightness.
DETAIL, CONTRAST, FLAT = 3.0, 6.0, 0.02
#: A guess counts if half of its comparisons agree within this many pixels, and if it is not negligible.
AGREED, LEAST = 1.0, 1.5
#: A camera that slipped moves the picture by a few percent of its size. Repeating patterns may match farther away.
SLIPPED = 0.06
#: Rounds until the positions that explain the comparisons settle.
GUESS_ROUNDS = 20
#: Tiles along the longer side, at least.
ACROSS = 5
#: Photographs that moved by less than this, in pixels of the reduced picture, are compared as they are.
#: 0.1 and 0.5 give the same displacements within 0.1 pixel.
STILL = 0.25
#: Once all photographs are where they were in an earlier round, within this, in pixels of the reduced picture, the next
#: size follows. (One that is nearly still may oscillate.)
SETTLED = 0.02
#: Blur that lets a linear fit reach one or two pixels.
BLUR = 0.8
#: Tiles with larger displacements are ignored: a linear fit cannot reach that far.
FARTHEST = 3.0
#: Error that even a perfect tile is assumed to have, in pixels: shading differs slightly from the basis everywhere.
TILE_FLOOR = 0.05
#: Tiles with less information than this (in pixels⁻²) are ignored.
LEAST_INFORMATION = 1.0
#: A tile agrees with the others within this share of the displacement, or within this much of a pixel.
AGREEMENT_SHARE, AGREEMENT_LEAST = 1 / 3, 0.25
#: Rounds of robust averaging over tiles.
ROUNDS = 12
#: A tile that differs by this many of its standard deviations counts half.
DOUBTFUL = 2.0
#: A turn counts beyond this many standard errors, and with this many tiles; otherwise tiles agree on a shift alone. Still
#: captures stay still with 3, too; with 10, turns below 0.1° are missed on plain objects.
TURN_CERTAIN, TURN_TILES = 5.0, 6


class Motion(NamedTuple):
    """Displacement of d photographs."""

    #: (d, 3) columns and rows in pixels of the full photographs, at their center, and the turn about it in
    #: radians (clockwise as seen); the median photograph has none
    moves: FloatArray
    reach: float  #: pixels from the center to the end of the photographs' longer side
    #: (d,) standard errors of the displacement at that distance in pixels, infinite if nothing was seen
    errors: FloatArray
    #: (d,) share of the informative tiles that agree within a third of the displacement (or a quarter pixel)
    agreement: FloatArray
    #: (d,) factor by which undoing its displacement reduces the unexplained part of a photograph
    gain: FloatArray
    #: (d,) logarithm of what the others leave unexplained of a photograph, over what they leave of a typical
    #: one
    misfit: FloatArray
    edges: Edges  #: whether edges run as in the other photographs


def estimate_motion(stack: Float32, scale: float, control: Control = SILENT) -> Motion:
    """Displacement of at least four photographs, from gray pictures (d, h, w) of them, all reduced by ``scale``."""
    longest = max(stack.shape[1:])
    moved = np.zeros((len(stack), 3))
    guess = _first_guess(np.stack([coarse(picture, GUESS_SIZE) for picture in stack]))
    moved[:, :2] = guess / min(1.0, GUESS_SIZE / longest)
    reach = 0.5 * longest
    levels = list(_levels(longest))
    control.stage("alignment", len(levels))
    for factor, rounds in levels:
        small = [cv2.GaussianBlur(resized(picture, factor), (0, 0), BLUR) for picture in stack]
        level = np.float32(np.sqrt(np.mean([np.vdot(one, one) / one.size for one in small])) + 1e-12)
        for one in small:
            one /= level
        size = np.array([factor, factor, 1.0])
        tried: list[FloatArray] = []
        for _ in range(rounds):
            # Photographs that seem still are left alone: if all were moved at once, they would drift together, because
            # a displacement that follows the light is nearly a change of light.
            far = farthest(moved, reach) * factor
            applied = np.where((far > STILL)[:, None], moved, 0.0)
            if any((farthest(applied - one, reach) * factor).max() < SETTLED for one in tried):
                break
            tried.append(applied)
            undone = []
            for picture, move in zip(small, applied, strict=True):
                undone.append(moved_back(picture, size * move))
                control.check()
            tiles = control.aside(partial(tile_shifts, undone, _side(undone[0])))
            step, errors, agreement, misfit = _consensus(
                tiles, np.where(far > STILL, far, 0.0), reach * factor
            )
            moved = applied + step / size
            moved -= np.median(moved, axis=0)
            control.check()
        control.advance()
    seen = farthest(moved, reach).max() * factor > STILL
    gain = _gain(small, moved * size) if seen else np.ones(len(stack))
    edges = compare_edges(stack, control)
    moved = moved / [scale, scale, 1.0]
    return Motion(moved, reach / scale, errors / factor / scale, agreement, gain, misfit, edges)


def _first_guess(pictures: Float32) -> FloatArray:
    """(d, 2) displacements of pictures (d, h, w) in columns and rows, from texture; zero if they are small or doubtful.

    Fits that start at zero reach only a few pixels. Phase correlation finds any distance. It is misled by shading where
    there is no texture, so its result counts only if the photographs agree on it.
    """
    details = list(in_turn(lambda k: _detail(pictures[k]), len(pictures), processors()))
    window = cv2.createHanningWindow(pictures.shape[:0:-1], cv2.CV_32F)
    count = len(pictures)
    rng = np.random.default_rng(0)
    compared: list[list[tuple[int, FloatArray]]] = [[] for _ in range(count)]
    partners = [rng.permutation(np.delete(np.arange(count), one))[:PARTNERS] for one in range(count)]

    def compare(one: int) -> list[FloatArray]:
        return [np.array(cv2.phaseCorrelate(details[one], details[k], window)[0]) for k in partners[one]]

    for one, shifts in enumerate(in_turn(compare, count, processors())):
        for other, found in zip(partners[one], shifts, strict=True):
            compared[other].append((one, found))
            compared[one].append((int(other), -found))
    positions = np.zeros((count, 2))
    for _ in range(GUESS_ROUNDS):
        claims = [np.array([positions[other] + found for other, found in own]) for own in compared]
        positions = np.array([np.median(claim, axis=0) for claim in claims])
        positions -= np.median(positions, axis=0)
    off = [
        np.median([np.hypot(*(positions[other] + found - positions[number])) for other, found in own])
        for number, own in enumerate(compared)
    ]
    far = np.hypot(*positions.T)
    believed = (np.array(off) < AGREED) & (far > LEAST) & (far < SLIPPED * max(pictures.shape[1:]))
    return np.where(believed[:, None], positions, 0.0)


def _detail(picture: Float32) -> Float32:
    """Fine detail of a picture relative to the contrast around it; a change of light does not affect it."""
    fine = picture - cv2.GaussianBlur(picture, (0, 0), DETAIL)
    around = np.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), CONTRAST))
    return np.asarray(fine / (around + FLAT * np.sqrt(np.mean(picture * picture)) + 1e-12), dtype=np.float32)


def farthest(moves: FloatArray, reach: float) -> FloatArray:
    """Largest displacement, in pixels, of points at this distance from the center by moves (d, 3)."""
    return np.asarray(np.hypot(moves[:, 0], moves[:, 1]) + np.abs(moves[:, 2]) * reach)


def _gain(pictures: Sequence[Float32], moved: FloatArray) -> FloatArray:
    """How much better each picture is explained with its displacement undone; 1 if nothing was seen.

    Shading reversed by light from another side may look like a displacement, of half a wave on a wavy surface. But then
    the picture is explained as it is, too.
    """
    undone = [moved_back(p, m) for p, m in zip(pictures, moved, strict=True)]
    side = _side(undone[0])
    after, before = tile_shifts(undone, side), tile_shifts(undone, side, judged=pictures)
    informed = np.trace(after.information, axis1=2, axis2=3) > LEAST_INFORMATION
    ratio = np.where(informed, before.misfit / after.misfit, np.nan)
    seen = informed.any(axis=0)
    gain = np.ones(len(pictures))
    gain[seen] = np.nanmedian(ratio[:, seen], axis=0)
    return gain


def _side(picture: Float32) -> int:
    """Pixels along a tile."""
    return int(min(SIDE, max(picture.shape) // ACROSS, *picture.shape))


def _levels(longest: int) -> Iterator[tuple[float, int]]:
    """Factor and rounds of every size up to that of the pictures themselves."""
    for size, rounds in LEVELS:
        yield min(1.0, size / longest), rounds
        if size >= longest:
            return


def _consensus(
    found: TileShifts, undone: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The displacement of each photograph on which most tiles agree, weighted by their information; its error, the
    share that agrees, and the misfit, see :class:`Motion`.

    ``undone`` (d,) is how far the photographs have been moved already, at the distance ``reach`` from the center.
    """
    count = found.shifts.shape[1]
    shifts, information = found.shifts.swapaxes(0, 1), found.information.swapaxes(0, 1)  # (d, T, ...)
    across, down = found.places.T / reach
    shift = np.broadcast_to(np.eye(2), (len(found.places), 2, 2))
    turn = np.stack([-down, across], axis=1)[:, :, None]  # by a radian times reach
    informed = np.trace(information, axis1=2, axis2=3) > LEAST_INFORMATION
    used = informed & (np.abs(shifts).max(axis=2) < FARTHEST)
    weight = np.zeros_like(information)
    weight[used] = np.linalg.inv(np.linalg.inv(information[used]) + TILE_FLOOR**2 * np.eye(2))
    moves, errors = np.zeros((count, 3)), np.full(count, np.inf)
    off = np.full(shifts.shape, np.inf)
    for design, least in ((shift, 2), (np.concatenate([shift, turn], axis=2), TURN_TILES)):
        able = np.flatnonzero(used.sum(axis=1) >= least)
        mean, spread, left = _agreed(shifts[able], weight[able], design)
        if design.shape[2] == 3:
            kept = np.abs(mean[:, 2]) > TURN_CERTAIN * np.sqrt(spread[:, 2, 2])
            able, mean, spread, left = able[kept], mean[kept], spread[kept], left[kept]
        moves[able, : mean.shape[1]], off[able] = mean, left
        variance = np.diagonal(spread, axis1=1, axis2=2)
        errors[able] = np.sqrt(variance[:, :2].mean(axis=1) + variance[:, 2:].sum(axis=1))
    allowed = np.maximum(AGREEMENT_SHARE * undone, AGREEMENT_LEAST)
    near = np.hypot(off[..., 0], off[..., 1]) < allowed[:, None]
    agreement = (near & used).sum(axis=1) / np.maximum(informed.sum(axis=1), 1)
    moves[:, 2] /= reach
    typical = np.median(found.misfit, axis=1, keepdims=True)
    misfit = np.median(np.log(found.misfit / typical), axis=0) if len(found.misfit) else np.zeros(count)
    return moves, errors, agreement, misfit


def _agreed(
    tiles: FloatArray, weight: FloatArray, design: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Parameters (d, k) of the motions of d photographs, their covariances, and how far each tile (d, T, 2) is off.

    ``design`` is (T, 2, k); tiles without weight are ignored.
    """
    weighted = design.transpose(0, 2, 1) @ weight  # (d, T, k, 2)
    normal, pulled = weighted @ design, (weighted @ tiles[..., None])[..., 0]
    trust = np.ones(tiles.shape[:2])
    for _ in range(ROUNDS):
        total = np.linalg.inv(np.einsum("dt,dtij->dij", trust, normal))
        mean = (total @ np.einsum("dt,dtj->dj", trust, pulled)[..., None])[..., 0]
        off = tiles - np.einsum("tij,dj->dti", design, mean)
        trust = 1.0 / (1.0 + np.einsum("dti,dti->dt", off, (weight @ off[..., None])[..., 0]) / DOUBTFUL**2)
    # The covariance comes from the disagreement of the tiles, not from their own errors.
    pulls = trust[..., None] * (weighted @ off[..., None])[..., 0]
    return mean, total @ (pulls.swapaxes(1, 2) @ pulls) @ total, off
