"""Plots: errors along an axis, bars per object, histories of a solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from photostereo.core.errors import require_extra
from photostereo_lab.sweeps.outputs import (
    PROTOCOLS,
    CellResult,
    Protocol,
    average_over_objects,
    color_of,
    look_of,
    name_of,
)
from photostereo_lab.sweeps.plan import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A marked value printed in the paper: label → (x, degrees).
PaperPoints = Mapping[str, tuple[float, float]]


def draw_curves(
    results: Sequence[CellResult],
    axis: Callable[[Cell], float | None],
    axis_label: str,
    *,
    title: str,
    paper: PaperPoints | None = None,
    log: bool = False,
    panels: Sequence[str] | None = None,
) -> Figure:
    """Plot the mean angular error along an axis, one line per method, with error bars over trials; oracle and defaults
    are in separate panels.

    ``axis`` returns a cell's position, or None if it has none. Each capture in ``panels`` has a row
    of panels; by default, their average has one. Values printed in the paper are crosses in the
    oracle's panel.
    """
    rows: Sequence[str | None] = panels or [None]
    figure = new_figure(10, 3.6 * len(rows) + 0.4)
    axes = figure.subplots(len(rows), 2, squeeze=False, sharex=True, sharey="row")
    for capture, pair in zip(rows, axes, strict=True):
        chosen = [r for r in results if capture is None or r.cell.capture.name == capture]
        for protocol, panel in zip(PROTOCOLS, pair, strict=True):
            _draw_panel(panel, chosen, axis, protocol)
            panel.set_title(
                f"{capture}: {PROTOCOLS[protocol]}" if capture else PROTOCOLS[protocol], fontsize=10
            )
            panel.set_xlabel(axis_label)
            panel.grid(alpha=0.3)
            if log:
                _log_axis(panel, chosen, axis)
        if paper:
            _draw_paper(pair[0], paper)
        pair[0].set_ylabel("mean angular error (degrees)")
    _legend_below(figure, axes[0, 1])
    figure.suptitle(title, fontsize=11)
    return figure


def _legend_below(figure: Figure, panel: Axes) -> None:
    """Draw the legend from the panel of the defaults, which alone has methods without a grid, below the panels."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, fontsize=8, ncols=min(9, max(1, len(labels))), loc="outside lower center"
    )


def _draw_panel(
    panel: Axes,
    results: Sequence[CellResult],
    axis: Callable[[Cell], float | None],
    protocol: Protocol,
) -> None:
    labels = list(dict.fromkeys(result.cell.label for result in results))
    for number, label in enumerate(labels):
        own = [result for result in results if result.cell.label == label]
        places = sorted({place for result in own if (place := axis(result.cell)) is not None})
        points = []
        for place in places:
            there = [result for result in own if axis(result.cell) == place]
            # First average over the objects within each seed; with one object, that changes
            # nothing.
            figure = average_over_objects(there, protocol)
            if figure.count:
                points.append((place, figure.mean, figure.spread))
        if points:
            x, y, spread = zip(*points, strict=True)
            panel.errorbar(
                x, y, yerr=spread, label=name_of(label), color=color_of(label, number),
                marker=look_of(label).marker, markersize=4, linewidth=1.4, capsize=2,
            )  # fmt: skip


def _draw_paper(panel: Axes, paper: PaperPoints) -> None:
    for number, (label, (x, y)) in enumerate(paper.items()):
        panel.plot([x], [y], "+", markersize=11, markeredgewidth=2, color=color_of(label, number))
    from matplotlib.lines import Line2D

    cross = Line2D(
        [], [], color="black", marker="+", markersize=9, markeredgewidth=2, linestyle="none"
    )
    panel.legend([cross], ["the paper's value"], fontsize=8)


def _log_axis(
    panel: Axes, results: Sequence[CellResult], axis: Callable[[Cell], float | None]
) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    places = sorted({place for result in results if (place := axis(result.cell)) is not None})
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(places))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(ScalarFormatter())


def draw_bars(
    groups: Sequence[str],
    values: Mapping[Protocol, Mapping[str, Sequence[float]]],
    paper: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    unit: str,
    beside: Protocol = "oracle",
    log: bool = False,
) -> Figure:
    """Plot bars per group and method, one panel per protocol; black ticks in the panel ``beside`` are the paper's
    values.
    """
    figure = new_figure(11, 3.2 * len(values) + 0.4)
    axes = figure.subplots(len(values), 1, squeeze=False, sharex=True)[:, 0]
    for panel, (protocol, series) in zip(axes, values.items(), strict=True):
        width = 0.84 / max(1, len(series))
        for number, (label, heights) in enumerate(series.items()):
            places = [
                group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))
            ]
            panel.bar(
                places, heights, width * 0.92, color=color_of(label, number), label=name_of(label)
            )
            for place, value in zip(places, paper.get(label, ()), strict=False):
                if value is not None and protocol == beside:
                    panel.plot(
                        [place - width / 2, place + width / 2],
                        [value, value],
                        color="black",
                        linewidth=1.6,
                    )
        panel.set_title(
            PROTOCOLS[protocol] + ("; black: the paper" if protocol == beside else ""), fontsize=10
        )
        panel.set_ylabel(unit)
        panel.set_xticks(range(len(groups)), groups)
        panel.grid(axis="y", alpha=0.3)
        if log:
            panel.set_yscale("log")
    _legend_below(figure, axes[-1])
    figure.suptitle(title, fontsize=11)
    return figure


def draw_lines(
    panels: Sequence[tuple[str, str, str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]],
    *,
    title: str,
    **style: Any,
) -> Figure:
    """Plot panels of plain lines: each panel is (title, x label, y label, {label: (x, y)})."""
    figure = new_figure(max(5.4, 3.7 * len(panels)), 3.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, (heading, x_label, y_label, lines) in zip(axes, panels, strict=True):
        for place, (label, (x, y)) in enumerate(lines.items()):
            panel.plot(
                x, y, label=label, color=_shade(place, len(lines)), **{"linewidth": 1.5, **style}
            )
        panel.set_title(heading, fontsize=10)
        panel.set_xlabel(x_label)
        panel.set_ylabel(y_label)
        panel.grid(alpha=0.3)
        if len(lines) > 1:
            panel.legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _shade(number: int, count: int) -> Any:
    import matplotlib

    return matplotlib.colormaps["viridis"](0.85 * number / max(1, count - 1))


def new_figure(width: float, height: float) -> Figure:
    """Create a figure without global state, so that drawing needs no display and leaves nothing behind."""
    require_extra("matplotlib", "figures", "Figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
