"""``photostereo compare``: several methods on one capture, or existing results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.command import METHOD, OUTPUT, argument, option
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
    output,
    parse_parameters,
)
from photostereo.cli.terminal import Terminal


def complete_methods(incomplete: str) -> list[str]:
    """Complete ``--methods <TAB>`` after the last comma; a method is not offered twice."""
    given, comma, last = incomplete.rpartition(",")
    return [given + comma + name for name in complete_method(last) if name not in given.split(",")]


def compare(
    terminal: Terminal,
    reading: Reading,
    sources: list[Path] = argument(
        "Photographs to solve, or results to compare.", "CAPTURE | RESULT RESULT..."
    ),
    methods: str | None = option(
        "Comma-separated names (default: all methods).", METHOD, autocompletion=complete_methods
    ),
    parameters: list[str] | None = option(
        "A parameter of one method; can be repeated.", METHOD, "METHOD.NAME=VALUE", flags="--set -s"
    ),
    images: int | None = IMAGES,
    seed: int = SEED,
    truth: Path | None = option("For results: a capture with truth, or true normals as .npy or .png."),
    out: Path | None = output("Folder for the results (default: NAME-compare)."),
    meshes: bool = option("Write a mesh for each method.", OUTPUT, default=False),
    report: bool = REPORT,
    pixel_size: str | None = PIXEL_SIZE,
    device: str = DEVICE,
    force: bool = FORCE,
) -> dict[str, Any]:
    """Compare several methods on one capture, or existing results: a table, pictures and a page."""
    from photostereo.cli.comparison_tables import comparison_table
    from photostereo.cli.state import report_state
    from photostereo.core.units import PixelSize
    from photostereo.io.atomic import write_text
    from photostereo.io.names import folder_name
    from photostereo.pipeline import comparison
    from photostereo.results import SurfaceChoice
    from photostereo.solver.result_files import is_result

    size = PixelSize.of(pixel_size)
    if len(sources) > 1 or is_result(sources[0]):
        from photostereo.cli.compare_results import compare_results

        if methods is not None or parameters:
            raise ps.ParameterError(
                "--methods and --set apply to a capture, not to existing results.",
                code="not-for-results",
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
