"""``photostereo figure``: results side by side, for a paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from photostereo.cli.command import REQUIRED, argument, option
from photostereo.cli.options import names, numbers
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError, require_extra

#: Suffixes of figures, and the metadata field of each (date or program) that would make two equal
#: figures differ.
FORMATS = {".pdf": "CreationDate", ".svg": "Date", ".png": "Software"}
#: More columns than this are too small to see anything.
MOST = 12


def figure(
    terminal: Terminal,
    sources: list[Path] = argument("Results of solve, compare or sweep.", "RESULT..."),
    out: Path = option(
        "A .pdf, .svg or .png file.", metavar="FIG", flags="--out -o", default=REQUIRED
    ),
    truth: Path | None = option(
        "A capture with truth, or true normals as .npy or .png: adds error maps."
    ),
    zoom: list[str] | None = option("Add a close-up; can be repeated.", metavar="X,Y,W,H"),
    relit: list[str] | None = option(
        "Add a row lit from this direction; can be repeated.", metavar="X,Y,Z"
    ),
    methods: str | None = option("Comma-separated methods to show (default: all)."),
    limit: float | None = option("Upper limit of the color scale, in degrees.", min=0.1),
    width: float = option("Width in inches.", min=1.0, max=40.0, default=7.16),
    force: bool = False,
) -> dict[str, Any]:
    """Draw results side by side for a paper: normals, close-ups, errors, relit views."""
    suffix = out.suffix.lower()
    if suffix not in FORMATS:
        raise ParameterError(
            f"A figure is written as {', '.join(FORMATS)}, not as {out.name}.",
            code="figure-format",
            file=out,
        )
    boxes = [parse_zoom(text) for text in zoom or []]
    directions = [parse_light(text) for text in relit or []]
    require_extra("matplotlib", "figures", "Figures")
    from matplotlib import rc_context

    from photostereo.io.atomic import replacing_file
    from photostereo.pipeline.comparison import numbered, truth_of
    from photostereo_lab.paper.figure import draw_figure
    from photostereo_lab.paper.gather import columns_of

    # An existing file is reported before the work starts.
    with replacing_file(out, force=force) as partial:
        columns = []
        reference = None if truth is None else truth_of(truth)
        for source in sources:
            part, part_truth = columns_of(source, names(methods))
            columns += part
            if reference is None:
                reference = part_truth
        if len(columns) > MOST:
            raise ParameterError(
                f"{len(columns)} results are too many for one figure (at most {MOST}). Choose some "
                "with --methods.",
                code="too-many-results",
                found=len(columns),
            )
        titles = numbered([column.name for column in columns])
        columns = [
            replace(column, name=title) for column, title in zip(columns, titles, strict=True)
        ]
        sheet = draw_figure(
            columns,
            truth=reference,
            zooms=boxes,
            lights=directions,
            limit=limit,
            width=width,
        )
        # Text as text, in fonts that journals accept (TrueType, not Type 3).
        fonts = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "photostereo"}
        with rc_context(fonts):
            sheet.savefig(partial, dpi=300, metadata={FORMATS[suffix]: None}, format=suffix[1:])
    terminal.say(f"{len(columns)} results: {out}")
    return {"out": str(out.absolute()), "results": titles}


def parse_zoom(text: str) -> tuple[slice, slice]:
    """Parse ``x,y,w,h`` in pixels from the top left.

    >>> parse_zoom("10,20,30,40")
    (slice(20, 60, None), slice(10, 40, None))
    """
    x, y, w, h = (int(value) for value in numbers(text, 4, "--zoom", whole=True) or ())
    if min(x, y) < 0 or min(w, h) < 2:
        raise ParameterError(
            f'"{text}" is not a close-up: expected x,y,w,h in pixels, for example 120,80,60,60.',
            code="not-a-zoom",
        )
    return slice(y, y + h), slice(x, x + w)


def parse_light(text: str) -> tuple[float, ...]:
    """Parse ``x,y,z``, a direction to the light.

    >>> parse_light("-1,1,1.5")
    (-1.0, 1.0, 1.5)
    """
    light = numbers(text, 3, "--relit") or ()
    if not light[2] > 0:
        raise ParameterError(
            f'"{text}" is not a light: expected x,y,z with z > 0, for example -1,1,1.5.',
            code="not-a-light",
        )
    return light
