"""Display in notebooks: captures and results, the viewer in a cell, progress.

An object is shown as panels (pictures with titles) and facts (a small table). To show another class, register a
:func:`contents` for it.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.display import Displayed
from photostereo.core.errors import MissingDependencyError
from photostereo.diagnosis.diagnose import Diagnosis
from photostereo.diagnosis.expected_error import expected_error
from photostereo.io.safe import read_text
from photostereo.report import pictures, wording
from photostereo.report.document import templates
from photostereo.report.page import prepare_report
from photostereo.report.pictures import paint
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import solve
from photostereo.surface import Surface

#: Maximum number of pixels of a picture in a cell, and of photographs shown.
PIXELS, PHOTOGRAPHS = 60_000, 6
#: Light of the relit panel: from the upper left.
LIGHT = (-0.5, 0.6, 0.8)
#: Minimum time between updates of a display, in seconds.
RENEWED = 0.2

Panel = tuple[str, NDArray[np.uint8]]
Facts = list[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Comparison(Displayed):
    """Results of several methods on one capture, in the requested order."""

    capture: Capture
    results: tuple[Reconstruction, ...]

    def __getitem__(self, method: str) -> Reconstruction:
        return next(result for result in self.results if result.method == method)


def compare(capture: Capture, methods: Sequence[str], *, control: Control = SILENT) -> Comparison:
    """Solve a capture with several methods.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    methods : sequence of str
        Names of methods.
    control : Control
        Receives progress and can cancel.

    Examples
    --------
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> comparison = ps.compare(owl(25.0, step=8), ["ls", "l1"])
    >>> comparison["l1"].method
    'l1'
    """
    return Comparison(capture, tuple(solve(capture, method, control=control) for method in methods))


@singledispatch
def contents(shown: Any) -> tuple[str, list[Panel], Facts]:
    """Return the name, the pictures (RGB or RGBA) and the table of facts of an object."""
    raise TypeError(f"{type(shown).__name__} has no pictures")


@contents.register
def _(capture: Capture) -> tuple[str, list[Panel], Facts]:
    frame = pictures.frame_around(capture.mask, max_pixels=PIXELS)
    chosen = np.unique(np.linspace(0, len(capture) - 1, min(len(capture), PHOTOGRAPHS)).astype(int))
    rows = (frame.rows.start, frame.rows.stop)
    shown = [
        capture.photographs.rows(*rows, slice(n, n + 1))[0][:, frame.cols] for n in chosen.tolist()
    ]
    white = max(float(np.percentile(np.stack(shown), 99.3)), 1e-9)
    small = [pictures.resize(picture / white, frame.height, frame.width) for picture in shown]
    panels = [
        (f"photograph {i + 1}", pictures.to_srgb(one)) for i, one in zip(chosen, small, strict=True)
    ]
    height, width = capture.frame
    facts = [
        (
            "photographs",
            f"{len(capture)}, {width} × {height}, {'RGB' if capture.is_color else 'gray'}",
        ),
        ("object", f"{wording.thousands(capture.pixel_count)} pixels"),
        ("lights", capture.lights.describe() if capture.lights.known else "not known"),
        ("truth", "known" if capture.truth is not None else "not known"),
    ]
    return capture.name, panels, facts


@contents.register
def _(result: Reconstruction) -> tuple[str, list[Panel], Facts]:
    frame = pictures.frame_around(result.mask, max_pixels=PIXELS)
    normals, known = pictures.shrink_normals(result.normals, result.mask, frame)
    albedo, inside = pictures.albedo_picture(result.albedo, result.mask, frame)
    relit = pictures.resize(frame.cut(result.relight(LIGHT)), frame.height, frame.width)
    panels: list[Panel] = [
        ("normals", pictures.normals_picture(normals, known)),
        ("albedo", pictures.with_alpha(albedo, inside)),
        ("relit", pictures.with_alpha(np.rint(255 * relit).astype(np.uint8), inside)),
    ]
    if "spread" in result.maps:
        spread = pictures.shrink_map(result.maps["spread"], result.mask, frame)
        panels.append(("expected error", paint(spread, 0, pictures.ERROR_TOP, "ember").rgba))
    facts = [("method", result.method), ("status", wording.status_words(result))]
    if (expected := expected_error(result)) is not None:
        facts.append(("expected error", expected.words))
    if result.angular_error is not None:
        facts.append(("angular error", f"mean {result.angular_error.mean:.2f}°"))
    return (
        result.capture,
        panels,
        [*facts, ("time", wording.duration(sum(result.seconds.values())))],
    )


@contents.register
def _(surface: Surface) -> tuple[str, list[Panel], Facts]:
    frame = pictures.frame_around(surface.mask, max_pixels=PIXELS)
    depth = pictures.shrink_map(surface.depth, surface.mask, frame)
    low, high = surface.depth_range
    facts = [
        ("method", f"{surface.method}, {surface.status}"),
        ("heights", f"{high - low:.4g} pixels from the lowest to the highest point"),
        ("parts, cut links", f"{surface.parts}, {surface.tears}"),
    ]
    return "", [("depth", paint(depth, low, high, "depth").rgba)], facts


@contents.register
def _(diagnosis: Diagnosis) -> tuple[str, list[Panel], Facts]:
    mask = diagnosis.dark_count >= 0
    frame = pictures.frame_around(mask, max_pixels=PIXELS)
    dark = pictures.shrink_map(diagnosis.dark_count.astype(np.float32), mask, frame)
    residual = pictures.shrink_map(diagnosis.residual, mask, frame)
    panels = [
        ("photographs in shadow", paint(dark, 0, float(diagnosis.photographs), "ember").rgba),
        ("not explained by a matte surface", paint(residual, 0, 0.5, "ember").rgba),
    ]
    words = {"problem": "Problem", "notice": "Note", "good": "Good"}
    return "", panels, [(words[finding.severity], str(finding)) for finding in diagnosis.findings]


@contents.register
def _(comparison: Comparison) -> tuple[str, list[Panel], Facts]:
    panels = []
    facts = []
    for result in comparison.results:
        _, pictured, said = contents(result)
        panels.append((result.method, pictured[0][1]))
        facts.append((result.method, ", ".join(f"{name} {value}" for name, value in said[1:])))
    return "", panels, facts


def as_html(shown: Any) -> str:
    """Render an object as HTML for a notebook cell."""
    name, panels, facts = contents(shown)
    addresses = [(title, pictures.webp(picture)) for title, picture in panels]
    template = templates().get_template("cell.html")
    return template.render(kind=type(shown).__name__, name=name, panels=addresses, facts=facts)


def plot(shown: Any) -> Any:
    """Draw the pictures of an object side by side in a matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise MissingDependencyError(
            'Plots need matplotlib: pip install "photostereo[figures]"',
            code="needs-matplotlib",
        ) from problem

    class Picture(Figure):
        """A figure that a notebook shows even if pyplot was never imported."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    _, found, _ = contents(shown)
    figure = Picture(figsize=(3.2 * len(found), 3.4), layout="constrained")
    for axes, (title, picture) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found, strict=True
    ):
        axes.imshow(picture, cmap="gray")
        axes.set_title(title)
        axes.set_axis_off()
    return figure


@dataclass(frozen=True)
class Viewer:
    """The viewer of a result in a notebook cell; see :func:`view`."""

    page: str
    height: int

    def _repr_html_(self) -> str:
        embedded = self.page.replace('<html lang="en">', '<html lang="en" class="embed">', 1)
        return (
            f'<iframe srcdoc="{escape(embedded)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{self.height}px;border:0" allowfullscreen></iframe>'
        )


def view(
    result: Reconstruction | str | Path,
    capture: Capture | None = None,
    surface: Surface | None = None,
    *,
    height: int = 560,
) -> Viewer:
    """Return the interactive viewer of a result, for display in a notebook.

    Parameters
    ----------
    result : Reconstruction or path
        The result, or a result folder, whose ``report.html`` is shown.
    capture : Capture, optional
        Adds the photographs.
    surface : Surface, optional
        Adds heights.
    height : int
        Height of the cell, in pixels.

    Examples
    --------
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> result = ps.solve(owl(25.0, step=8), "ls")
    >>> ps.view(result)._repr_html_().startswith("<iframe srcdoc=")
    True
    """
    if isinstance(result, Reconstruction):
        depth = None if surface is None else surface.depth
        return Viewer(prepare_report(result, capture, depth=depth).text, height)
    page = Path(result) / "report.html"
    return Viewer(read_text(page, "report", remedy="Give the folder of a result."), height)


class Progress(Control):
    """A progress bar in notebooks; elsewhere, a line on standard error.

    Examples
    --------
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> result = ps.solve(owl(25.0, step=8), "ls", control=ps.Progress())
    """

    def __init__(self) -> None:
        self._name = ""
        self._done = 0
        self._total = 0
        self._shown: Any = None
        self._last = 0.0

    def on_stage(self, name: str, total: int | None) -> None:
        self._name = name
        self._done = 0
        self._total = total or 0
        self._show()

    def on_advance(self, steps: int) -> None:
        self._done += steps
        if time.monotonic() - self._last > RENEWED:
            self._show()

    def finish(self) -> None:
        super().finish()
        self._name = f"done, {wording.duration(sum(self.seconds.values()))}"
        self._done = 1
        self._total = 1
        self._show()

    def _show(self) -> None:
        self._last = time.monotonic()
        if (shell := _notebook_shell()) is None:
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{self._name} {self._done}/{self._total or '?'}\033[K")
            return
        share = f'value="{self._done}" max="{self._total}"' if self._total else ""
        bar = {
            "text/html": f"<progress {share}></progress> {escape(self._name)}",
            "text/plain": self._name,
        }
        if self._shown is None:
            display = import_module("IPython.display").display
            self._shown = display(bar, raw=True, display_id=True)
            shell.events.register("post_run_cell", self._end_of_cell)
        else:
            self._shown.update(bar, raw=True)

    def _end_of_cell(self, *_: Any) -> None:
        if (shell := _notebook_shell()) is not None:
            shell.events.unregister("post_run_cell", self._end_of_cell)
        self.finish()


def _notebook_shell() -> Any:
    """Return the shell of the current notebook; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "kernel") else None
