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
    unique,
)
from photostereo_lab.sweeps.plan import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A marked value printed in the paper: label → (x, degrees).
PaperPoints = Mapping[str, tuple[float, float]]
#: The position of a cell on an axis, or None if it has none.
Axis = Callable[[Cell], float | None]
#: A panel of plain lines: title, x label, y label, and the lines, label → (x, y).
LinesPanel = tuple[str, str, str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]


def draw_curves(
    results: Sequence[CellResult],
    axis: Axis,
    axis_label: str,
    *,
    title: str,
    paper: PaperPoints | None = None,
    log: bool = False,
    panels: Sequence[str] | None = None,
) -> Figure:
    """Plot the mean angular error along an axis, one line per method.

    Error bars are over trials; oracle and defaults are in separate panels.

    Parameters
    ----------
    results : sequence of CellResult
        The cells.
    axis : function
        Returns a cell's position, or None if it has none.
    axis_label : str
        Its label.
    title : str
        Title of the figure.
    paper : mapping, optional
        Values printed in the paper, label → (x, degrees): crosses in the oracle's panel.
    log : bool
        Use a logarithmic axis.
    panels : sequence of str, optional
        Captures, each with a row of panels; by default, their average has one.
    """
    rows: Sequence[str | None] = panels or [None]
    figure = new_figure(10, 3.6 * len(rows) + 0.4)
    axes = figure.subplots(len(rows), 2, squeeze=False, sharex=True, sharey="row")
    for capture, pair in zip(rows, axes, strict=True):
        chosen = [
            result for result in results if capture is None or result.cell.capture.name == capture
        ]
        for protocol, panel in zip(PROTOCOLS, pair, strict=True):
            _draw_panel(panel, chosen, axis, protocol)
            heading = PROTOCOLS[protocol]
            if capture:
                heading = f"{capture}: {heading}"
            panel.set_title(heading, fontsize=10)
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
    """Draw the legend below the panels.

    It is that of the defaults' panel, which alone has methods without a grid.
    """
    handles, labels = panel.get_legend_handles_labels()
    columns = min(9, max(1, len(labels)))
    figure.legend(handles, labels, fontsize=8, ncols=columns, loc="outside lower center")


def _draw_panel(
    panel: Axes,
    results: Sequence[CellResult],
    axis: Axis,
    protocol: Protocol,
) -> None:
    """Draw the lines of all methods."""
    labels = unique(result.cell.label for result in results)
    for number, label in enumerate(labels):
        of_method = [result for result in results if result.cell.label == label]
        points = []
        for place in _places(of_method, axis):
            here = [result for result in of_method if axis(result.cell) == place]
            # First average over the objects within each seed; with one object, that changes
            # nothing.
            figure = average_over_objects(here, protocol)
            if figure.count:
                points.append((place, figure.mean, figure.spread))
        if points:
            x, y, spread = zip(*points, strict=True)
            panel.errorbar(
                x,
                y,
                yerr=spread,
                label=name_of(label),
                color=color_of(label, number),
                marker=look_of(label).marker,
                markersize=4,
                linewidth=1.4,
                capsize=2,
            )


def _places(results: Sequence[CellResult], axis: Axis) -> list[float]:
    """Return the positions of cells on an axis, in order."""
    places = {axis(result.cell) for result in results}
    return sorted(place for place in places if place is not None)


def _draw_paper(panel: Axes, paper: PaperPoints) -> None:
    """Mark the values printed in the paper."""
    for number, (label, (x, y)) in enumerate(paper.items()):
        panel.plot([x], [y], "+", markersize=11, markeredgewidth=2, color=color_of(label, number))
    from matplotlib.lines import Line2D

    cross = Line2D(
        [], [], color="black", marker="+", markersize=9, markeredgewidth=2, linestyle="none"
    )
    panel.legend([cross], ["the paper's value"], fontsize=8)


def _log_axis(panel: Axes, results: Sequence[CellResult], axis: Axis) -> None:
    """Make the axis logarithmic, with a tick at every position."""
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(_places(results, axis)))
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
    """Plot bars per group and method, one panel per protocol.

    Parameters
    ----------
    groups : sequence of str
        Names of the groups.
    values : mapping
        Protocol → label → the height of the bar in each group.
    paper : mapping
        Label → the paper's value in each group, or None: a black tick.
    title, unit : str
        Title of the figure, and label of the heights.
    beside : {"oracle", "defaults"}
        The panel with the paper's values.
    log : bool
        Use a logarithmic scale.
    """
    figure = new_figure(11, 3.2 * len(values) + 0.4)
    axes = figure.subplots(len(values), 1, squeeze=False, sharex=True)[:, 0]
    for panel, (protocol, series) in zip(axes, values.items(), strict=True):
        width = 0.84 / max(1, len(series))
        for number, (label, heights) in enumerate(series.items()):
            offset = (number - (len(series) - 1) / 2) * width
            places = [group + offset for group in range(len(groups))]
            color = color_of(label, number)
            panel.bar(places, heights, width * 0.92, color=color, label=name_of(label))
            if protocol != beside:
                continue
            for place, value in zip(places, paper.get(label, ()), strict=False):
                if value is not None:
                    tick = [place - width / 2, place + width / 2]
                    panel.plot(tick, [value, value], color="black", linewidth=1.6)
        heading = PROTOCOLS[protocol]
        if protocol == beside:
            heading += "; black: the paper"
        panel.set_title(heading, fontsize=10)
        panel.set_ylabel(unit)
        panel.set_xticks(range(len(groups)), groups)
        panel.grid(axis="y", alpha=0.3)
        if log:
            panel.set_yscale("log")
    _legend_below(figure, axes[-1])
    figure.suptitle(title, fontsize=11)
    return figure


def draw_lines(panels: Sequence[LinesPanel], *, title: str, **style: Any) -> Figure:
    """Plot panels of plain lines, side by side; ``style`` is that of matplotlib's lines."""
    figure = new_figure(max(5.4, 3.7 * len(panels)), 3.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    style = {"linewidth": 1.5, **style}
    for panel, (heading, x_label, y_label, lines) in zip(axes, panels, strict=True):
        for number, (label, (x, y)) in enumerate(lines.items()):
            panel.plot(x, y, label=label, color=_shade(number, len(lines)), **style)
        panel.set_title(heading, fontsize=10)
        panel.set_xlabel(x_label)
        panel.set_ylabel(y_label)
        panel.grid(alpha=0.3)
        if len(lines) > 1:
            panel.legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _shade(number: int, count: int) -> Any:
    """Return one of several colors that differ in lightness."""
    import matplotlib

    return matplotlib.colormaps["viridis"](0.85 * number / max(1, count - 1))


def new_figure(width: float, height: float) -> Figure:
    """Create a figure without global state: drawing needs no display and leaves nothing behind."""
    require_extra("matplotlib", "figures", "Figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
