"""``photostereo compare``: several methods on one capture, or existing results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.cli.command import METHOD, OUTPUT
from photostereo.cli.options import (
    Device,
    Force,
    Images,
    PixelSizeChoice,
    Reading,
    Report,
    Seed,
    complete_method,
    names,
    option,
    parse_parameters,
)
from photostereo.cli.terminal import Terminal, text_table
from photostereo.core.errors import ParameterError


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
    methods: Annotated[
        str | None,
        option(
            "--methods",
            METHOD,
            "Names with commas between them (default: all methods).",
            autocompletion=complete_methods,
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        option("--set -s", METHOD, "A parameter of one method; can be repeated.", "METHOD.NAME=VALUE"),
    ] = None,
    images: Images = None,
    seed: Seed = 0,
    truth: Annotated[
        Path | None,
        option("--truth", None, "For results: a capture with truth, or true normals as .npy or .png."),
    ] = None,
    out: Annotated[
        Path | None,
        option("--out -o", OUTPUT, "Folder for the results (default: NAME-compare).", "OUT"),
    ] = None,
    meshes: Annotated[bool, option("--meshes", OUTPUT, "Write a mesh for each method.")] = False,
    report: Report = True,
    pixel_size: PixelSizeChoice = None,
    device: Device = "cpu",
    force: Force = False,
) -> dict[str, Any]:
    """Compare several methods on one capture, or existing results: a table, pictures and a page."""
    from photostereo.core.units import PixelSize
    from photostereo.pipeline.settings import Settings, SolveSettings, SurfaceChoice
    from photostereo.solver.result_files import is_result

    size = PixelSize.of(pixel_size)
    if len(sources) > 1 or is_result(sources[0]):
        from photostereo.cli.compare_results import compare_results

        if methods is not None or parameters:
            raise ParameterError(
                "--methods and --set solve a capture; results have been solved already.",
                code="not-for-results",
            )
        return compare_results(sources, out, truth, size, force, terminal)
    if truth is not None:
        raise ParameterError(
            "--truth is for results; a capture that is solved brings its own truth.", code="not-for-captures"
        )
    surface = SurfaceChoice(pixel_size=size, formats=("ply", "glb") if meshes else ())
    settings = Settings(
        reading.options(), images, seed, SolveSettings(device=device), surface if meshes or report else None
    )
    return compare_methods(
        sources[0], out, settings, names(methods), parse_parameters(parameters), size, report, force, terminal
    )


def compare_methods(
    path: Path,
    out: Path | None,
    settings: Any,
    methods: Sequence[str] | None,
    parameters: Mapping[str, str],
    pixel_size: Any,
    report: bool,
    force: bool,
    terminal: Terminal,
) -> dict[str, Any]:
    """Solve a capture by each method (None: all)."""
    from photostereo.cli.state import report_state
    from photostereo.io.names import folder_name
    from photostereo.pipeline import comparison
    from photostereo.pipeline.pipeline import Pipeline
    from photostereo.solver.choice import choose
    from photostereo.solver.methods import find_method, method_names

    if methods is not None and not methods:
        raise ParameterError(
            "No methods were given. Name at least one, for instance --methods ls,pdlnv.", code="no-methods"
        )
    methods = list(dict.fromkeys(choose(name).name for name in methods or method_names()))
    of_each = parameters_by_method(parameters, methods)
    for name in methods:
        find_method(name).resolve(of_each[name])
    color = settings.reading.color or any(find_method(name).sees_colors for name in methods)
    settings = replace(
        settings,
        reading=replace(settings.reading, color=color),
        output=replace(settings.output, report=False),
    )
    pipeline = Pipeline(path, settings, control=terminal)
    if out is None:
        out = Path(f"{folder_name(pipeline.capture.name)}-compare")
    with pipeline.writing(out, force=force) as (folder, target):
        capture = pipeline.loaded
        terminal.say(f"{capture}")
        report_state(terminal, pipeline)
        results, depths = comparison.solve_each(pipeline, folder, of_each, terminal.say)
        rows = comparison.comparison_rows(results, capture)
        comparison.write_comparison_files(folder, capture, results, rows)
        if report:
            terminal.stage("report")
            comparison.write_comparison_page(folder, capture, results, depths, pixel_size)
    terminal.say(comparison_table(rows))
    terminal.say(f"Results: {target}")
    if report:
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")
    return {"out": str(target.absolute()), "methods": rows}


def parameters_by_method(parameters: Mapping[str, str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``METHOD.name`` → value, sorted by method.

    >>> parameters_by_method({"pls.p": "3"}, ["ls", "pls"])
    {'ls': {}, 'pls': {'p': '3'}}
    """
    from photostereo.solver.choice import choose

    by_method: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for key, value in parameters.items():
        word, dot, name = key.partition(".")
        method = choose(word).name
        if not dot or not name or method not in by_method:
            raise ParameterError(
                f'"{key}" does not say whose parameter it is. Write --set METHOD.NAME=VALUE with one of the '
                f"methods compared: {', '.join(methods)}.",
                code="whose-parameter",
                key=key,
            )
        by_method[method][name] = value
    return by_method


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows for a terminal: the errors or, without a truth, the brightness that is left unexplained."""
    known = all(row["mean"] is not None for row in rows)
    headings = ("mean error", "median", "within 10°") if known else ("unexplained",)
    lines = []
    for row in rows:
        figures = (
            [f"{row['mean']:.2f}°", f"{row['median']:.2f}°", f"{row['within_10deg']:.0%}"] if known else []
        )
        figures = figures or [f"{100 * row['unexplained']:.1f} %"]
        lines.append([row["method"], *figures, f"{row['seconds']:.2f}", row["status"]])
    return text_table(["method", *headings, "seconds", "status"], lines)
