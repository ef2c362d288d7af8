"""The middle of a small highlight, where the sensor has clipped it.

A small highlight is the light's disc blurred by the lens. Its flank looks much like that of a Gaussian, but the light is
many times brighter than white, so what is stored is the flank alone around a flat top:

    I(p) = min( white, room(p) + a · exp(-½ (p - m)ᵀ Q (p - m)) )

Fitting this, with the clipping in it, finds the middle m from the flank on all sides. A centroid of the clipped patch
would jump with every pixel that enters or leaves it, and be drawn to where glare runs; residuals that are too large
for the rest (glare, a second reflection) are forgotten by Tukey's weights.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray

#: A pixel with this share of white is clipped.
CLIPPED = 0.985
#: Light below this share of the top that the model does not expect is glare, and counts this much.
_FAINT, _GLARE = 0.3, 0.02
_TURNS = 25


def spot_middle(
    values: FloatArray,
    room: FloatArray,
    start: tuple[float, float],
    spread: float,
    *,
    white: float,
    noise: float,
) -> tuple[float, float] | None:
    """Column and row of the middle of a highlight, or None where the fit does not settle near its start.

    Parameters
    ----------
    values, room : (h, w) a photograph around the highlight, and what is there without it
    start, spread : a first guess of (column, row), and of the extent in pixels
    white : the value at which the sensor clips; infinite where it does not
    noise : standard deviation of a pixel

    Examples
    --------
    >>> rows, cols = np.mgrid[:21, :21]
    >>> sharp = 30 * np.exp(-((cols - 9.7) ** 2 + (rows - 11.2) ** 2) / 4.0)
    >>> middle = spot_middle(np.minimum(sharp, 1.0), 0 * sharp, (10.0, 10.0), 2.0, white=1.0, noise=1e-3)
    >>> [round(value, 2) for value in middle]
    [9.7, 11.2]
    """
    reach = max(3.0 * spread + 2.0, 4.0)
    rows, cols = np.mgrid[: values.shape[0], : values.shape[1]]
    near = np.hypot(cols - start[0], rows - start[1]) <= reach
    x, y = cols[near].astype(np.float64), rows[near].astype(np.float64)
    seen, below = values[near].astype(np.float64), room[near].astype(np.float64)
    clipped = np.asarray(seen >= CLIPPED * white)
    if len(seen) < 9 or clipped.mean() > 0.6:
        return None
    top = max(float((seen - below).max()), 1e-12)
    wide = max(spread, 0.7)
    # log a, m, and the three entries of Q
    state = np.array(
        [np.log(top * (3.0 if clipped.any() else 1.0)), start[0], start[1], wide**-2, wide**-2, 0.0]
    )
    floor = max(2.0 * noise, 0.01 * top)
    faint = np.asarray(seen - below < _FAINT * top) & clipped.any()
    glare = max(4.0 * noise, 0.03 * top)
    cost, damping = np.inf, 1e-3
    residual, jacobian = _model(state, x, y, seen, below, clipped, white)
    scale = floor
    for turn in range(_TURNS):
        scale = max(1.4826 * float(np.median(np.abs(residual))), floor)
        # Nothing is an outlier before the shape is known.
        limit = 4.685 * scale if turn >= 5 else np.inf
        weight = np.clip(1 - (residual / limit) ** 2, 0, 1) ** 2
        weight = np.where(faint & (residual > glare), _GLARE * weight, weight)
        moment = jacobian.T @ (weight[:, None] * jacobian)
        right = jacobian.T @ (weight * residual)
        cost = float((weight * residual**2).sum())
        moved = False
        for _ in range(6):
            step = np.linalg.solve(moment + damping * np.diag(np.diag(moment) + 1e-12), right)
            step[1:3] = np.clip(step[1:3], -1, 1)
            trial = state + step
            if trial[3] * trial[4] > trial[5] ** 2 and trial[3] > 1e-4 and trial[4] > 1e-4:
                again = _model(trial, x, y, seen, below, clipped, white)
                if float((weight * again[0] ** 2).sum()) < cost:
                    state, (residual, jacobian), moved = trial, again, True
                    damping = max(damping / 5, 1e-9)
                    break
            damping *= 8
        if not moved or (turn > 6 and np.abs(step[1:3]).max() < 1e-3):
            break
    away = float(np.hypot(state[1] - start[0], state[2] - start[1]))
    return (float(state[1]), float(state[2])) if away < max(1.0, spread) else None


def _model(
    state: FloatArray,
    x: FloatArray,
    y: FloatArray,
    seen: FloatArray,
    below: FloatArray,
    clipped: BoolArray,
    white: float,
) -> tuple[FloatArray, FloatArray]:
    """Residuals (seen - model), zero where both are clipped, and their derivatives (n, 6) of the model."""
    dx, dy = x - state[1], y - state[2]
    form = state[3] * dx * dx + state[4] * dy * dy + 2 * state[5] * dx * dy
    light = np.exp(np.clip(state[0] - 0.5 * form, -60, 60))
    flat = below + light >= CLIPPED * white
    residual = np.where(flat & clipped, 0.0, seen - np.minimum(below + light, white))
    slope = np.where(flat, 0.0, light)
    columns = [
        np.ones_like(dx),
        state[3] * dx + state[5] * dy,
        state[4] * dy + state[5] * dx,
        -0.5 * dx * dx,
        -0.5 * dy * dy,
        -dx * dy,
    ]
    return residual, np.stack([slope * column for column in columns], axis=1)
