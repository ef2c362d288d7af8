"""Vector plots, colored by the page's style sheet so that they follow its light or dark scheme.

This module computes the numbers; ``templates/plots.html`` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from markupsafe import Markup

from photostereo.core.conventions import FloatArray
from photostereo.report.document import templates
from photostereo.report.pictures import gradient_stops

#: An empty plot.
NOTHING = Markup("")
#: Number of colors for lines and points, one per method: ``--tone-1`` to ``--tone-9`` in the style sheet.
TONES = 9
#: Number of line styles, for more methods than colors: 0 is solid, ``dash-1`` to ``dash-3`` are in the style sheet.
DASHES = 4
#: Bins of a histogram.
BINS = 45

_ids = count(1)
Scale = Callable[[float], float]
#: Positions and labels.
Ticks = list[tuple[float, str]]


@dataclass(frozen=True)
class Chart:
    """A plot with its heading and legend."""

    title: str
    plot: Markup
    legend: Markup = NOTHING
    note: str = ""


@dataclass(frozen=True)
class Series:
    """A line: its name in the legend, its values, and its color and dash in the style sheet."""

    name: str
    values: Sequence[float]
    tone: int
    dash: int = 0

    @property
    def style(self) -> str:
        """Its classes in the style sheet."""
        return f"tone-{self.tone} dash-{self.dash}"


class Axes:
    """The box of a plot inside its picture, with ticks and labels along its two axes."""

    width, height, left, right, top, bottom = 440, 250, 58, 428, 14, 210

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], *, log: bool = False
    ) -> None:
        self.across = _scale(*x, self.left, self.right)
        self.up = _scale(*y, self.bottom, self.top, log)
        self.x_ticks: Ticks = []
        self.y_ticks: Ticks = []

    def label(
        self, x: Sequence[float], y: Sequence[float], x_suffix: str = "", y_suffix: str = ""
    ) -> None:
        self.x_ticks = [(self.across(tick), short_number(tick) + x_suffix) for tick in x]
        self.y_ticks = [(self.up(tick), short_number(tick) + y_suffix) for tick in y]


#: Lines over a wider range of values than this factor are drawn on a logarithmic axis.
LOG_SPAN = 30


def style_of(number: int) -> tuple[int, int]:
    """Color and dash of the n-th line; the first 36 all differ."""
    return 1 + number % TONES, number // TONES % DASHES


def line_chart(
    x: Sequence[float],
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    summary: str,
    zero: bool = False,
    allow_log: bool = False,
    suffix: str = "",
    y_range: tuple[float, float] | None = None,
) -> Markup:
    """Draw lines over a common x axis.

    Parameters
    ----------
    x : sequence of float
        Places along the x axis.
    series : sequence of Series
        The lines; values that are not finite are gaps.
    x_label, y_label : str
        Names of the axes, with units.
    summary : str
        The chart in words, for those who cannot see it.
    zero : bool
        Begin the y axis at zero.
    allow_log : bool
        Use a logarithmic y axis if the values span a factor of :data:`LOG_SPAN`.
    suffix : str
        A unit after each number on the y axis.
    y_range : (low, high), optional
        The y axis; by default it fits the values.
    """
    values = [v for line in series for v in line.values if math.isfinite(v)]
    if not values or len(x) == 0:
        return NOTHING
    positive = [v for v in values if v > 0]
    log = allow_log and bool(positive) and max(positive) / min(positive) > LOG_SPAN
    if log:
        low = min(positive) / 1.3
        high = max(positive) * 1.3
        y_ticks = decade_ticks(low, high)
    else:
        low, high = y_range or _with_margin(min(values), max(values), zero)
        y_ticks = round_ticks(low, high)
    first = min(x)
    last = max(x)
    if last == first:
        last = first + 1
    axes = Axes((first, last), (low, high), log=log)
    x_ticks = round_ticks(first, max(x), 6)
    whole = [tick for tick in x_ticks if float(tick).is_integer()]
    axes.label(whole or x_ticks, y_ticks, y_suffix=suffix)
    drawn = []
    for line in series:
        points = []
        for place, value in zip(x, line.values, strict=True):
            if value > 0 or (value <= 0 and not log):  # neither if it is NaN
                points.append((axes.across(place), axes.up(value)))
        drawn.append((line, points))
    return _drawn("lines", axes, drawn, x_label, y_label, summary)


def _with_margin(low: float, high: float, zero: bool) -> tuple[float, float]:
    """Return the range of an axis a little wider than its values."""
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return 0.0 if zero else low - margin, high + margin


def legend(series: Sequence[Series]) -> Markup:
    """List the names and colors of the lines."""
    return _drawn("legend", series)


def histogram(errors: FloatArray, top: float, marks: Mapping[str, float]) -> Markup:
    """Histogram of angular errors from 0 to ``top`` (larger ones in the last bin), with labeled marks."""
    counts, _ = np.histogram(np.minimum(errors, top * (1 - 1e-9)), bins=BINS, range=(0.0, top))
    shares = 100.0 * counts / max(int(counts.sum()), 1)
    high = max(float(shares.max()) * 1.18, 1e-9)
    axes = Axes((0.0, top), (0.0, high))
    axes.label(round_ticks(0, top, 6), round_ticks(0, high, 4), "°", " %")
    width = (axes.right - axes.left) / BINS
    bars = [
        (axes.left + n * width + 0.4, axes.up(float(share)), width - 0.8, color)
        for n, (share, (_, color)) in enumerate(
            zip(shares, gradient_stops("ember", BINS), strict=True)
        )
        if share > 0
    ]
    labels = [
        (axes.across(min(value, top)), axes.top + 9 + 15 * n, f"{name} {value:.1f}°")
        for n, (name, value) in enumerate(marks.items())
    ]
    said = ", ".join(f"{name} {value:.1f}" for name, value in marks.items())
    return _drawn(
        "histogram", axes, bars, labels, f"Histogram of the angular error: {said} degrees"
    )


def light_compass(lights: Sequence[tuple[Sequence[float], str]]) -> Markup:
    """Draw named lights on the hemisphere seen from the camera: the rim is the horizon, the center the camera."""
    summary = f"{len(lights)} light directions on a hemisphere seen from the camera"
    return _drawn("compass", f"sky{next(_ids)}", lights, summary)


def color_bar(
    scale: str,
    low: float,
    high: float,
    *,
    suffix: str = "",
    words: tuple[str, str] | None = None,
) -> Markup:
    """Draw a color scale with round numbers, or words at its ends."""
    across = _scale(low, high, 8, 292)
    ticks = [
        (across(tick), short_number(tick) + suffix)
        for tick in (round_ticks(low, high, 5) if words is None and high > low else ())
    ]
    summary = f"color scale from {short_number(low)}{suffix} to {short_number(high)}{suffix}"
    # With the scale's name, so that ids stay unique if another process replaces the depth map in the page.
    identity = f"bar-{scale}-{next(_ids)}"
    return _drawn("color_bar", identity, gradient_stops(scale), words, ticks, summary)


def _drawn(plot: str, *facts: Any) -> Markup:
    return Markup(getattr(templates().get_template("plots.html").module, plot)(*facts))


def _scale(low: float, high: float, begin: float, end: float, log: bool = False) -> Scale:
    if log:
        return lambda value: begin + math.log(value / low) / math.log(high / low) * (end - begin)
    return lambda value: begin + (value - low) / (high - low) * (end - begin)


def round_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers that span [low, high]."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def decade_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten in [low, high], and 2 and 5 times them if there are few."""
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    decades = [10.0**n for n in range(first, last + 1)]
    inside = [tick for tick in decades if low <= tick <= high]
    if len(inside) < 3:
        inside = sorted(f * tick for tick in decades for f in (1, 2, 5) if low <= f * tick <= high)
    every = max(1, math.ceil(len(inside) / 6))
    return inside[::every]


def short_number(value: float) -> str:
    """Format a number with few characters and no trailing zeros."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6:
        if size < 1e9:
            return f"{value / 1e6:.3g}M"
        return f"{value:.1e}".replace("e+", "e").replace("e0", "e")
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    if size < 1e-3:
        return f"{value:.1e}".replace("e-0", "e-").replace(".0e", "e")
    return f"{value:.4g}"
