"""Round numbers for the axes of plots, and numbers as people write them."""

from __future__ import annotations

import math


def round_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers that span [low, high].

    >>> round_ticks(0, 17)
    [0.0, 5.0, 10.0, 15.0]
    """
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def decade_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in [low, high], and 2 and 5 times them if there are few.

    >>> decade_ticks(0.5, 200)
    [1.0, 10.0, 100.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**n for n in range(first, last + 1)]
    inside = [tick for tick in decades if low <= tick <= high]
    if len(inside) < 3:
        inside = sorted(f * tick for tick in decades for f in (1, 2, 5) if low <= f * tick <= high)
    every = max(1, math.ceil(len(inside) / 6))
    return inside[::every]


def short_number(value: float) -> str:
    """Few characters, no needless zeros.

    >>> [short_number(v) for v in (0, 0.25, 12.0, 1500, 2_500_000, 0.00012)]
    ['0', '0.25', '12', '1500', '2.5M', '1.2e-4']
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M" if size < 1e9 else f"{value:.1e}".replace("e+", "e").replace("e0", "e")
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    if size < 1e-3:
        return f"{value:.1e}".replace("e-0", "e-").replace(".0e", "e")
    return f"{value:.4g}"
