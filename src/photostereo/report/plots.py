"""Crisp vector plots, colored by the page's style sheet so that they follow its light or dark scheme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from photostereo.core.conventions import FloatArray
from photostereo.report.axes import decade_ticks, round_ticks, short_number
from photostereo.report.colors import gradient_stops

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 14, 40

#: Where a plot has nothing to show.
NOTHING = Markup("")
#: Colors for lines and points, ``--tone-1`` to ``--tone-9`` in the style sheet: one per method.
TONES = 9
#: Kinds of lines for more methods than colors, ``dash-1`` to ``dash-3`` in the style sheet; 0 is a full line.
DASHES = 4

_ids = count(1)


def style_of(number: int) -> tuple[int, int]:
    """Color and dash of the n-th line: no two of the first 36 are alike.

    >>> style_of(0), style_of(9)
    ((1, 0), (1, 1))
    """
    return 1 + number % TONES, number // TONES % DASHES


@dataclass(frozen=True)
class Series:
    """A line: its name in the legend, its values, and which of the page's colors and dashes it has."""

    name: str
    values: Sequence[float]
    tone: int
    dash: int = 0

    @property
    def style(self) -> str:
        """Its classes in the style sheet."""
        return f"tone-{self.tone} dash-{self.dash}"


@dataclass(frozen=True)
class _Scale:
    """Data to plot coordinates."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


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
    """Lines over a common x axis; ``summary`` is read aloud in place of the picture.

    The y axis is logarithmic if ``allow_log`` and the values span more than a factor of thirty.
    """
    values = [v for line in series for v in line.values if math.isfinite(v)]
    if not values or len(x) == 0:
        return NOTHING
    low, high = (min(values), max(values)) if y_range is None else y_range
    positive = [v for v in values if v > 0]
    log = allow_log and bool(positive) and max(positive) / min(positive) > 30
    if log:
        low, high = min(positive) / 1.3, max(positive) * 1.3
    elif y_range is None:
        margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        low, high = (0.0 if zero else low - margin), high + margin
    x_high = max(x) if max(x) > min(x) else min(x) + 1
    across = _Scale(min(x), x_high, LEFT, WIDTH - RIGHT)
    up = _Scale(low, high, HEIGHT - BOTTOM, TOP, log)
    ticks = decade_ticks(low, high) if log else round_ticks(low, high)
    parts = [_grid(across, up, _whole_ticks(x), ticks, suffix), _axis_labels(x_label, y_label)]
    for line in series:
        points = [
            f"{across(a):.1f},{up(v):.1f}"
            for a, v in zip(x, line.values, strict=True)
            if math.isfinite(v) and (v > 0 or not log)
        ]
        if len(points) == 1:
            cx, cy = points[0].split(",")
            parts.append(f'<circle class="dot tone-{line.tone}" cx="{cx}" cy="{cy}" r="3.5"/>')
        else:
            parts.append(f'<polyline class="line {line.style}" points="{" ".join(points)}"/>')
    return _svg("".join(parts), summary)


def legend(series: Sequence[Series]) -> Markup:
    """Names and colors of the lines, as a list."""
    items = "".join(
        '<li><svg viewBox="0 0 18 8" aria-hidden="true">'
        f'<path class="line {line.style}" d="M1 4H17"/></svg>'
        f"{escape(line.name)}</li>"
        for line in series
    )
    return Markup(f'<ul class="legend">{items}</ul>')


def histogram(
    values: FloatArray,
    *,
    top: float,
    marks: Sequence[tuple[str, float]],
    x_label: str,
    summary: str,
    scale: str,
) -> Markup:
    """Shares of the values in classes from 0 to ``top`` (larger ones in the last), with labeled marks."""
    bins = 45
    counts, _ = np.histogram(np.minimum(values, top * (1 - 1e-9)), bins=bins, range=(0.0, top))
    shares = 100.0 * counts / max(int(counts.sum()), 1)
    across = _Scale(0.0, top, LEFT, WIDTH - RIGHT)
    up = _Scale(0.0, max(float(shares.max()) * 1.18, 1e-9), HEIGHT - BOTTOM, TOP)
    parts = [
        _grid(across, up, round_ticks(0, top, 6), round_ticks(0, up.high, 4), " %", x_suffix="°"),
        _axis_labels(x_label, "share of pixels"),
    ]
    stops = gradient_stops(scale, bins)
    width = (WIDTH - RIGHT - LEFT) / bins
    for i, share in enumerate(shares):
        if share > 0:
            y = up(float(share))
            parts.append(
                f'<rect class="bar" x="{LEFT + i * width + 0.4:.2f}" y="{y:.2f}" width="{width - 0.8:.2f}" '
                f'height="{HEIGHT - BOTTOM - y:.2f}" fill="{stops[i][1]}"/>'
            )
    labels = []
    heights = (TOP + 9, TOP + 24, TOP + 39)
    for (name, value), y in zip(marks, heights, strict=False):
        x = across(min(value, top))
        anchor, shift = ("start", 5) if x < WIDTH * 0.62 else ("end", -5)
        parts.append(f'<path class="mark" d="M{x:.1f} {y - 9}V{HEIGHT - BOTTOM}"/>')
        labels.append(
            f'<text class="mark-label" x="{x + shift:.1f}" y="{y}" text-anchor="{anchor}">'
            f"{escape(name)} {value:.1f}°</text>"
        )
    return _svg("".join([*parts, *labels]), summary)


def light_compass(lights: FloatArray, names: Sequence[str]) -> Markup:
    """Lights on the hemisphere as the camera sees it: the rim is the horizon, the middle the camera."""
    radius, middle = 100.0, 120.0
    identity = f"sky{next(_ids)}"
    parts = [
        f'<defs><radialGradient id="{identity}" cx="0.42" cy="0.36" r="0.75">'
        '<stop offset="0" class="sky-center"/>'
        '<stop offset="1" class="sky-rim"/></radialGradient></defs>'
        f'<circle class="sky" cx="{middle}" cy="{middle}" r="{radius}" fill="url(#{identity})"/>'
    ]
    for elevation in (30, 60):
        ring = radius * math.cos(math.radians(elevation))
        parts.append(f'<circle class="ring" cx="{middle}" cy="{middle}" r="{ring:.1f}"/>')
        y = middle - ring
        parts.append(f'<text class="ring-label" x="{middle + 3}" y="{y - 2:.1f}">{elevation}°</text>')
    parts.append(
        f'<path class="ring" d="M{middle - radius} {middle}h{2 * radius}M{middle} {middle - radius}v{2 * radius}"/>'
    )
    for i, ((x, y, z), name) in enumerate(zip(lights, names, strict=True)):
        behind = " behind" if z < 0 else ""
        parts.append(
            f'<circle class="lamp{behind}" data-photo="{i}" cx="{middle + radius * x:.1f}" '
            f'cy="{middle - radius * y:.1f}" r="4.2"><title>{escape(name)}</title></circle>'
        )
    summary = f"{len(lights)} light directions on a hemisphere seen from the camera"
    return _svg("".join(parts), summary, width=240, height=240, kind="compass")


def color_bar(
    scale: str,
    low: float,
    high: float,
    *,
    suffix: str = "",
    words: tuple[str, str] | None = None,
    per_pixel: float | None = None,
) -> Markup:
    """A horizontal color scale with round numbers, or words at its two ends.

    Lengths carry their number of pixels (``per_pixel`` is the size of one), so that the page can change their unit.
    """
    # With the scale's name: the bar of a depth map that another process renews meets no namesake in the page.
    identity = f"bar-{scale}-{next(_ids)}"
    stops = "".join(
        f'<stop offset="{offset:.3f}" stop-color="{color}"/>' for offset, color in gradient_stops(scale)
    )
    parts = [
        f'<defs><linearGradient id="{identity}">{stops}</linearGradient></defs>'
        f'<rect x="8" y="2" width="284" height="9" rx="4.5" fill="url(#{identity})"/>'
    ]
    if words is not None:
        parts.append(f'<text class="tick" x="8" y="25">{escape(words[0])}</text>')
        parts.append(f'<text class="tick" x="292" y="25" text-anchor="end">{escape(words[1])}</text>')
    elif high > low:
        across = _Scale(low, high, 8, 292)
        for tick in round_ticks(low, high, 5):
            x = across(tick)
            anchor = "start" if x < 20 else "end" if x > 280 else "middle"
            label = escape(short_number(tick) + suffix)
            length = "" if per_pixel is None else f' data-pixels="{tick / per_pixel:.9g}"'
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="25" text-anchor="{anchor}"{length}>{label}</text>'
            )
    summary = f"color scale from {short_number(low)}{suffix} to {short_number(high)}{suffix}"
    return _svg("".join(parts), summary, width=300, height=30, kind="color-bar")


def _whole_ticks(x: Sequence[float]) -> list[float]:
    ticks = round_ticks(min(x), max(x), 6)
    return [tick for tick in ticks if float(tick).is_integer()] or ticks


def _grid(
    across: _Scale,
    up: _Scale,
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    suffix: str,
    x_suffix: str = "",
) -> str:
    parts = []
    for tick in y_ticks:
        y = up(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        label = escape(short_number(tick) + suffix)
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for tick in x_ticks:
        label = escape(short_number(tick) + x_suffix)
        parts.append(
            f'<text class="tick" x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
            f"{label}</text>"
        )
    parts.append(f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    return "".join(parts)


def _axis_labels(x_label: str, y_label: str) -> str:
    middle = (LEFT + WIDTH - RIGHT) / 2
    return (
        f'<text class="axis-label" x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
        f'<text class="axis-label" x="-{(TOP + HEIGHT - BOTTOM) / 2}" y="11" transform="rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>'
    )


def _svg(body: str, summary: str, *, width: int = WIDTH, height: int = HEIGHT, kind: str = "plot") -> Markup:
    label: Any = escape(summary)
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{body}</svg>'
    )
