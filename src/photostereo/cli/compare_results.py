"""``photostereo compare RESULT RESULT ...``: existing results on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import photostereo as ps
from photostereo.cli.comparison_tables import results_table
from photostereo.cli.export import size_of_result
from photostereo.cli.terminal import Terminal
from photostereo.core.conventions import FloatArray
from photostereo.core.units import PixelSize
from photostereo.io.atomic import replacing_directory, write_array, write_json, write_text
from photostereo.io.names import folder_name
from photostereo.pipeline.comparison import numbered, truth_of
from photostereo.report.comparison import basis_of
from photostereo.solver.result_files import is_result, read_depth, read_summary


def compare_results(
    sources: Sequence[Path],
    out: Path | None,
    truth: Path | None,
    pixel_size: PixelSize,
    force: bool,
    terminal: Terminal,
) -> dict[str, Any]:
    """Write a folder with a page and the data from which the page can be served pixel by pixel."""
    from photostereo.report import write_comparison

    for source in sources:
        if not is_result(source):
            raise ps.ParameterError(code="not-a-result", file=source)
    if len(sources) < 2:
        raise ps.ParameterError(code="one-result", file=sources[0])
    names = numbered(
        [source.resolve().name if source.name in ("", "..") else source.name for source in sources]
    )
    results = [ps.Reconstruction.load(source) for source in sources]
    known = None if truth is None else truth_of(truth)
    # Page and server cut their tiles around the same pixels: those that are valid in all results.
    mask = basis_of(results, None, known).mask
    results = [replace(result, mask=mask) for result in results]
    sizes = {size_of_result(source) for source in sources}
    size = sizes.pop() if not pixel_size.known and len(sizes) == 1 else pixel_size
    expected = [read_summary(source).get("expected_error") for source in sources]
    rows = _rows(names, results, expected, results[0].normals if known is None else known)
    table = results_table(rows, None if known is not None else names[0])
    target = out or Path(f"{folder_name(names[0])}-compare")
    folders = [f"{number}-{folder_name(name)}" for number, name in enumerate(names, 1)]
    depths = [read_depth(source, mask.shape) for source in sources]
    with replacing_directory(target, force=force, keep=sources) as folder:
        for name, result, depth, expects in zip(folders, results, depths, expected, strict=True):
            (folder / name).mkdir()
            result.save(folder / name)
            if expects is not None:
                summary = {**result.summary(), "expected_error": expects}
                write_json(folder / name / "summary.json", summary)
            if depth is not None:
                write_array(folder / name / "depth.npy", depth)
        if known is not None:
            write_array(folder / "truth" / "normals.npy", known.astype(np.float32))
            write_array(folder / "truth" / "mask.npy", mask)
        write_text(folder / "comparison.tex", table.latex("comparison"))
        write_comparison(
            folder / "report.html",
            results,
            None,
            labels=names,
            truth=known,
            depths=depths,
            files={f"{name}/summary.json": f"{name}/summary.json" for name in folders},
            folders=folders,
            expected=[row["expected"] for row in rows],
            pixel_size=size,
        )
    terminal.table(None, table.header, table.rows)
    terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")
    against = "truth" if known is not None else names[0]
    return {"out": str(target.absolute()), "against": against, "results": rows}


def _rows(
    names: Sequence[str],
    results: Sequence[ps.Reconstruction],
    expected: Sequence[dict[str, Any] | None],
    against: FloatArray,
) -> list[dict[str, Any]]:
    """Return angles to the truth or to the first result, and expected errors, in degrees; all share one mask."""
    rows = []
    for name, result, expects in zip(names, results, expected, strict=True):
        angle = ps.angular_error(result.normals, against, result.mask)[result.mask]
        mean, median, high = float(angle.mean()), float(np.median(angle)), float(np.percentile(angle, 90))
        row = {"name": name, "method": result.method, "mean": mean, "median": median, "p90": high}
        expects = expects or {"degrees": None, "grade": None}
        rows.append(row | {"expected": expects["degrees"], "grade": expects["grade"]})
    return rows
