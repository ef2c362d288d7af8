"""The outline of a shiny ball to a few hundredths of a pixel, from all pixels along its rim.

Edges are where single rays change most; the pixels of the rim know more. And the edge that one sees is not where a shiny
ball ends: seen at a grazing angle everything shiny is a perfect mirror (Fresnel), and what the rim mirrors is what lies
behind it. So the ball fades into its surroundings before it ends, the visible edge is one or two per cent inside the true
outline, and directions computed with that radius are up to a degree too flat. Across the rim, with ρ the distance from
the center in radii,

    inside   I = a (1 - g F) + B g F,    F = (1 - c)⁵,  c = √(1 - ρ²)    (Schlick's form of Fresnel's law)
    outside  I = b

blurred by the lens. B is the mean brightness of the ground, which the rim mirrors: either of what lies around the ball or
of what lies behind this part of the rim; the one that fits better is taken. Levels a and b change slowly along and across
each short piece of the rim, and from photograph to photograph: for a given outline they are linear, so they are
eliminated by projection, and center, radius, blur and gloss g remain for Gauss and Newton. Pieces at which something
else ends (the object, a stand, a shadow) are forgotten by a robust sum. Pieces, not pixels, count as independent where
it says how well the outline is known: the pattern of a table is the same in all photographs.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
from scipy.special import ndtr

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.lights.ball.circle import Circle

#: Pixels within this many pixels of the outline are used, or this share of the radius inside it.
_BAND, _DEEP = 4.0, 0.12
#: Pieces of the outline, each about this many pixels long, within limits.
_PIECE, _FEWEST, _MOST = 9.0, 16, 64
#: The outline moves no further from where its edges are than this many pixels, this share of the radius, or this many
#: times the scatter of the edges; the radius may grow by what a mirroring rim hides.
_FAR, _FAR_SHARE, _FAR_EDGES, _HIDDEN = 0.6, 0.02, 4.0, 0.035
#: By these shares of the radius a mirroring rim usually hides what is beyond its edges; other growth is less certain.
_USUAL_GROWTH = (0.0, 0.02)
#: Larger balls are fitted in photographs of half the size.
_LARGE = 100.0
#: A circle whose edges scatter by more than this share of its radius is fitted in photographs of half the size first, if
#: its radius has this many pixels.
_VAGUE, _COARSE = 0.01, 40.0
#: The ground that is mirrored: from this many pixels beyond the outline to this share of the radius.
_GROUND_FROM, _GROUND_TO = 2.5, 1.35
#: Ground behind a piece of the rim lies within this angle of it.
_BEHIND = np.deg2rad(60.0)
#: Limits of the blur (pixels), and steps for derivatives of x, y, radius, log blur and gloss.
_SHARPEST, _SOFTEST = 0.35, 6.0
_STEPS = np.array([0.02, 0.02, 0.02, 0.02, 0.05])
_TURNS = 15
#: Errors are this many times what the scatter of the pieces says, and no less than this many pixels: what is wrong with
#: the model is wrong alike in many pieces.
_MODEL, _LEAST = 2.0, 0.005
#: If the center moves by this many pixels the fit is repeated.
_MOVED = 0.2
#: A circle lies as close to the edges as another where their usual distance grows by no more than this factor.
_AS_CLOSE = 1.15
#: Edges and pixels that place the center further apart than this many standard errors contradict each other.
_CONTRADICTION = 3.0


class _Rim:
    """Pixels along the outline, in pieces, and what a circle leaves unexplained of them."""

    def __init__(self, images: FloatArray, circle: Circle) -> None:
        rows, cols, away, angle = _ring(images, circle, _BAND, -max(_BAND, _DEEP * circle.radius))
        count = int(np.clip(2 * np.pi * circle.radius / _PIECE, _FEWEST, _MOST))
        turn = angle % (2 * np.pi) / (2 * np.pi) * count
        order = np.argsort(turn.astype(np.intp), kind="stable")
        rows, cols, away, turn = rows[order], cols[order], away[order], turn[order]
        values = np.asarray(images[:, rows, cols], dtype=np.float64).T
        self.x, self.y = cols.astype(np.float64), rows.astype(np.float64)
        self.along = 2 * (turn % 1) - 1  # from -1 to 1 along each piece
        bounds = np.searchsorted(turn.astype(np.intp), np.arange(count + 1))
        self.pieces: list[tuple[slice, FloatArray, FloatArray]] = []
        self.middles: list[float] = []
        for number, (start, stop) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            where = slice(start, stop)
            if stop - start >= 20 and np.ptp(away[where]) > 1.5 * _BAND:
                peak = values[where].max(axis=0)
                calm = peak <= 4.0 * float(np.median(peak)) + 1e-9  # a highlight lies across the others
                self.pieces.append((where, values[where][:, calm], calm))
                self.middles.append((number + 0.5) / count * 2 * np.pi)
        self.share = len(self.pieces) / count
        rows, cols, _, angle = _ring(images, circle, (_GROUND_TO - 1) * circle.radius + 4, _GROUND_FROM)
        self.ground = np.asarray(images[:, rows, cols], dtype=np.float64)
        self.ground_angle = angle

    def mirrored(self, *, behind: bool) -> list[FloatArray]:
        """For each piece the brightness, per photograph, of the ground that it mirrors."""
        around = self.ground.mean(axis=1)
        levels = []
        for middle, (_, _, calm) in zip(self.middles, self.pieces, strict=True):
            near = np.abs((self.ground_angle - middle + np.pi) % (2 * np.pi) - np.pi) < _BEHIND
            level = self.ground[:, near].mean(axis=1) if behind and near.sum() > 20 else around
            levels.append(level[calm])
        return levels

    def left_over(self, state: FloatArray, mirrored: list[FloatArray]) -> list[FloatArray]:
        """What the outline (x, y, radius, log blur, gloss) leaves of each piece."""
        x, y, radius, log_blur, gloss = (float(value) for value in state)
        away = np.hypot(self.x - x, self.y - y) - radius
        blur = float(np.exp(log_blur))
        bent = away + blur * blur / (2 * radius)  # a blurred disc ends a little inside its outline
        outside = ndtr(bent / blur)
        mirror = gloss * blurred_fresnel(bent, radius, blur)
        inside = 1 - outside - mirror
        t = self.along
        columns = [inside, inside * away, inside * t, outside, outside * away, outside * t]
        design = np.stack([*columns, outside * t * t, outside * t * away], axis=1)
        left: list[FloatArray] = []
        for (where, values, _), level in zip(self.pieces, mirrored, strict=True):
            rest = values - mirror[where, None] * level
            basis, _ = np.linalg.qr(design[where])
            left.append(rest - basis @ (basis.T @ rest))
        return left


def _ring(
    images: FloatArray, circle: Circle, outer: float, inner: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rows, columns, distances from the outline and angles of the pixels with distances from ``inner`` to ``outer``."""
    reach = circle.radius + outer + 1
    rows, cols = np.mgrid[
        max(int(circle.y - reach), 0) : min(int(circle.y + reach) + 2, images.shape[1]),
        max(int(circle.x - reach), 0) : min(int(circle.x + reach) + 2, images.shape[2]),
    ]
    away = np.hypot(cols - circle.x, rows - circle.y) - circle.radius
    near = (away < outer) & (away > inner)
    rows, cols, away = rows[near], cols[near], away[near]
    return rows, cols, away, np.arctan2(rows - circle.y, cols - circle.x)


def blurred_fresnel(away: FloatArray, radius: float, blur: float, step: float = 0.05) -> FloatArray:
    """(1 - c)⁵ inside a ball and 0 outside, blurred, at distances ``away`` from the outline (negative inside).

    >>> np.round(blurred_fresnel(np.array([-20.0, -2.0, 0.0, 9.0]), 50.0, 1.0), 2)
    array([0.  , 0.22, 0.22, 0.  ])
    """
    inside, outside = int(np.ceil((min(0.5 * radius, 30.0) + 6 * blur) / step)), int(np.ceil(7 * blur / step))
    cells = np.arange(-inside, outside) * step
    # Its slope is infinite at the outline, so cells hold its mean, and the outline is between two of them.
    rho = np.maximum(1 + (cells[:, None] + step * (np.arange(8) + 0.5) / 8) / radius, 0)
    share = np.where(rho < 1, (1 - np.sqrt(np.maximum(1 - rho**2, 0))) ** 5, 0.0).mean(axis=1)
    reach = int(np.ceil(5 * blur / step))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / blur) ** 2)
    blurred = np.convolve(share, kernel / kernel.sum(), mode="same")
    return np.asarray(np.interp(away, cells + 0.5 * step, blurred))


def settle_outline(images: FloatArray, circle: Circle, control: Control = SILENT) -> Circle:
    """The outline that fits the rim in the photographs (d, H, W) best, near one that was found from edges.

    Its ``errors`` say how well it is known. Where the rim is not seen well enough, the circle is returned as it is.

    Examples
    --------
    >>> rows, cols = np.mgrid[:80, :80]
    >>> disc = np.clip(25.0 + 0.5 - np.hypot(cols - 40.3, rows - 39.6), 0, 1)
    >>> found = settle_outline(np.stack([1 - disc, 0.5 - 0.4 * disc] * 3), Circle(40.1, 39.7, 24.8))
    >>> round(found.x, 1), round(found.y, 1), round(found.radius, 1)
    (40.3, 39.6, 25.0)
    """
    if circle.radius > _LARGE:
        return _settled_in_halves(images, circle, control)
    if circle.residual > _VAGUE * circle.radius and circle.radius > _COARSE:
        far = _VAGUE * circle.radius
        circle = replace(_settled_in_halves(images, circle, control), residual=far, errors=(far, far))
    rim = _Rim(images, circle)
    if len(rim.pieces) < 6 or rim.share < 0.3 or not rim.ground.size:
        return circle
    settled = _best_fit(rim, circle, control)
    if settled is None:
        return circle
    apart, agree = _agreement(circle, settled)
    if agree and apart >= _MOVED:  # the pixels were those along a circle that lay elsewhere
        settled = _best_fit(_Rim(images, settled), settled, control) or settled
        apart, agree = _agreement(circle, settled)
    if agree:  # where two readings of one outline differ, neither is known better than by half of that
        error, radius_error = settled.standard_errors()
        growth = (settled.radius - circle.radius) / circle.radius
        odd = max(_USUAL_GROWTH[0] - growth, growth - _USUAL_GROWTH[1], 0.0) * circle.radius
        return replace(settled, errors=(max(error, 0.5 * apart), max(radius_error, 0.5 * odd)))
    # Edges and pixels contradict each other: the rim is none of those that the model knows. Edges assume less; what is
    # left to find is how far inside the outline they are.
    grown = _best_fit(rim, circle, control, center=False)
    radius = circle.radius if grown is None else grown.radius
    return replace(circle.moved(0.0, 0.0, radius - circle.radius), errors=(0.5 * apart, 0.5 * apart))


def _agreement(edges: Circle, settled: Circle) -> tuple[float, bool]:
    """How far the center moved from where the edges place it, and whether the edges allow that.

    They do within what both know; and wherever the typical edge lies as close to a circle around the new center: on a
    pattern single edges lead astray.
    """
    known = float(np.hypot(edges.standard_errors()[0], settled.standard_errors()[0]))
    apart = float(np.hypot(settled.x - edges.x, settled.y - edges.y))
    if apart <= _CONTRADICTION * known or len(edges.points) < 12:
        return apart, apart <= _CONTRADICTION * known
    away = [np.hypot(edges.points[:, 0] - c.x, edges.points[:, 1] - c.y) for c in (edges, settled)]
    before, after = (float(np.median(np.abs(distance - np.median(distance)))) for distance in away)
    return apart, after <= _AS_CLOSE * before


def _best_fit(rim: _Rim, circle: Circle, control: Control, *, center: bool = True) -> Circle | None:
    """The better of two fits: to a rim that mirrors all ground around the ball, and to one that ends sharply."""
    fits = [
        _fit(rim, circle, control, behind=False, gloss=1.0, center=center),
        _fit(rim, circle, control, behind=True, gloss=0.3, center=center),
    ]
    usual = 2.0 * min(float(np.median(misfit)) for misfit, _, _ in fits) + 1e-15
    _, state, errors = min(fits, key=lambda fit: float((fit[0] / (fit[0] + usual)).sum()))
    x, y, radius = (float(value) for value in state[:3])
    far = max(_FAR, _FAR_SHARE * circle.radius, _FAR_EDGES * circle.residual)
    if max(abs(x - circle.x), abs(y - circle.y)) > far or not -far < radius - circle.radius < max(
        2 * far, _HIDDEN * circle.radius
    ):
        return None
    moved = circle.moved(x - circle.x, y - circle.y, radius - circle.radius)
    error = _MODEL * np.maximum(errors, _LEAST)
    return replace(moved, errors=(float(np.hypot(error[0], error[1])), float(error[2])))


def _settled_in_halves(images: FloatArray, circle: Circle, control: Control) -> Circle:
    """As :func:`settle_outline`, of a large ball in photographs of half the size around it."""
    reach = (_GROUND_TO + 0.02) * circle.radius + 8
    left, top = max(int(circle.x - reach), 0) // 2 * 2, max(int(circle.y - reach), 0) // 2 * 2
    part = images[:, top : int(circle.y + reach) + 2, left : int(circle.x + reach) + 2]
    rows, cols = part.shape[1] // 2 * 2, part.shape[2] // 2 * 2
    half = np.stack(
        [
            cv2.resize(
                np.asarray(image[:rows, :cols], np.float32),
                (cols // 2, rows // 2),
                interpolation=cv2.INTER_AREA,
            )
            for image in part
        ]
    )
    corner = np.array([left, top])
    local = replace(circle, x=circle.x - left, y=circle.y - top, points=circle.points - corner)
    settled = settle_outline(half, local.scaled(0.5), control).scaled(2.0)
    return replace(settled, x=settled.x + left, y=settled.y + top, points=settled.points + corner)


def _fit(
    rim: _Rim, circle: Circle, control: Control, *, behind: bool, gloss: float, center: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Misfit of each piece, state, and standard errors of x, y and radius, by Levenberg and Marquardt."""
    mirrored = rim.mirrored(behind=behind)
    state = np.array([circle.x, circle.y, circle.radius, 0.0, gloss])
    low = np.array([-np.inf, -np.inf, 4.0, np.log(_SHARPEST), 0.0])
    high = np.array([np.inf, np.inf, np.inf, np.log(_SOFTEST), 1.0])
    left = rim.left_over(state, mirrored)
    damping, usual, first = 1e-3, 1.0, 0 if center else 2
    for turn in range(_TURNS):
        control.check()
        misfit = _misfits(left)
        if turn < 5:
            usual = max(2.0 * float(np.median(misfit)), 1e-15)
        weight = (usual / (misfit + usual)) ** 2
        slopes = []
        for number, step in list(enumerate(_STEPS))[first:]:
            beside = state.copy()
            # The derivative by gloss is taken on the side where gloss may be.
            beside[number] += step if state[number] + step <= high[number] else -step
            difference = beside[number] - state[number]
            slopes.append(
                [(b - a) / difference for a, b in zip(left, rim.left_over(beside, mirrored), strict=True)]
            )
        moment, pulls = _normal_equations(slopes, left, weight)
        cost, moved = float((misfit / (misfit + usual)).sum()), False
        for _ in range(6):
            scale = damping * np.diag(np.diag(moment) + 1e-12)
            trial = state.copy()
            trial[first:] += np.clip(-np.linalg.solve(moment + scale, pulls.sum(axis=0)), -0.5, 0.5)
            trial = np.clip(trial, low, high)
            left_then = rim.left_over(trial, mirrored)
            misfit_then = _misfits(left_then)
            if float((misfit_then / (misfit_then + usual)).sum()) < cost - 1e-9:
                change = float(np.abs(trial - state).max())
                state, left, moved = trial, left_then, True
                damping = max(damping / 5, 1e-6)
                break
            damping *= 8
        if not moved or (change < 2e-3 and turn > 5):
            break
    inverse = np.linalg.pinv(moment)
    # Pieces are independent of each other, their pixels are not (the sandwich estimate).
    spread = np.zeros(len(state))
    spread[first:] = np.sqrt(np.maximum(np.diag(inverse @ (pulls.T @ pulls) @ inverse), 0))
    return _misfits(left), state, spread[:3]


def _misfits(left: list[FloatArray]) -> FloatArray:
    return np.array([float(np.mean(piece**2)) for piece in left])


def _normal_equations(
    slopes: list[list[FloatArray]], left: list[FloatArray], weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Moments (5, 5) of the derivatives, and for each piece how it pulls (pieces, 5)."""
    moment = np.zeros((len(slopes), len(slopes)))
    pulls = np.zeros((len(left), len(slopes)))
    for number, piece in enumerate(left):
        jacobian = np.stack([slope[number].ravel() for slope in slopes])
        moment += weight[number] * (jacobian @ jacobian.T)
        pulls[number] = weight[number] * (jacobian @ piece.ravel())
    return moment, pulls
