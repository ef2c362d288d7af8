"""``photostereo compare``: several methods on one capture, a table and side-by-side pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from photostereo.capture import Capture
from photostereo.capture.options import ReadOptions
from photostereo.commands.solve import files_in_use, read_capture, reading_for
from photostereo.commands.state import tell_state
from photostereo.commands.terminal import Terminal
from photostereo.core.conventions import FloatArray, encode_normals
from photostereo.core.errors import ParameterError
from photostereo.core.units import PixelSize
from photostereo.diagnosis.exposure import typical_residual
from photostereo.diagnosis.metrics import angular_error
from photostereo.io.atomic import replacing_directory, write_array, write_json, write_text
from photostereo.io.names import folder_name
from photostereo.io.sixteen_bit import write_png
from photostereo.pipeline.folder import SurfaceChoice, fill_results
from photostereo.solver.choice import choose
from photostereo.solver.methods import find_method, method_names
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import solve

#: Error pictures saturate here, in degrees.
ERROR_TOP = 45.0


def run(
    path: Path,
    out: Path | None,
    *,
    methods: Sequence[str] | None,
    images: int | None,
    seed: int,
    reading: ReadOptions,
    settings: Mapping[str, str],
    meshes: bool,
    pixel_size: PixelSize,
    report: bool,
    device: str,
    force: bool,
    quiet: bool,
) -> None:
    """Solve by each method (None: all); write a folder per method, a table, pictures and a page."""
    if methods is None:
        methods = method_names()
    if not methods:
        raise ParameterError("No methods were given. Name at least one, for instance --methods ls,pdlnv.")
    methods = list(dict.fromkeys(choose(name).name for name in methods))
    parameters = settings_by_method(settings, methods)
    for name in methods:
        find_method(name).resolve(parameters[name])
    formats = ("ply", "glb") if meshes else ()
    surface = SurfaceChoice(formats=formats, pixel_size=pixel_size) if meshes or report else None
    reading = reading_for([find_method(name) for name in methods], reading)
    with Terminal(quiet=quiet) as terminal:
        capture = read_capture(path, reading, images, seed)
        terminal.say(f"{capture}")
        tell_state(terminal, capture)
        target = out or Path(f"{folder_name(capture.name)}-compare")
        results: list[Reconstruction] = []
        depths: list[FloatArray | None] = []
        with replacing_directory(target, force=force, keep=files_in_use(path, reading)) as folder:
            for name in methods:
                where = find_method(name).device_or_cpu(device)
                terminal.say(f"Solving with {name}{'' if where == device else ' (on the CPU)'} ...")
                result = solve(capture, method=name, control=terminal, device=where, **parameters[name])
                (folder / name).mkdir()
                _, shown = fill_results(
                    folder / name, capture, result, surface=surface, report=False, control=terminal
                )
                results.append(result)
                depths.append(shown.get("depth"))
            rows = comparison_rows(results, capture)
            write_comparison_files(folder, capture, results, rows)
            if report:
                terminal.stage("report")
                write_comparison_page(folder, capture, results, depths, pixel_size)
    terminal.say(comparison_table(rows))
    terminal.say(f"Results: {target}")
    if report:
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")


def settings_by_method(settings: Mapping[str, str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``METHOD.name`` → value, sorted by method.

    >>> settings_by_method({"pls.p": "3"}, ["ls", "pls"])
    {'ls': {}, 'pls': {'p': '3'}}
    """
    sorted_out: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for key, value in settings.items():
        word, dot, name = key.partition(".")
        method = choose(word).name
        if not dot or not name or method not in sorted_out:
            raise ParameterError(
                f'"{key}" does not say whose parameter it is. Write --set METHOD.NAME=VALUE with one of the '
                f"methods compared: {', '.join(methods)}."
            )
        sorted_out[method][name] = value
    return sorted_out


def write_comparison_page(
    folder: Path,
    capture: Capture,
    results: Sequence[Reconstruction],
    depths: Sequence[FloatArray | None],
    pixel_size: PixelSize,
) -> None:
    """``report.html`` of a folder that holds a folder for each result."""
    from photostereo.report import write_comparison

    names = [result.method for result in results]
    if capture.truth is not None:
        # Served, the page shows the truth pixel by pixel like the others.
        write_array(folder / "truth" / "normals.npy", capture.truth.astype(np.float32))
        write_array(folder / "truth" / "mask.npy", capture.mask)
    offered = ("normals.png", "albedo.png", "depth.tiff", "mesh.ply", "mesh.glb", "summary.json")
    paths = [f"{name}/{file}" for name in names for file in offered if (folder / name / file).is_file()]
    write_comparison(
        folder / "report.html",
        results,
        capture,
        depths=depths,
        files={path: path for path in ["comparison.csv", *paths]},
        folders=names,
        pixel_size=pixel_size,
    )


def comparison_rows(results: Sequence[Reconstruction], capture: Capture) -> list[dict[str, Any]]:
    """One row of figures per method; every method ran with its defaults unless its parameters say
    otherwise."""
    rows = []
    for result in results:
        error = result.angular_error
        rows.append(
            {
                "method": result.method,
                "mean": None if error is None else error.mean,
                "median": None if error is None else error.median,
                "within_10deg": None if error is None else error.within_10deg,
                "unexplained": typical_residual(result.normals, capture),
                "seconds": sum(result.seconds.values()),
                "status": result.status,
            }
        )
    return rows


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows for a terminal: the errors, or without a truth the brightness that is left unexplained."""
    table = Table()
    table.add_column("method")
    known = all(row["mean"] is not None for row in rows)
    for heading in ("mean error", "median", "within 10°") if known else ("unexplained",):
        table.add_column(heading, justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("status")
    for row in rows:
        if known:
            figures = [f"{row['mean']:.2f}°", f"{row['median']:.2f}°", f"{row['within_10deg']:.0%}"]
        else:
            figures = [f"{100 * row['unexplained']:.1f} %"]
        table.add_row(row["method"], *figures, f"{row['seconds']:.2f}", row["status"])
    return table


def write_comparison_files(
    folder: Path, capture: Capture, results: Sequence[Reconstruction], rows: Sequence[Mapping[str, Any]]
) -> None:
    """``comparison.csv``, ``comparison.json`` and ``comparison.png``."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / "comparison.csv", text.getvalue())
    write_json(folder / "comparison.json", rows)
    write_png(folder / "comparison.png", comparison_picture(capture, results))


def comparison_picture(capture: Capture, results: Sequence[Reconstruction]) -> NDArray[np.uint8]:
    """Normals of truth and methods in a row; where there is a truth, the error maps below."""
    import cv2

    shown = [("truth", capture.truth)] if capture.truth is not None else []
    shown += [(result.method, result.normals) for result in results]
    columns = []
    for name, normals in shown:
        assert normals is not None
        tiles = [encode_normals(normals, capture.mask, bits=8)]
        caption = name
        if capture.truth is not None:
            error = np.nan_to_num(angular_error(normals, capture.truth, capture.mask))
            gray = np.rint(np.clip(error / ERROR_TOP, 0, 1) * 255).astype(np.uint8)
            colored = cv2.applyColorMap(gray, cv2.COLORMAP_VIRIDIS)[..., ::-1].copy()
            colored[~capture.mask] = 0
            tiles.append(colored)
            caption += f"  {error[capture.mask].mean():.2f}"
        head = np.full((28, capture.frame[1], 3), 255, dtype=np.uint8)
        cv2.putText(head, caption, (6, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (20, 20, 20), 1, cv2.LINE_AA)
        columns.append(np.concatenate([head, *tiles]))
    return np.concatenate(columns, axis=1)
