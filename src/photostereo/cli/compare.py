"""``photostereo compare``: several methods on one capture, or existing results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import photostereo as ps
from photostereo.cli.command import METHOD, option
from photostereo.cli.options import Reading, complete_method, names, parse_parameters
from photostereo.cli.terminal import Terminal
from photostereo.io.tables import Table

if TYPE_CHECKING:
    from photostereo.core.units import PixelSize

#: A row of figures per method or result.
Rows = Sequence[Mapping[str, Any]]


def complete_methods(incomplete: str) -> list[str]:
    """Complete ``--methods <TAB>`` after the last comma; a method is not offered twice."""
    given, comma, last = incomplete.rpartition(",")
    return [given + comma + name for name in complete_method(last) if name not in given.split(",")]


def compare(
    terminal: Terminal,
    reading: Reading,
    sources: list[Path],
    methods: str | None = option(
        "Comma-separated names (default: all methods).", METHOD, autocompletion=complete_methods
    ),
    parameters: list[str] | None = None,
    images: int | None = None,
    seed: int = 0,
    truth: Path | None = None,
    out: Path | None = None,
    meshes: bool = False,
    report: bool = True,
    pixel_size: str | None = None,
    device: str = "cpu",
    force: bool = False,
) -> dict[str, Any]:
    """Compare several methods on one capture, or existing results: a table, pictures and a page."""
    from photostereo.cli.state import report_state
    from photostereo.core.units import PixelSize
    from photostereo.io.atomic import write_text
    from photostereo.io.names import folder_name
    from photostereo.pipeline import comparison
    from photostereo.results import SurfaceChoice
    from photostereo.solver.result_files import is_result

    size = PixelSize.of(pixel_size)
    if len(sources) > 1 or is_result(sources[0]):
        if methods is not None or parameters:
            raise ps.ParameterError(
                "--methods and --set apply to a capture, not to existing results.", code="not-for-results"
            )
        return compare_results(sources, out, truth, size, force, terminal)
    if truth is not None:
        raise ps.ParameterError(
            "--truth applies to existing results; a capture contains its own.", code="not-for-captures"
        )
    of_each = parameters_by_method(parse_parameters(parameters), names(methods))
    surface = SurfaceChoice(pixel_size=size, formats=("ply", "glb") if meshes else ())
    pipeline = ps.Pipeline(
        sources[0],
        control=terminal,
        reading=reading.options(),
        images=images,
        seed=seed,
        device=device,
        surface=surface if meshes or report else None,
        report=False,
    )
    if any(ps.find_method(name).sees_colors for name in of_each):
        pipeline.configure(color=True)
    out = out or Path(f"{folder_name(pipeline.found.name)}-compare")
    with pipeline.writing(out, force=force) as (folder, target):
        capture = pipeline.loaded
        report_state(terminal, pipeline)
        results, depths, rows = comparison.solve_each(pipeline, folder, of_each, terminal.say)
        table = comparison_table(rows)
        write_text(folder / "comparison.tex", table.latex("comparison"))
        if report:
            terminal.stage("report")
            comparison.write_comparison_page(
                folder, capture, results, depths, size, [row["expected"] for row in rows], terminal
            )
    terminal.table(None, table.header, table.rows)
    terminal.say(terminal.summary())
    terminal.say(f"Results: {target}")
    if report:
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")
    return {"out": str(target.absolute()), "methods": rows}


def parameters_by_method(
    parameters: Mapping[str, str], methods: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the methods to compare (default: all), each with its checked ``METHOD.name`` parameters.

    >>> parameters_by_method({"pls.p": "3"}, ["ls", "pls"])
    {'ls': {}, 'pls': {'p': '3'}}
    """
    from photostereo.solver.choice import choose

    if methods is not None and not methods:
        raise ps.ParameterError(
            "No methods were given. Name at least one, for example --methods ls,pdlnv.", code="no-methods"
        )
    of_each: dict[str, dict[str, Any]] = {choose(name).name: {} for name in methods or ps.method_names()}
    for key, value in parameters.items():
        word, dot, name = key.partition(".")
        method = choose(word).name
        if not dot or not name or method not in of_each:
            raise ps.ParameterError(
                f'"{key}" does not name a method. Write --set METHOD.NAME=VALUE with one of the '
                f"compared methods: {', '.join(of_each)}.",
                code="whose-parameter",
                key=key,
            )
        of_each[method][name] = value
    for method, values in of_each.items():
        ps.find_method(method).resolve(values)
    return of_each


def comparison_table(rows: Rows) -> Table:
    """Table of errors or, without truth, of unexplained brightness; the lowest value is the best."""
    known = all(row["mean"] is not None for row in rows)
    figures = {"unexplained": "{percent:.1f} %"}
    if known:
        figures = {"mean error": "{mean:.2f}°", "median": "{median:.2f}°", "within 10°": "{within_10deg:.0%}"}
    columns = {"method": "{method}", **figures, **_EXPECTED, "seconds": "{seconds:.2f}", "status": "{status}"}
    rows = [{**row, "percent": 100 * row["unexplained"]} for row in rows]
    return _table("Methods compared", rows, columns, "mean" if known else "unexplained", 1)


_EXPECTED = {"expected error": "{expects}"}


def _table(title: str, rows: Rows, columns: Mapping[str, str], best: str | None, column: int) -> Table:
    """``columns`` maps headings to cell formats; the lowest of the values ``best`` is marked in its ``column``."""
    lines = []
    for row in rows:
        expects = "" if row["expected"] is None else f"{row['expected']:.1f}°, {row['grade']}"
        lines.append([cell.format(**row, expects=expects) for cell in columns.values()])
    values = [] if best is None else [row[best] for row in rows]
    return Table(title, list(columns), lines, best=[(values.index(min(values)), column)] if values else ())


def compare_results(
    sources: Sequence[Path],
    out: Path | None,
    truth: Path | None,
    pixel_size: PixelSize,
    force: bool,
    terminal: Terminal,
) -> dict[str, Any]:
    """Write a folder with a page of existing results and the data from which it can be served pixel by pixel."""
    import numpy as np

    from photostereo.cli.export import size_of_result
    from photostereo.io.atomic import replacing_directory, write_array, write_json, write_text
    from photostereo.io.names import folder_name
    from photostereo.pipeline.comparison import numbered, truth_of
    from photostereo.report import write_comparison
    from photostereo.report.comparison import basis_of
    from photostereo.solver.result_files import is_result, read_depth, read_summary

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
    rows: list[dict[str, Any]] = []
    for name, result, expects in zip(names, results, expected, strict=True):
        angle = ps.angular_error(result.normals, results[0].normals if known is None else known, mask)[mask]
        figures = {"mean": angle.mean(), "median": np.median(angle), "p90": np.percentile(angle, 90)}
        row = {"name": name, "method": result.method, **{key: float(value) for key, value in figures.items()}}
        expects = expects or {"degrees": None, "grade": None}
        rows.append(row | {"expected": expects["degrees"], "grade": expects["grade"]})
    heading = f"mean angle to {names[0]}" if known is None else "mean error"
    angles = {heading: "{mean:.2f}°", "median": "{median:.2f}°", "90 % below": "{p90:.2f}°"}
    columns = {"result": "{name}", "method": "{method}", **angles, **_EXPECTED}
    table = _table("Results compared", rows, columns, None if known is None else "mean", 2)
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
