"""``photostereo compare``: several methods on one capture, or existing results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.command import option
from photostereo.cli.messages import about_results
from photostereo.cli.options import Reading, complete_method, names, parse_parameters
from photostereo.cli.terminal import Terminal
from photostereo.core.units import PixelSize
from photostereo.io.tables import Table

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
        "Comma-separated names (default: all methods).", "Method", autocompletion=complete_methods
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
    from photostereo.cli.info import report_state
    from photostereo.io.atomic import write_text
    from photostereo.io.names import folder_name
    from photostereo.pipeline import comparison
    from photostereo.results import SurfaceChoice
    from photostereo.solver.result_files import is_result

    size = PixelSize.of(pixel_size)
    if len(sources) > 1 or is_result(sources[0]):
        if methods is not None or parameters:
            raise ps.ParameterError(
                "--methods and --set apply to a capture, not to existing results.",
                code="not-for-results",
            )
        return compare_results(sources, out, truth, size, force, terminal)
    if truth is not None:
        raise ps.ParameterError(
            "--truth applies to existing results; a capture contains its own.",
            code="not-for-captures",
        )
    of_each = parameters_by_method(parse_parameters(parameters), names(methods))
    pipeline = ps.Pipeline(
        sources[0],
        control=terminal,
        reading=reading.options(),
        images=images,
        seed=seed,
        device=device,
        pixel_size=pixel_size,
        surface=SurfaceChoice(formats=("ply", "glb") if meshes else ())
        if meshes or report
        else None,
        report=False,
    )
    if any(ps.find_method(name).sees_colors for name in of_each):
        pipeline.configure(color=True)
    terminal.pipeline = pipeline
    out = out or Path(f"{folder_name(pipeline.source.name)}-compare")
    with pipeline.writing(out, force=force) as (folder, target):
        pipeline.load_photographs()  # all methods and the page use the same
        report_state(terminal, pipeline)
        made = comparison.solve_each(pipeline, folder, of_each, terminal.say)
        table = comparison_table(made.rows)
        write_text(folder / "comparison.tex", table.latex("comparison"))
        if report:
            terminal.stage("report")
            made.write_page(folder, size, terminal)
    terminal.table(None, table.header, table.rows)
    page = target / "report.html" if report else None
    terminal.say_all(about_results(terminal.summary(), target, page))
    return {"out": str(target.absolute()), "methods": made.rows}


def parameters_by_method(
    parameters: Mapping[str, str], methods: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the methods to compare (default: all), each with its checked ``METHOD.name`` parameters.

    >>> parameters_by_method({"pls.p": "3"}, ["ls", "pls"])
    {'ls': {}, 'pls': {'p': '3'}}
    """
    from photostereo.solver.auto_method import choose

    if methods is not None and not methods:
        raise ps.ParameterError(
            "No methods were given. Name at least one, for example --methods ls,pdlnv.",
            code="no-methods",
        )
    of_each: dict[str, dict[str, Any]] = {
        choose(name).name: {} for name in methods or ps.method_names()
    }
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
    figures = {"unexplained": "{unexplained:.1%}"}
    if known:
        figures = {
            "mean error": "{mean:.2f}°",
            "median": "{median:.2f}°",
            "within 10°": "{within_10deg:.0%}",
        }
    columns = {
        "method": "{method}",
        **figures,
        **_EXPECTED,
        "seconds": "{seconds:.2f}",
        "status": "{status}",
    }
    return _table("Methods compared", rows, columns, "mean" if known else "unexplained", 1)


_EXPECTED = {"expected error": "{expects}"}


def _table(
    title: str, rows: Rows, columns: Mapping[str, str], best: str | None, column: int
) -> Table:
    """``columns`` maps headings to cell formats; the lowest of the values ``best`` is marked in its ``column``."""
    lines = []
    for row in rows:
        expects = ""
        if row["expected"] is not None:
            expects = f"{row['expected']:.1f}°, {row['grade']}"
        lines.append(
            [cell.format(**row, expects=expects).replace("%", " %") for cell in columns.values()]
        )
    if best is None or not rows:
        return Table(title, list(columns), lines)
    values = [row[best] for row in rows]
    return Table(title, list(columns), lines, best=[(values.index(min(values)), column)])


def compare_results(
    sources: Sequence[Path],
    out: Path | None,
    truth: Path | None,
    pixel_size: PixelSize,
    force: bool,
    terminal: Terminal,
) -> dict[str, Any]:
    """Write a folder with a page of existing results and the data from which it can be served pixel by pixel.

    Parameters
    ----------
    sources : sequence of path
        The folders of the results.
    out : path, optional
        The folder to create; by default named after the first result.
    truth : path, optional
        Ground truth; without it the others are compared with the first result.
    pixel_size : PixelSize
        Width of a pixel; if unknown, that of the results.
    force : bool
        Replace an existing folder of results.
    terminal : Terminal
        Prints the table.
    """
    from photostereo.cli.export import size_of_result
    from photostereo.io.atomic import replacing_directory, write_text
    from photostereo.io.names import folder_name
    from photostereo.pipeline.comparison import copy_results, numbered, truth_of
    from photostereo.solver.result_files import is_result

    for source in sources:
        if not is_result(source):
            raise ps.ParameterError(
                f"{source} is not the result of a solve. Give one capture, or two or more OUT "
                "folders of `photostereo solve`.",
                code="not-a-result",
                file=source,
            )
    if len(sources) < 2:
        raise ps.ParameterError(
            f"{sources[0]} is a result. Give at least one more result to compare it with.",
            code="one-result",
            file=sources[0],
        )
    names = numbered([(s.resolve() if s.name in ("", "..") else s).name for s in sources])
    sizes = {size_of_result(source) for source in sources}
    size = pixel_size
    if not size.known and len(sizes) == 1:
        size = sizes.pop()
    # Without ground truth, the others are compared with the first.
    ground_truth = None
    against = names[0]
    heading = f"mean angle to {against}"
    best = None
    if truth is not None:
        ground_truth = truth_of(truth)
        against = "truth"
        heading = "mean error"
        best = "mean"
    target = out or Path(f"{folder_name(names[0])}-compare")
    with replacing_directory(target, force=force, keep=sources) as folder:
        made = copy_results(folder, sources, names, ground_truth)
        angles = {heading: "{mean:.2f}°", "median": "{median:.2f}°", "90 % below": "{p90:.2f}°"}
        columns = {"result": "{name}", "method": "{method}", **angles, **_EXPECTED}
        table = _table("Results compared", made.rows, columns, best, 2)
        write_text(folder / "comparison.tex", table.latex("comparison"))
        made.write_page(folder, size)
    terminal.table(None, table.header, table.rows)
    terminal.say_all(about_results("", target, target / "report.html"))
    return {"out": str(target.absolute()), "against": against, "results": made.rows}
