"""The centre of a shiny ball to a few hundredths of a pixel, from all pixels along its outline.

Edges are where single rays change most; the pixels of the rim know more. Across the outline all photographs show the same
profile T(ρ), from 0 inside to 1 outside (:func:`.rim.rim_profile`: the blur of the lens and what the rim mirrors), but
between levels of their own on every short piece of the outline:

    I(p) = (a₀ + a₁ (ρ - 1)) (1 - T(ρ)) + (b₀ + b₁ (ρ - 1)) T(ρ),        ρ the distance from the centre in radii

For a given centre these are four linear unknowns for each piece and photograph, so they are eliminated by projection, and
what is left is the misfit as a function of the centre. Pieces at which something else ends (texture, the object, a
stand) are forgotten by a robust sum.
"""

from __future__ import annotations

import numpy as np

from photostereo.conventions import FloatArray
from photostereo.lights.circle import Circle
from photostereo.lights.rim import rim_profile

#: Pixels within this many pixels of the outline are looked at, or this share of the radius inside it.
_BAND, _DEEP = 4.0, 0.12
#: Pieces of the outline, each about so many pixels long, within limits.
_PIECE, _FEWEST, _MOST = 9.0, 16, 48
#: The circle moves no further from where its edges are than this many pixels, or this share of the radius.
_FAR, _FAR_SHARE = 0.6, 0.02
#: Larger balls are known well enough from their edges.
_LARGE = 200.0


class _Rim:
    """Pixels along the outline, in pieces, and the misfit of a circle to them."""

    def __init__(self, images: FloatArray, circle: Circle) -> None:
        frame = images.shape[1:3]
        reach = circle.radius + _BAND + 1
        rows, cols = np.mgrid[
            max(int(circle.y - reach), 0) : min(int(circle.y + reach) + 2, frame[0]),
            max(int(circle.x - reach), 0) : min(int(circle.x + reach) + 2, frame[1]),
        ]
        away = np.hypot(cols - circle.x, rows - circle.y) - circle.radius
        near = (away < _BAND) & (away > -max(_BAND, _DEEP * circle.radius))
        rows, cols, away = rows[near], cols[near], away[near]
        count = int(np.clip(2 * np.pi * circle.radius / _PIECE, _FEWEST, _MOST))
        piece = (np.arctan2(rows - circle.y, cols - circle.x) % (2 * np.pi) / (2 * np.pi) * count).astype(
            np.intp
        )
        order = np.argsort(piece, kind="stable")
        rows, cols, away = rows[order], cols[order], away[order]
        values = np.asarray(images[:, rows, cols], dtype=np.float64).T
        self.x, self.y = cols.astype(np.float64), rows.astype(np.float64)
        bounds = np.searchsorted(piece[order], np.arange(count + 1))
        self.pieces = []
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            where = slice(start, stop)
            if stop - start >= 20 and np.ptp(away[where]) > 1.5 * _BAND:
                peak = values[where].max(axis=0)
                calm = peak <= 4.0 * float(np.median(peak)) + 1e-9  # a highlight lies across the others
                self.pieces.append((where, values[where][:, calm]))
        self.share = len(self.pieces) / count

    def misfits(
        self, x: float, y: float, radius: float, shares: FloatArray, profile: FloatArray
    ) -> FloatArray:
        """What the profile leaves of each piece."""
        rho = np.hypot(self.x - x, self.y - y) / radius
        outside = np.interp(rho, shares, profile)
        inside = 1 - outside
        design = np.stack([inside, outside, inside * (rho - 1), outside * (rho - 1)], axis=1)
        left = np.empty(len(self.pieces))
        for number, (where, values) in enumerate(self.pieces):
            basis, _ = np.linalg.qr(design[where])
            left[number] = float((values**2).sum() - ((basis.T @ values) ** 2).sum())
        return np.maximum(left, 0.0)


def settle_centre(images: FloatArray, circle: Circle) -> Circle:
    """The circle moved to where the rim in the photographs (d, H, W) fits best, near one that was found from edges.

    Where the rim is not seen well enough, and where the ball is large, the circle is returned as it is.

    Examples
    --------
    >>> rows, cols = np.mgrid[:80, :80]
    >>> disc = np.clip(25.0 + 0.5 - np.hypot(cols - 40.3, rows - 39.6), 0, 1)
    >>> angles = np.linspace(0, 6.28, 60)
    >>> points = np.stack([40.1 + 25 * np.cos(angles), 39.7 + 25 * np.sin(angles)], axis=1)
    >>> found = settle_centre(np.stack([1 - disc, 0.5 - 0.4 * disc] * 3), Circle(40.1, 39.7, 25.0, points=points))
    >>> round(found.x, 1), round(found.y, 1)
    (40.3, 39.6)
    """
    from scipy.optimize import minimize

    if circle.radius > _LARGE:
        return circle
    start, far = circle, max(_FAR, _FAR_SHARE * circle.radius)
    for _ in range(2):  # the profile is sharper once the centre is known
        measured, rim = rim_profile(images, circle), _Rim(images, circle)
        if measured is None or len(rim.pieces) < 6 or rim.share < 0.3:
            return start
        first = rim.misfits(circle.x, circle.y, circle.radius, *measured)
        usual = max(4.0 * float(np.median(first)), 1e-15)

        def cost(
            move: FloatArray,
            at: Circle = circle,
            rim: _Rim = rim,
            measured: tuple[FloatArray, FloatArray] = measured,
            usual: float = usual,
        ) -> float:
            left = rim.misfits(at.x + move[0], at.y + move[1], at.radius + move[2], *measured)
            return float((left / (left + usual)).sum())

        simplex = np.vstack([np.zeros(3), 0.2 * np.eye(3)])
        options = {"initial_simplex": simplex, "maxfev": 90, "xatol": 0.005, "fatol": 1e-6}
        move = minimize(cost, np.zeros(3), method="Nelder-Mead", options=options).x
        # The radius moves along with a profile that was measured a little off, and means nothing by itself.
        circle = circle.moved(float(move[0]), float(move[1]))
        if max(abs(circle.x - start.x), abs(circle.y - start.y), abs(move[2])) > far:
            return start
    return circle
