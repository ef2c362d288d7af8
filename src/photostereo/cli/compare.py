"""``photostereo compare``: several methods on one capture, or existing results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from photostereo.cli.command import METHOD, OUTPUT, option
from photostereo.cli.options import (
    DEVICE,
    FORCE,
    IMAGES,
    PIXEL_SIZE,
    REPORT,
    SEED,
    Reading,
    complete_method,
    names,
    parse_parameters,
)
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError

if TYPE_CHECKING:
    from photostereo.io.tables import Table


def complete_methods(incomplete: str) -> list[str]:
    """What ``--methods <TAB>`` offers after the last comma; a method is not offered twice."""
    given, comma, last = incomplete.rpartition(",")
    return [given + comma + name for name in complete_method(last) if name not in given.split(",")]


def compare(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE | RESULT RESULT...", help="Photographs to solve, or results to compare."
        ),
    ],
    reading: Reading,
    terminal: Terminal,
    methods: str | None = option(
        "Comma-separated names (default: all methods).", METHOD, autocompletion=complete_methods
    ),
    parameters: list[str] | None = option(
        "A parameter of one method; can be repeated.", METHOD, "METHOD.NAME=VALUE", flags="--set -s"
    ),
    images: int | None = IMAGES,
    seed: int = SEED,
    truth: Path | None = option("For results: a capture with truth, or true normals as .npy or .png."),
    out: Path | None = option(
        "Folder for the results (default: NAME-compare).", OUTPUT, "OUT", flags="--out -o"
    ),
    meshes: bool = option("Write a mesh for each method.", OUTPUT, default=False),
    report: bool = REPORT,
    pixel_size: str | None = PIXEL_SIZE,
    device: str = DEVICE,
    force: bool = FORCE,
) -> dict[str, Any]:
    """Compare several methods on one capture, or existing results: a table, pictures and a page."""
    from photostereo.cli.state import report_state
    from photostereo.core.units import PixelSize
    from photostereo.io.atomic import write_text
    from photostereo.io.names import folder_name
    from photostereo.pipeline import comparison
    from photostereo.pipeline.pipeline import Pipeline
    from photostereo.pipeline.settings import OutputSettings, Settings, SolveSettings
    from photostereo.results.choice import SurfaceChoice
    from photostereo.solver.methods import find_method
    from photostereo.solver.result_files import is_result

    size = PixelSize.of(pixel_size)
    if len(sources) > 1 or is_result(sources[0]):
        from photostereo.cli.compare_results import compare_results

        if methods is not None or parameters:
            raise ParameterError(
                "--methods and --set apply to a capture, not to existing results.",
                code="not-for-results",
            )
        return compare_results(sources, out, truth, size, force, terminal)
    if truth is not None:
        raise ParameterError(
            "--truth applies to existing results; a capture brings its own truth.", code="not-for-captures"
        )
    of_each = parameters_by_method(parse_parameters(parameters), names(methods))
    settings = Settings(
        reading.options(),
        images,
        seed,
        SolveSettings(device=device),
        SurfaceChoice(pixel_size=size, formats=("ply", "glb") if meshes else ())
        if meshes or report
        else None,
        OutputSettings(report=False),
    )
    if any(find_method(name).sees_colors for name in of_each):
        settings = settings.changed(color=True)
    pipeline = Pipeline(sources[0], settings, control=terminal)
    if out is None:
        out = Path(f"{folder_name(pipeline.found.name)}-compare")
    with pipeline.writing(out, force=force) as (folder, target):
        capture = pipeline.loaded
        report_state(terminal, pipeline)
        results, depths = comparison.solve_each(pipeline, folder, of_each, terminal.say)
        rows = comparison.comparison_rows(results, capture, folder)
        comparison.write_comparison_files(folder, capture, results, rows)
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
    """The methods to compare (all by default), each with its own of the parameters ``METHOD.name``, checked.

    >>> parameters_by_method({"pls.p": "3"}, ["ls", "pls"])
    {'ls': {}, 'pls': {'p': '3'}}
    """
    from photostereo.solver.choice import choose
    from photostereo.solver.methods import find_method, method_names

    if methods is not None and not methods:
        raise ParameterError(
            "No methods were given. Name at least one, for example --methods ls,pdlnv.", code="no-methods"
        )
    of_each: dict[str, dict[str, Any]] = {choose(name).name: {} for name in methods or method_names()}
    for key, value in parameters.items():
        word, dot, name = key.partition(".")
        method = choose(word).name
        if not dot or not name or method not in of_each:
            raise ParameterError(
                f'"{key}" does not name a method. Write --set METHOD.NAME=VALUE with one of the '
                f"compared methods: {', '.join(of_each)}.",
                code="whose-parameter",
                key=key,
            )
        of_each[method][name] = value
    for method, values in of_each.items():
        find_method(method).resolve(values)
    return of_each


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The errors or, without a truth, the brightness that is left unexplained; the lowest is the best."""
    from photostereo.io.tables import Table

    known = all(row["mean"] is not None for row in rows)
    headings = ("mean error", "median", "within 10°") if known else ("unexplained",)
    lines = []
    for row in rows:
        expected = "" if row["expected"] is None else f"{row['expected']:.1f}°, {row['grade']}"
        figures = (
            [f"{row['mean']:.2f}°", f"{row['median']:.2f}°", f"{row['within_10deg']:.0%}"]
            if known
            else [f"{100 * row['unexplained']:.1f} %"]
        )
        lines.append([row["method"], *figures, expected, f"{row['seconds']:.2f}", row["status"]])
    values = [row["mean" if known else "unexplained"] for row in rows]
    header = ["method", *headings, "expected error", "seconds", "status"]
    return Table("Methods compared", header, lines, best=[(values.index(min(values)), 1)])
