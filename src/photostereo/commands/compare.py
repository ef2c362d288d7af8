"""``photostereo compare``: several methods on one capture, a table and side-by-side pictures."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from photostereo.capture import Capture
from photostereo.capture.sixteen_bit import write_png
from photostereo.commands.solve import read_capture, safe_name
from photostereo.commands.terminal import Terminal
from photostereo.conventions import encode_normals
from photostereo.errors import ParameterError
from photostereo.files.atomic import replacing_directory
from photostereo.quality.metrics import angular_error
from photostereo.reconstruction import Reconstruction
from photostereo.results.pictures import write_pictures
from photostereo.solver.methods import find_method, method_names
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
    reading: Mapping[str, Any],
    report: bool,
    device: str,
    force: bool,
    quiet: bool,
) -> None:
    """Solve by each method (None: all) with its defaults; write a folder per method, a table and pictures."""
    if methods is None:
        methods = method_names()
    if not methods:
        raise ParameterError("No methods were given. Name at least one, for instance --methods ls,pdlnv.")
    for name in methods:
        find_method(name)
    with Terminal(quiet=quiet) as terminal:
        capture = read_capture(path, reading, images, seed)
        terminal.say(f"{capture}")
        target = out or Path(f"{safe_name(capture.name)}-compare")
        results = []
        with replacing_directory(target, force=force, keep=path) as folder:
            for name in dict.fromkeys(methods):
                where = device if find_method(name).on_gpu else "cpu"
                terminal.say(f"Solving with {name}{'' if where == device else ' (on the CPU)'} ...")
                result = solve(capture, method=name, monitor=terminal, device=where)
                (folder / name).mkdir()
                result.save(folder / name)
                write_pictures(folder / name, result)
                results.append(result)
            write_comparison_files(folder, capture, results)
            if report:
                from photostereo.report import write_comparison
                from photostereo.surface import integrate

                terminal.stage("surfaces", len(results))
                depths = []
                for result in results:
                    depths.append(integrate(result.normals, result.mask).depth)
                    terminal.advance()
                terminal.stage("report")
                write_comparison(folder / "report.html", results, capture, depths=depths)
    terminal.say(comparison_table(results))
    terminal.say(f"Results: {target}")


def comparison_rows(results: Sequence[Reconstruction]) -> list[dict[str, Any]]:
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
                "seconds": sum(result.seconds.values()),
                "status": result.status,
            }
        )
    return rows


def comparison_table(results: Sequence[Reconstruction]) -> Table:
    """The rows for a terminal."""
    table = Table()
    table.add_column("method")
    for heading in ("mean error", "median", "within 10°", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("status")
    for row in comparison_rows(results):
        known = row["mean"] is not None
        table.add_row(
            row["method"],
            f"{row['mean']:.2f}°" if known else "-",
            f"{row['median']:.2f}°" if known else "-",
            f"{row['within_10deg']:.0%}" if known else "-",
            f"{row['seconds']:.2f}",
            row["status"],
        )
    return table


def write_comparison_files(folder: Path, capture: Capture, results: Sequence[Reconstruction]) -> None:
    """``comparison.csv``, ``comparison.json`` and ``comparison.png``."""
    rows = comparison_rows(results)
    with (folder / "comparison.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "comparison.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
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
