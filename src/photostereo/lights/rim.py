"""The true outline of a shiny ball: its rim mirrors what is behind it.

Seen at a grazing angle everything shiny is a perfect mirror (Fresnel), and what the rim mirrors is what lies right
behind it. So the picture of the ball fades into its surroundings before it ends, the edge that one sees is one or two
per cent inside the true outline, and light directions computed with that radius are up to a degree too flat. Where the
rim behaves like this, the profile across it, in units of the radius ρ and with 0 inside and 1 outside, is

    inside:   g · (1 - c)⁵,   c = √(1 - ρ²)    (Schlick's form of Fresnel's law; g = 0: no gloss at the rim)
    outside:  1

blurred by the lens. Its four numbers (radius, g, blur, and the slope of what lies inside) are fitted to the median
profile over all rays and photographs; a rim that ends sharply gives g ≈ 0 and keeps its radius.
"""

from __future__ import annotations

import cv2
import numpy as np

from photostereo.conventions import FloatArray
from photostereo.lights.circle import Circle

#: The profile is taken from and to these multiples of the radius.
_FROM, _TO = 0.86, 1.07


def rim_profile(images: FloatArray, circle: Circle) -> tuple[FloatArray, FloatArray] | None:
    """Median profile across the rim, 0 inside and 1 outside, at multiples of the radius; None where it has none."""
    radius = circle.radius
    steps = int(np.clip((_TO - _FROM) * radius * 2, 24, 96))
    shares = np.linspace(_FROM, _TO, steps)
    points = circle.points
    if len(points) < 24:
        return None
    angles = np.arctan2(points[:, 1] - circle.y, points[:, 0] - circle.x)
    angles = angles[:: max(1, len(angles) // 240)]
    x = (circle.x + radius * shares[None] * np.cos(angles)[:, None]).astype(np.float32)
    y = (circle.y + radius * shares[None] * np.sin(angles)[:, None]).astype(np.float32)
    frame = images.shape[1:3]
    seen = ((x >= 0) & (x <= frame[1] - 1) & (y >= 0) & (y <= frame[0] - 1)).all(axis=1)
    if seen.sum() < 24:
        return None
    x, y = x[seen], y[seen]
    inner, outer = shares < _FROM + 0.05, shares > 1.02
    kept = []
    for image in images:
        values = cv2.remap(np.asarray(image, np.float32), x, y, cv2.INTER_LINEAR).astype(np.float64)
        inside, outside = np.median(values[:, inner], axis=1), np.median(values[:, outer], axis=1)
        step = outside - inside
        # Rays on which something else lies across the rim (texture, a shadow, a reflection) say nothing.
        rough = np.abs(np.diff(values[:, outer], axis=1)).max(axis=1)
        clear = (np.abs(step) > 0.25 * np.maximum(inside, outside)) & (rough < 0.3 * np.abs(step))
        kept.append((values[clear] - inside[clear, None]) / step[clear, None])
    profiles = np.concatenate(kept)
    if len(profiles) < 60:
        return None
    return shares, np.asarray(np.median(profiles, axis=0))


def true_outline(images: FloatArray, circle: Circle) -> Circle:
    """The circle with the radius at which the ball ends, where its rim mirrors what is behind it."""
    measured = rim_profile(images, circle)
    if measured is None:
        return circle
    shares, profile = measured
    best = _fit(shares, profile, circle.radius)
    return circle.moved(0.0, 0.0, circle.radius * (best - 1))  # its points too: a cone is laid through them


def _fit(shares: FloatArray, profile: FloatArray, radius: float) -> float:
    """The ratio of true to apparent radius: the best of a grid, then a parabola between its neighbours."""
    ratios = np.arange(0.985, 1.0325, 0.0025)
    blurs = np.array([0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 6.5]) / radius
    blurs = blurs[blurs < max(0.035, float(blurs[1]))]
    cost = np.array([[_misfit(shares, profile, ratio, blur) for blur in blurs] for ratio in ratios])
    lowest = cost.min(axis=1)
    place = int(np.argmin(lowest))
    if place in (0, len(ratios) - 1):
        return 1.0
    left, middle, right = lowest[place - 1 : place + 2]
    shift = 0.5 * (left - right) / max(left - 2 * middle + right, 1e-15)
    return float(ratios[place] + 0.0025 * np.clip(shift, -0.5, 0.5))


def _misfit(shares: FloatArray, profile: FloatArray, ratio: float, blur: float) -> float:
    """Least-squares misfit of the model with this outline and blur; gloss and slopes are linear."""
    fine = np.linspace(_FROM - 0.12, _TO + 0.12, 920)
    rho = fine / ratio
    cosine = np.sqrt(np.maximum(1 - rho**2, 0))
    outside = (rho >= 1).astype(np.float64)
    gloss = np.where(rho < 1, (1 - cosine) ** 5, 0.0)
    kernel = _gaussian(blur / (fine[1] - fine[0]))
    columns = [np.convolve(part, kernel, mode="same") for part in (outside, gloss, 1 - outside)]
    design = np.stack([np.interp(shares, fine, column) for column in columns], axis=1)
    # Gloss is between none and that of a perfect mirror of what is outside.
    solution = np.linalg.lstsq(design, profile, rcond=None)[0]
    full = max(float(solution[0] - solution[2]), 1e-9)
    clipped = float(np.clip(solution[1], 0.0, full))
    if clipped != solution[1]:
        rest = design[:, [0, 2]]
        if clipped:
            rest = np.stack([design[:, 0] + design[:, 1], design[:, 2] - design[:, 1]], axis=1)
        part = np.linalg.lstsq(rest, profile, rcond=None)[0]
        return float(((rest @ part - profile) ** 2).mean())
    return float(((design @ solution - profile) ** 2).mean())


def _gaussian(sigma: float) -> FloatArray:
    reach = int(4 * sigma) + 1
    place = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (place / max(sigma, 1e-6)) ** 2)
    return np.asarray(kernel / kernel.sum())
