"""Estimate how far the camera moved and turned between photographs, coarse to fine, and decide what to undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cv2
import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.findings import Finding
from photostereo.core.wording import listed
from photostereo.photographs.alignment.edges import TURNED, compare_edges
from photostereo.photographs.alignment.tiles import SIDE, TileShifts, tile_shifts
from photostereo.photographs.framing import coarse, moved_back, resized
from photostereo.runtime.threads import in_turn, processors

#: Pixels along the longer side of the pictures that :func:`find_alignment` is given at most: the last of its levels.
LONGEST = 1280
#: Pixels along the longer side of the pictures, and rounds at each size. The first size detects displacements of 2 to 3 %
#: of the width; more rounds change displacements by less than 0.05 pixel.
LEVELS = ((80, 6), (160, 8), (320, 6), (640, 4), (LONGEST, 2))
#: For the first guess, every photograph is compared with this many others,
PARTNERS = 5
#: in pictures with this longer side, in pixels.
GUESS_SIZE = 200
#: Detail finer than this blur, in pixels, is compared,
DETAIL = 3.0
#: each pixel relative to the contrast around it within this blur.
CONTRAST = 6.0
#: Contrast that counts as none, as a share of the picture's brightness.
FLAT = 0.02
#: A guess counts if half of its comparisons agree within this many pixels,
AGREED = 1.0
#: and if it is not negligible: at least this many pixels of the small pictures.
LEAST = 1.5
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
#: A tile agrees with the others within this share of the displacement,
AGREEMENT_SHARE = 1 / 3
#: or within this much of a pixel.
AGREEMENT_LEAST = 0.25
#: Rounds of robust averaging over tiles.
ROUNDS = 12
#: A tile that differs by this many of its standard deviations counts half.
DOUBTFUL = 2.0
#: A turn counts beyond this many standard errors; otherwise tiles agree on a shift alone. Still captures stay still with 3,
#: too; with 10, turns below 0.1° are missed on plain objects.
TURN_CERTAIN = 5.0
#: It needs this many tiles: three parameters, and as many tiles again to disagree.
TURN_TILES = 6
#: Smaller movements, in pixels, are reported but not undone: interpolation would cost as much detail as they do.
MATTERS = 1.0
#: A movement is certain if it exceeds this many standard errors ...
CERTAIN = 6.0
#: ... and if at least this share of the informative tiles agree on it. Shadows and highlights that wander with the light
#: make tiles disagree: 0.3 to 0.6 agree by chance on still captures, 0.8 to 1 on moved ones.
AGREEING = 0.6
#: A photograph must be explained this many times better with its displacement undone. Shading that is mistaken for movement
#: gives 1 or less, movement of a pixel or more 1.5 to 30.
GAIN = 1.25
#: Each shift is compared with the mean of those under this many most similar lights. 2 and 4 explain nearly as much.
SIMILAR = 3
#: Shifts follow the light if that explains at least this share of their variance: 0.53 to 0.82 on three still objects of
#: gloss or fine threads that seem to move; at most 0.33 if cameras move at random; up to 0.9 if they drift along a ring.
FOLLOWING = 0.4
#: But then undoing them gains less than this: 1.2 to 3.7 on those objects. Undoing real movement, even on an object
#: without texture, gains more, or it is doubtful.
LITTLE_GAIN = 4.0
#: If fewer tiles than this share agree, nothing is known about a photograph: there is no warning without evidence.
LIKELY = 0.4
#: A photograph is odd if the others leave e^x times more of it unexplained than of four fifths of all photographs, where x
#: is this. Still ones have 2.3 at most, other objects mostly 2 to 7.
MISMATCH = 1.8
#: If misfits vary, x is this many times their spread. An odd photograph does not match if its tiles also agree on nothing
#: (see LIKELY), or its edges, however turned, agree with others ...
SPREADS = 2.0
#: ... less than usual by this: other objects by 0.5 to 0.9, odd ones that are still by 0.3 at most.
UNLIKE = 0.4
#: If they agree less by this, it only has to fit worse than four fifths of all photographs. Still ones have 0.5 at most;
#: dark ones, whose edges are noise, fit well.
FOREIGN = 0.6
#: Maximum number of photographs that a note names.
NAMED = 4
#: Fewer photographs cannot predict each other.
FEWEST = 4
#: Smaller frames, in pixels, have too few tiles to agree on anything.
SMALLEST = 64


@dataclass(frozen=True, eq=False)
class Alignment:
    """Camera movement between photographs, and which part of it is undone."""

    #: (d, 3), estimated displacement of each photograph in columns and rows, and its turn about the center in
    #: radians, clockwise.
    moves: FloatArray
    farthest: FloatArray  #: (d,), pixels by which that displaces the ends of the photograph.
    #: (d, 3), the part that is undone: zero for photographs that are still, or whose movement is uncertain or too
    #: small to matter.
    corrected: FloatArray
    uncertain: BoolArray  #: (d,), photographs that seem to have moved and are left as they are.
    #: (d,), photographs that do not match the others: of another object, or turned.
    mismatched: BoolArray
    #: (d,), factors by which undoing the displacements reduces what is unexplained.
    gain: FloatArray
    #: Whether what looks like movement follows the light: gloss and fine threads do, cameras do not.
    follows_light: bool = False

    @classmethod
    def still(cls, count: int) -> Alignment:
        """Photographs that have not moved."""
        nothing, none, no = np.zeros((count, 3)), np.zeros(count), np.zeros(count, dtype=bool)
        return cls(nothing, none, nothing, no, no, np.ones(count))

    def take(self, kept: Sequence[int]) -> Alignment:
        """The alignment of some of the photographs."""
        chosen = list(kept)
        return Alignment(
            moves=self.moves[chosen],
            farthest=self.farthest[chosen],
            corrected=self.corrected[chosen],
            uncertain=self.uncertain[chosen],
            mismatched=self.mismatched[chosen],
            gain=self.gain[chosen],
            follows_light=self.follows_light,
        )

    def compared_with(self, directions: FloatArray) -> Alignment:
        """The alignment without corrections that only follow the light.

        The highlights of a glossy object and the lit sides of its threads shift with the light, and the same in most tiles.
        A camera that moved does not know where the lights were.

        Parameters
        ----------
        directions : (d, 3) array
            Directions to the lights, NaN where they are unknown.

        Returns
        -------
        Alignment
            The same, or one that corrects nothing and says so (:attr:`follows_light`).
        """
        corrected = self.corrected.any(axis=1)
        known = np.isfinite(directions).all(axis=1)
        if not corrected.any() or known.sum() <= 2 * SIMILAR:
            return self
        if np.median(self.gain[corrected]) >= LITTLE_GAIN:
            return self
        units = directions[known] / np.linalg.norm(directions[known], axis=1, keepdims=True)
        shifts = self.moves[known, :2]
        apart = np.linalg.norm(units[:, None] - units[None], axis=2)
        np.fill_diagonal(apart, np.inf)
        similar = np.argsort(apart, axis=1)[:, :SIMILAR]
        left = ((shifts - shifts[similar].mean(axis=1)) ** 2).sum()
        if left > (1.0 - FOLLOWING) * ((shifts - shifts.mean(axis=0)) ** 2).sum():
            return self
        return replace(
            self,
            corrected=np.zeros_like(self.corrected),
            uncertain=np.zeros_like(self.uncertain),
            follows_light=True,
        )

    @property
    def is_still(self) -> bool:
        """Whether nothing is undone."""
        return not self.corrected.any()

    def notes(self, files: Sequence[str]) -> tuple[Finding, ...]:
        """Notes for the user: which photographs were moved back, and which seem to be displaced."""
        notes, moved = [], np.asarray(self.corrected.any(axis=1))
        names, doubtful = np.array(files)[moved].tolist(), np.array(files)[self.uncertain].tolist()
        if names:
            turn = float(np.degrees(np.abs(self.corrected[:, 2]).max()))
            pixels, named = float(self.farthest[moved].max()), listed(names, NAMED)
            facts: dict[str, Any] = {"count": len(names), "photographs": len(files), "names": named}
            notes.append(Finding("camera-moved", pixels=pixels, degrees=turn, **facts))
        if doubtful:
            notes.append(Finding("not-aligned", names=listed(doubtful, NAMED)))
        if self.follows_light:
            notes.append(Finding("shifts-follow-light", pixels=float(self.farthest.max())))
        return tuple(notes)

    def as_dict(self, files: Sequence[str]) -> dict[str, Any]:
        """For JSON: whether anything was undone, and the displacement and turn (degrees) of every photograph."""
        degrees = np.degrees(self.moves[:, 2])
        return {
            "corrected": not self.is_still,
            "largest_pixels": round(float(self.farthest.max(initial=0.0)), 3),
            "shifts": dict(zip(files, np.round(self.moves[:, :2], 3).tolist(), strict=True)),
            "turns": dict(zip(files, np.round(degrees, 4).tolist(), strict=True)),
            "uncertain": [file for file, doubt in zip(files, self.uncertain, strict=True) if doubt],
        }


def find_alignment(pictures: Float32, scale: float, control: Control = SILENT) -> Alignment:
    """Estimate how far the camera moved between photographs, and decide what to undo.

    ``pictures`` (d, h, w) are gray, and all reduced by ``scale``; see :func:`photostereo.photographs.faults.survey`.
    """
    if len(pictures) < FEWEST or min(pictures.shape[1:]) < SMALLEST:
        return Alignment.still(len(pictures))
    moved, edges = _estimate(pictures, scale, control), compare_edges(pictures, control)
    return decide(0.5 * max(pictures.shape[1:]) / scale, *moved, *edges)


def decide(
    reach: float,
    moves: FloatArray,
    errors: FloatArray,
    agreement: FloatArray,
    misfit: FloatArray,
    gain: FloatArray,
    alike: FloatArray,
    best: FloatArray,
    better: FloatArray,
) -> Alignment:
    """Decide what to undo in photographs that reach this far from their center, from what :func:`_estimate` and
    :func:`.compare_edges` found."""
    common = float(np.median(alike))
    length = farthest(moves, reach)
    large = length > MATTERS
    evident = (length > CERTAIN * errors) & (gain >= GAIN)
    usual, most = np.quantile(misfit, (0.5, 0.8))
    odd = misfit > most + max(MISMATCH, SPREADS * (most - usual))
    turned = better > TURNED
    # Tiles of a turned object may agree on a large displacement, but undoing it does not make the photograph fit.
    likely = large & evident & (agreement >= LIKELY) & ~(odd & turned)
    certain = likely & (agreement >= AGREEING)
    # Shading that moves with the light looks like movement, especially like a turn of a round object.
    moves = np.where((large & ~evident)[:, None], 0.0, moves)
    corrected = np.where(certain[:, None], moves, 0.0)
    unlike = (best < common - UNLIKE) | (agreement < LIKELY)
    # A photograph that the others explain as well as most is neither, however a weave looks under its light.
    strange = (best < common - FOREIGN) | turned
    mismatched = ((odd & unlike) | (strange & (misfit > most))) & ~certain
    return Alignment(
        moves=moves,
        farthest=farthest(moves, reach),
        corrected=corrected,
        uncertain=likely & ~certain,
        mismatched=mismatched,
        gain=gain,
    )


def _estimate(
    stack: Float32, scale: float, control: Control
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The moves of d photographs as in :class:`Alignment`, of which the median photograph has none, and for each

    - the standard error of its displacement at the end of its longer side, infinite if nothing was seen;
    - the share of the informative tiles that agree within a third of the displacement (or a quarter pixel);
    - the logarithm of what the others leave unexplained of it, over what they leave of a typical one;
    - the factor by which undoing its displacement reduces what is unexplained; 1 if none is large enough to matter.
    """
    longest = max(stack.shape[1:])
    moved = np.zeros((len(stack), 3))
    guess = _first_guess(np.stack([coarse(picture, GUESS_SIZE) for picture in stack]))
    moved[:, :2] = guess / min(1.0, GUESS_SIZE / longest)
    reach = 0.5 * longest
    smaller = sum(size < longest for size, _ in LEVELS)
    levels = [(min(1.0, size / longest), rounds) for size, rounds in LEVELS[: smaller + 1]]
    control.stage("alignment", len(levels))
    for factor, rounds in levels:
        small = [cv2.GaussianBlur(resized(picture, factor), (0, 0), BLUR) for picture in stack]
        level = np.float32(
            np.sqrt(np.mean([np.vdot(one, one) / one.size for one in small])) + 1e-12
        )
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
            known = np.where(far > STILL, far, 0.0)
            step, errors, agreement, misfit = _consensus(tiles, known, reach * factor)
            moved = applied + step / size
            moved -= np.median(moved, axis=0)
            control.check()
            if factor == levels[-1][0] and farthest(moved, reach).max() < 0.5 * MATTERS * scale:
                break  # none will be moved back
        control.advance()
    matters = farthest(moved, reach).max() > MATTERS * scale
    gain = _gain(small, moved * size) if matters else np.ones(len(stack))
    return moved / [scale, scale, 1.0], errors / factor / scale, agreement, misfit, gain


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
    partners = [
        rng.permutation(np.delete(np.arange(count), one))[:PARTNERS] for one in range(count)
    ]

    def compare(one: int) -> list[FloatArray]:
        return [
            np.array(cv2.phaseCorrelate(details[one], details[k], window)[0]) for k in partners[one]
        ]

    for one, shifts in enumerate(in_turn(compare, count, processors())):
        for other, found in zip(partners[one], shifts, strict=True):
            compared[other].append((one, found))
            compared[one].append((int(other), -found))
    positions = np.zeros((count, 2))
    for _ in range(GUESS_ROUNDS):
        claims = [np.array([positions[other] + found for other, found in own]) for own in compared]
        before, positions = positions, np.array([np.median(claim, axis=0) for claim in claims])
        positions -= np.median(positions, axis=0)
        if (positions == before).all():
            break
    off = [
        np.median(
            [np.hypot(*(positions[other] + found - positions[number])) for other, found in own]
        )
        for number, own in enumerate(compared)
    ]
    far = np.hypot(*positions.T)
    believed = (np.array(off) < AGREED) & (far > LEAST) & (far < SLIPPED * max(pictures.shape[1:]))
    return np.where(believed[:, None], positions, 0.0)


def _detail(picture: Float32) -> Float32:
    """Fine detail of a picture relative to the contrast around it; a change of light does not affect it."""
    fine = picture - cv2.GaussianBlur(picture, (0, 0), DETAIL)
    around = np.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), CONTRAST))
    return np.asarray(
        fine / (around + FLAT * np.sqrt(np.mean(picture * picture)) + 1e-12), dtype=np.float32
    )


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


def _consensus(
    found: TileShifts, undone: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The displacement of each photograph on which most tiles agree, weighted by their information; its error, the
    share that agrees, and the misfit, see :func:`_estimate`.

    ``undone`` (d,) is how far the photographs have been moved already, at the distance ``reach`` from the center.
    """
    count = found.shifts.shape[1]
    shifts, information = (
        found.shifts.swapaxes(0, 1),
        found.information.swapaxes(0, 1),
    )  # (d, T, ...)
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
    misfit = (
        np.median(np.log(found.misfit / typical), axis=0) if len(found.misfit) else np.zeros(count)
    )
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
        trust = 1.0 / (
            1.0 + np.einsum("dti,dti->dt", off, (weight @ off[..., None])[..., 0]) / DOUBTFUL**2
        )
    # The covariance comes from the disagreement of the tiles, not from their own errors.
    pulls = trust[..., None] * (weighted @ off[..., None])[..., 0]
    return mean, total @ (pulls.swapaxes(1, 2) @ pulls) @ total, off
