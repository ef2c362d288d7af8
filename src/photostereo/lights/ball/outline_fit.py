"""Fit the outline of a shiny ball to a few hundredths of a pixel, from all pixels along its rim.

Edges are located on single rays; all pixels of the rim together give more information. Also, the visible edge is not
where a shiny ball ends: at a grazing angle every shiny surface is a perfect mirror (Fresnel), and the rim mirrors
what lies behind it. So the ball fades into its surroundings before it ends, the visible edge is one or two percent
inside the true outline, and directions computed with that radius are up to a degree too flat. Across the rim, with ρ the
distance from the center in radii,

    inside   I = a (1 - g F) + B g F,    F = (1 - c)⁵,  c = √(1 - ρ²)    (Schlick's form of Fresnel's law)
    outside  I = b

blurred by the lens. B is the mean brightness of the ground around the ball, which the rim mirrors. Levels a and b change
slowly along and across each short piece of the rim, and from photograph to photograph: for a given outline they are
linear, so they are eliminated by projection, and center, radius, blur and gloss g remain for least squares. A robust sum
ignores pieces where something else ends (the object, a stand, a shadow). For the error of the outline, pieces, not
pixels, count as independent: the pattern of a table is the same in all photographs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray, Indices
from photostereo.lights.ball.circle_search import close_up
from photostereo.lights.ball.geometry import Circle

#: Pixels within this distance of the outline, in pixels, are used, ...
_BAND = 4.0
#: ... and inside it those within this share of the radius.
_DEEP = 0.12
#: Length in pixels of a piece of the outline, within the limits of their number.
_PIECE = 9.0
#: Minimum number of pieces: fewer would not outvote one that shows something else.
_FEWEST = 16
#: Maximum number of pieces.
_MOST = 64
#: Maximum distance of the outline from its edges: this many pixels, ...
_FAR = 0.6
#: ... this share of the radius, ...
_FAR_SHARE = 0.02
#: ... or this many times the scatter of the edges.
_FAR_EDGES = 4.0
#: The radius may also grow by this share, the part that a mirroring rim hides.
_HIDDEN = 0.035
#: The mirrored ground begins this many pixels beyond the outline, ...
_GROUND_FROM = 2.5
#: ... and ends at this many radii.
_GROUND_TO = 1.35
#: Minimum blur in pixels.
_SHARPEST = 0.35
#: Maximum blur in pixels.
_SOFTEST = 6.0
#: Rounds of weights for the pieces; three usually suffice.
_ROUNDS = 6
#: Steps of least squares in each round.
_TURNS = 5
#: Errors are this many times those from the scatter of the pieces: an error of the model affects many in the same way.
_MODEL = 2.0
#: Minimum error in pixels, before that factor.
_LEAST = 0.005


class _Rim:
    """Pixels along the outline, in pieces, and their residuals for a given circle."""

    def __init__(self, images: FloatArray, circle: Circle) -> None:
        rows, cols, away = _ring(images, circle, _BAND, -max(_BAND, _DEEP * circle.radius))
        count = int(np.clip(2 * np.pi * circle.radius / _PIECE, _FEWEST, _MOST))
        turn = np.arctan2(rows - circle.y, cols - circle.x) % (2 * np.pi) / (2 * np.pi) * count
        order = np.argsort(turn.astype(np.intp), kind="stable")
        rows = rows[order]
        cols = cols[order]
        away = away[order]
        turn = turn[order]
        values = np.asarray(images[:, rows, cols], dtype=np.float64).T
        self.x = cols.astype(np.float64)
        self.y = rows.astype(np.float64)
        self.along = 2 * (turn % 1) - 1  # from -1 to 1 along each piece
        bounds = np.searchsorted(turn.astype(np.intp), np.arange(count + 1))
        self.pieces: list[tuple[slice, FloatArray, FloatArray]] = []
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            where = slice(start, stop)
            if stop - start >= 20 and np.ptp(away[where]) > 1.5 * _BAND:
                peak = values[where].max(axis=0)
                calm = peak <= 4.0 * float(np.median(peak)) + 1e-9  # the others contain a highlight
                self.pieces.append((where, values[where][:, calm], calm))
        self.share = len(self.pieces) / count
        rows, cols, _ = _ring(images, circle, (_GROUND_TO - 1) * circle.radius + 4, _GROUND_FROM)
        self.ground = np.asarray(images[:, rows, cols], dtype=np.float64)

    def left_over(self, state: FloatArray) -> list[FloatArray]:
        """Return the residuals of each piece for the outline (x, y, radius, log blur, gloss)."""
        x, y, radius, log_blur, gloss = (float(value) for value in state)
        away = np.hypot(self.x - x, self.y - y) - radius
        blur = float(np.exp(log_blur))
        bent = away + blur * blur / (2 * radius)  # a blurred disc ends a little inside its outline
        from scipy.special import ndtr  # with scipy.optimize, half a second that only a ball needs

        outside = ndtr(bent / blur)
        mirror = gloss * blurred_fresnel(bent, radius, blur)
        inside = 1 - outside - mirror
        t = self.along
        columns = [inside, inside * away, inside * t, outside, outside * away, outside * t]
        design = np.stack([*columns, outside * t * t, outside * t * away], axis=1)
        left: list[FloatArray] = []
        mirrored = self.ground.mean(axis=1)
        for where, values, calm in self.pieces:
            rest = values - mirror[where, None] * mirrored[calm]
            basis, _ = np.linalg.qr(design[where])
            left.append(rest - basis @ (basis.T @ rest))
        return left


def _ring(
    images: FloatArray, circle: Circle, outer: float, inner: float
) -> tuple[Indices, Indices, FloatArray]:
    """Return rows, columns and distances from the outline of the pixels between ``inner`` and ``outer`` distance."""
    rows, cols = np.ogrid[: images.shape[1], : images.shape[2]]
    away = np.hypot(cols - circle.x, rows - circle.y) - circle.radius
    rows, cols = np.nonzero((away < outer) & (away > inner))
    return rows, cols, away[rows, cols]


def blurred_fresnel(away: FloatArray, radius: float, blur: float, step: float = 0.05) -> FloatArray:
    """Return (1 - c)⁵ inside a ball and 0 outside, blurred, at distances ``away`` from the outline (negative inside)."""
    inside = int(np.ceil((min(0.5 * radius, 30.0) + 6 * blur) / step))
    outside = int(np.ceil(7 * blur / step))
    cells = np.arange(-inside, outside) * step
    # Its slope is infinite at the outline, so cells hold its mean, and the outline is between two of them.
    rho = np.maximum(1 + (cells[:, None] + step * (np.arange(8) + 0.5) / 8) / radius, 0)
    share = np.where(rho < 1, (1 - np.sqrt(np.maximum(1 - rho**2, 0))) ** 5, 0.0).mean(axis=1)
    reach = int(np.ceil(5 * blur / step))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / blur) ** 2)
    blurred = np.convolve(share, kernel / kernel.sum(), mode="same")
    return np.asarray(np.interp(away, cells + 0.5 * step, blurred))


def settle_outline(images: FloatArray, circle: Circle, control: Control = SILENT) -> Circle:
    """Return the outline that fits the rim in the photographs (d, H, W) best, near one found from edges.

    Its ``errors`` are standard errors. If the rim is not visible enough, the circle is returned unchanged.
    """
    part, local, in_frame = close_up(images, circle, (_GROUND_TO + 0.02) * circle.radius + 8)
    rim = _Rim(part, local)
    if len(rim.pieces) < 6 or rim.share < 0.3 or not rim.ground.size:
        return circle
    state, spread = _fit(rim, local, control)
    x, y, radius = (float(value) for value in state[:3])
    far = max(_FAR, _FAR_SHARE * local.radius, _FAR_EDGES * local.residual)
    apart = float(np.hypot(x - local.x, y - local.y))
    growth = radius - local.radius
    if apart > 1.5 * far or not -far < growth < max(2 * far, _HIDDEN * local.radius):
        return circle
    error = _MODEL * np.maximum(spread, _LEAST)
    # If two measurements of one outline differ, each is uncertain by at least half of that; the rim hides a little.
    errors = (
        max(float(np.hypot(error[0], error[1])), 0.5 * apart),
        max(float(error[2]), -0.5 * growth),
    )
    return in_frame(replace(local.moved(x - local.x, y - local.y, growth), errors=errors))


def _fit(rim: _Rim, circle: Circle, control: Control) -> tuple[FloatArray, FloatArray]:
    """Return the state, and standard errors of x, y and radius."""
    from scipy.optimize import least_squares

    state = np.array([circle.x, circle.y, circle.radius, 0.0, 0.5])
    low = np.array([-np.inf, -np.inf, 4.0, np.log(_SHARPEST), 0.0])
    high = np.array([np.inf, np.inf, np.inf, np.log(_SOFTEST), 1.0])

    def left(state: FloatArray, weight: FloatArray) -> FloatArray:
        control.check()
        pieces = zip(weight, rim.left_over(state), strict=True)
        return np.concatenate([w * piece.ravel() for w, piece in pieces])

    for _ in range(_ROUNDS):
        misfit = np.array([float(np.mean(piece**2)) for piece in rim.left_over(state)])
        usual = max(2.0 * float(np.median(misfit)), 1e-15)
        weight = usual / (misfit + usual)
        fit = least_squares(left, state, bounds=(low, high), max_nfev=_TURNS, args=(weight,))
        moved = float(np.abs(fit.x - state).max())
        state = fit.x
        if moved < 2e-3:
            break
    inverse = np.linalg.pinv(fit.jac.T @ fit.jac)
    # Pieces are independent of each other, their pixels are not (the sandwich estimate).
    ends = np.cumsum([piece.size for piece in rim.left_over(state)])[:-1]
    pulls = np.stack([part.sum(axis=0) for part in np.split(fit.jac * fit.fun[:, None], ends)])
    spread = np.sqrt(np.maximum(np.diag(inverse @ (pulls.T @ pulls) @ inverse), 0))
    return state, spread[:3]
