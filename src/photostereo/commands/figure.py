"""``photostereo figure``: results side by side, for a paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from photostereo.capture import load
from photostereo.commands.terminal import Terminal
from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.atomic import replacing_file
from photostereo.io.safe import read_npz
from photostereo.lab.paper.figure import Column, draw_figure
from photostereo.lab.paper.pictures import Box
from photostereo.lab.sweeps.store import Store
from photostereo.lab.sweeps.style import name_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import is_result, read_truth

#: Suffixes that a figure can have.
FORMATS = (".pdf", ".svg", ".png")
#: More columns than this are too small to see anything.
MOST = 12


def run(
    sources: Sequence[Path],
    out: Path,
    *,
    truth: Path | None,
    zooms: Sequence[str],
    lights: Sequence[str],
    methods: Sequence[str] | None,
    limit: float | None,
    width: float,
    force: bool,
    quiet: bool,
) -> None:
    """Gather, draw, write."""
    if out.suffix.lower() not in FORMATS:
        raise ParameterError(f"A figure is written as {', '.join(FORMATS)}; {out.name} is none of them.")
    boxes, directions = [parse_zoom(text) for text in zooms], [parse_light(text) for text in lights]
    columns: list[Column] = []
    reference: FloatArray | None = None
    for source in sources:
        found, known = columns_of(source, methods)
        columns += found
        reference = known if reference is None else reference
    if truth is not None:
        reference = truth_of(truth)
    if len(columns) > MOST:
        raise ParameterError(
            f"{len(columns)} results are too many for one figure (at most {MOST}). Choose some with --methods."
        )
    figure = draw_figure(
        told_apart(columns), truth=reference, zooms=boxes, lights=directions, limit=limit, width=width
    )
    from matplotlib import rc_context

    # Text as text, in fonts that journals accept (TrueType, not Type 3).
    with (
        rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "photostereo"}),
        replacing_file(out, force=force) as partial,
    ):
        dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {"Software": None}}
        figure.savefig(partial, dpi=300, metadata=dates[out.suffix.lower()], format=out.suffix.lower()[1:])
    Terminal(quiet=quiet).say(f"{len(columns)} results: {out}")


def columns_of(source: Path, methods: Sequence[str] | None) -> tuple[list[Column], FloatArray | None]:
    """The results in a folder of a solve, of a comparison or of a sweep, and the truth, if it is there too."""
    if (source / "results.sqlite").is_file():
        return _of_store(source, methods)
    if (source / "comparison.json").is_file():
        folders = [path.parent for path in sorted(source.glob("*/normals.npy")) if is_result(path.parent)]
    else:
        folders = [source]
    results = [Reconstruction.load(folder) for folder in folders]
    known = source / "truth" / "normals.npy"
    truth = read_truth(known, results[0].mask.shape) if results and known.is_file() else None
    chosen = [result for result in results if methods is None or result.method in methods]
    if not chosen:
        raise ParameterError(f"{source} has none of {', '.join(methods or ())}.")
    return [Column(name_of(r.method), r.normals, r.mask, r.albedo) for r in chosen], truth


def _of_store(source: Path, methods: Sequence[str] | None) -> tuple[list[Column], FloatArray | None]:
    """The trials of a sweep that have kept their maps."""
    store = Store(source)
    columns: list[Column] = []
    truth: FloatArray | None = None
    captures: set[str] = set()
    for key, row in store.rows().items():
        path = store.arrays_path(key)
        if not path.is_file() or (methods is not None and row["method"] not in methods):
            continue
        maps = read_npz(path, "maps of a trial", remedy="Remove the file; the run makes it again.")
        if "normals" not in maps:
            continue
        level = "" if row["corruption"] == "none" else f", {row['corruption']} {row['level']:g}"
        name = f"{name_of(row['method'])}{level}"
        columns.append(Column(name, maps["normals"], np.asarray(maps["mask"], dtype=bool)))
        truth = maps.get("truth", truth)
        captures.add(row["capture"])
    if not columns:
        raise CaptureError(
            f"No trial in {source} has kept its maps. A sweep keeps them where its plan says maps = true: add that line "
            "and run it again."
        )
    if len(captures) > 1:
        raise ParameterError(f"{source} has maps of several captures ({', '.join(sorted(captures))}).")
    return columns, truth


def truth_of(path: Path) -> FloatArray:
    """True normals from a capture that has them, an array, or a normal-map picture."""
    if path.suffix.lower() == ".npy":
        return read_truth(path)
    if path.suffix.lower() == ".png":
        from photostereo.results import read_normal_map

        return read_normal_map(path)[0]
    truth = load(path).truth
    if truth is None:
        raise CaptureError(
            f"{path} has no true normals. Leave --truth out: the figure then has no error maps."
        )
    return truth


def told_apart(columns: Sequence[Column]) -> list[Column]:
    """Columns of one name get numbers."""
    counts = Counter(column.name for column in columns)
    seen: Counter[str] = Counter()
    named = []
    for column in columns:
        seen[column.name] += 1
        many = counts[column.name] > 1
        named.append(replace(column, name=f"{column.name} ({seen[column.name]})") if many else column)
    return named


def parse_zoom(text: str) -> Box:
    """``x,y,w,h`` in pixels from the top left.

    >>> parse_zoom("10,20,30,40")
    (slice(20, 60, None), slice(10, 40, None))
    """
    try:
        x, y, w, h = (int(word) for word in text.split(","))
    except ValueError:
        x = y = w = h = -1
    if x < 0 or y < 0 or w < 2 or h < 2:
        raise ParameterError(
            f'"{text}" is not a close-up. Write --zoom x,y,w,h in pixels, for instance 120,80,60,60.'
        )
    return slice(y, y + h), slice(x, x + w)


def parse_light(text: str) -> tuple[float, float, float]:
    """``x,y,z``, a direction to the light.

    >>> parse_light("-1,1,1.5")
    (-1.0, 1.0, 1.5)
    """
    try:
        x, y, z = (float(word) for word in text.split(","))
    except ValueError:
        x = y = z = math.nan
    if not (math.isfinite(x + y + z) and z > 0):
        raise ParameterError(
            f'"{text}" is not a light. Write --relit x,y,z with z > 0, for instance -1,1,1.5.'
        )
    return x, y, z
