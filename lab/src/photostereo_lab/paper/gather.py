"""Collect the results for a figure.

They are those of solves, of a comparison, or of a sweep that kept its maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.safe import read_npz
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import is_result, read_truth
from photostereo_lab.paper.figure import Column
from photostereo_lab.sweeps.outputs import name_of
from photostereo_lab.sweeps.store import Store


def columns_of(
    source: Path, methods: Sequence[str] | None
) -> tuple[list[Column], FloatArray | None]:
    """Return the results in a folder, and the ground truth if it is in the folder.

    Parameters
    ----------
    source : path
        A folder of a solve, a comparison or a sweep.
    methods : sequence of str, optional
        Which methods; by default all.
    """
    if (source / "results.sqlite").is_file():
        return _of_store(source, methods)
    if (source / "comparison.json").is_file():
        folders = [
            path.parent for path in sorted(source.glob("*/normals.npy")) if is_result(path.parent)
        ]
    else:
        folders = [source]
    results = [Reconstruction.load(folder) for folder in folders]
    truth = None
    truth_file = source / "truth" / "normals.npy"
    if results and truth_file.is_file():
        truth = read_truth(truth_file, results[0].mask.shape)
    columns = [
        Column(name_of(result.method), result.normals, result.mask, result.albedo)
        for result in results
        if methods is None or result.method in methods
    ]
    if not columns:
        raise ParameterError(
            f"{source} has no results of {', '.join(methods or ())}.",
            code="no-such-results",
            file=source,
        )
    return columns, truth


def _of_store(
    source: Path, methods: Sequence[str] | None
) -> tuple[list[Column], FloatArray | None]:
    store = Store(source, read_only=True)
    columns: list[Column] = []
    truth: FloatArray | None = None
    captures: set[str] = set()
    for key, row in store.rows().items():
        path = store.arrays_path(key)
        if not path.is_file() or (methods is not None and row["method"] not in methods):
            continue
        maps = read_npz(
            path, "maps of a trial", remedy="Remove the file; the run creates it again."
        )
        if "normals" not in maps:
            continue
        name = name_of(row["method"])
        if row["corruption"] != "none":
            name += f", {row['corruption']} {row['level']:g}"
        columns.append(Column(name, maps["normals"], np.asarray(maps["mask"], dtype=bool)))
        truth = maps.get("truth", truth)
        captures.add(row["capture"])
    if not columns:
        raise CaptureError(
            f"No trial in {source} kept its maps. Add the line maps = true to the plan and run the "
            "sweep again.",
            code="no-maps",
            file=source,
        )
    if len(captures) > 1:
        raise ParameterError(
            f"{source} has maps of several captures ({', '.join(sorted(captures))}).",
            code="several-captures",
            file=source,
        )
    return columns, truth
