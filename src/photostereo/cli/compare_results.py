"""``photostereo compare RESULT RESULT ...``: existing results on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.cli.export import size_of_result
from photostereo.cli.terminal import Terminal
from photostereo.core.conventions import FloatArray
from photostereo.core.errors import ParameterError
from photostereo.core.units import PixelSize
from photostereo.diagnosis.metrics import angular_error
from photostereo.io.atomic import replacing_directory, write_array, write_json, write_text
from photostereo.io.names import folder_name
from photostereo.io.tables import Table
from photostereo.pipeline.comparison import numbered, truth_of
from photostereo.report.compared import basis_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import is_result, read_depth, read_summary


def compare_results(
    sources: Sequence[Path],
    out: Path | None,
    truth: Path | None,
    pixel_size: PixelSize,
    force: bool,
    terminal: Terminal,
) -> dict[str, Any]:
    """Write a folder with a page, and beside it what the page needs to be served pixel by pixel."""
    from photostereo.report import write_comparison

    strangers = [str(source) for source in sources if not is_result(source)]
    if strangers:
        raise ParameterError(code="not-a-result", file=strangers[0])
    if len(sources) < 2:
        raise ParameterError(code="one-result", file=sources[0])
    names = numbered(
        [source.resolve().name if source.name in ("", "..") else source.name for source in sources]
    )
    results = [Reconstruction.load(source) for source in sources]
    known = None if truth is None else truth_of(truth)
    # Page and server cut their tiles around the same pixels: those that all results know.
    mask = basis_of(results, None, known).mask
    results = [replace(result, mask=mask) for result in results]
    sizes = {size_of_result(source) for source in sources}
    size = sizes.pop() if not pixel_size.known and len(sizes) == 1 else pixel_size
    expected = [read_summary(source).get("expected_error") for source in sources]
    rows = angles_of(names, results, known)
    for row, words in zip(rows, expected, strict=True):
        row |= {"expected": words and words["degrees"], "grade": words and words["grade"]}
    table = results_table(rows, None if known is not None else names[0])
    target = out or Path(f"{folder_name(names[0])}-compare")
    with replacing_directory(target, force=force, keep=sources) as folder:
        folders, depths = [], []
        for number, (source, result) in enumerate(zip(sources, results, strict=True)):
            folders.append(f"{number + 1}-{folder_name(names[number])}")
            (folder / folders[-1]).mkdir()
            result.save(folder / folders[-1])
            if expected[number] is not None:
                summary = {**result.summary(), "expected_error": expected[number]}
                write_json(folder / folders[-1] / "summary.json", summary)
            depths.append(read_depth(source, mask.shape))
            if depths[-1] is not None:
                write_array(folder / folders[-1] / "depth.npy", depths[-1])
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
    return {
        "out": str(target.absolute()),
        "against": "truth" if known is not None else names[0],
        "results": rows,
    }


def results_table(rows: Sequence[dict[str, Any]], first: str | None) -> Table:
    """Angles to the truth, the lowest in bold, or to the ``first`` result; and what each result expects of itself."""
    header = ["result", "method", "mean error" if first is None else f"mean angle to {first}"]
    header += ["median", "90 % below", "expected error"]
    lines = []
    for row in rows:
        angles = [f"{row[key]:.2f}°" for key in ("mean", "median", "p90")]
        expected = "" if row["expected"] is None else f"{row['expected']:.1f}°, {row['grade']}"
        lines.append([row["name"], row["method"], *angles, expected])
    means = [row["mean"] for row in rows]
    best = [(means.index(min(means)), 2)] if first is None else []
    return Table("Results compared", header, lines, best=best)


def angles_of(
    names: Sequence[str], results: Sequence[Reconstruction], truth: FloatArray | None
) -> list[dict[str, Any]]:
    """Angles to the truth or, without it, to the first result, in degrees; all have one mask."""
    mask = results[0].mask
    against = results[0].normals if truth is None else truth
    rows = []
    for name, result in zip(names, results, strict=True):
        angle = angular_error(result.normals, against, mask)[mask]
        mean, median, high = float(angle.mean()), float(np.median(angle)), float(np.percentile(angle, 90))
        rows.append({"name": name, "method": result.method, "mean": mean, "median": median, "p90": high})
    return rows
