"""Several methods on one capture: a folder of results for each, a table, pictures side by side and a page."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray, encode_normals
from photostereo.core.errors import CaptureError
from photostereo.core.units import PixelSize
from photostereo.diagnosis.exposure import typical_residual
from photostereo.diagnosis.metrics import angular_error
from photostereo.io.atomic import write_array, write_json, write_text
from photostereo.io.names import folder_name
from photostereo.io.png import write_png
from photostereo.pipeline.pipeline import Pipeline
from photostereo.pipeline.write_results import shown_on_page
from photostereo.report.about import read_about
from photostereo.report.comparison import compared_mask, write_comparison
from photostereo.report.pictures import ERROR_TOP
from photostereo.results.maps import read_normal_map
from photostereo.solver.methods import find_method
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import read_depth, read_summary, read_truth

#: Files of a result that the page links to.
OFFERED = ("normals.png", "albedo.png", "depth.tiff", "mesh.ply", "mesh.glb", "summary.json")


@dataclass(frozen=True, eq=False)
class Compared:
    """Results side by side, each in a folder of its own."""

    results: Sequence[Reconstruction]
    depths: Sequence[FloatArray | None]
    rows: Sequence[Mapping[str, Any]]  #: figures of each result
    folders: Sequence[str]  #: their names
    truth: FloatArray | None
    capture: Capture | None = None  #: the photographs, if all results are from them
    labels: Sequence[str] | None = None  #: names on the page; by default the methods

    def write_page(self, folder: Path, pixel_size: PixelSize, control: Control = SILENT) -> None:
        """Write ``report.html`` beside the folders of the results."""
        if self.truth is not None:
            # If served, the page shows the truth pixel by pixel like the results.
            write_array(folder / "truth" / "normals.npy", self.truth.astype(np.float32))
            write_array(folder / "truth" / "mask.npy", self.results[0].mask)
        paths = ["comparison.csv", *(f"{name}/{file}" for name in self.folders for file in OFFERED)]
        origin = None if self.capture is None else self.capture.origin
        write_comparison(
            folder / "report.html",
            self.results,
            self.capture,
            labels=self.labels,
            truth=self.truth,
            depths=self.depths,
            files={path: path for path in paths if (folder / path).is_file()},
            folders=self.folders,
            expected=[row["expected"] for row in self.rows],
            pixel_size=pixel_size,
            about=None if origin is None else read_about(origin.path),
            control=control,
        )


def solve_each(
    pipeline: Pipeline,
    folder: Path,
    parameters: Mapping[str, Mapping[str, Any]],
    say: Callable[[str], object] = lambda text: None,
) -> Compared:
    """Solve a capture with several methods, each into a folder of its name, and write table and picture beside them."""
    device = pipeline.settings.device
    results: list[Reconstruction] = []
    depths: list[FloatArray | None] = []
    for name, values in parameters.items():
        where = find_method(name).device_or_cpu(device)
        say(f"Solving with {name}{'' if where == device else ' (on the CPU)'} ...")
        pipeline.configure(method=name, device=where, parameters=dict(values))
        (folder / name).mkdir()
        pipeline.fill(folder / name)
        results.append(pipeline.solution)
        surface = pipeline.settings.surface
        depths.append(None if surface is None else shown_on_page(pipeline.surface)["depth"])
    capture = pipeline.at_hand
    rows = [_row(result, capture, folder / result.method) for result in results]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / "comparison.csv", text.getvalue())
    write_json(folder / "comparison.json", rows)
    write_png(folder / "comparison.png", _picture(capture, results))
    return Compared(
        results, depths, rows, [result.method for result in results], capture.truth, capture
    )


def copy_results(
    folder: Path, sources: Sequence[Path], names: Sequence[str], truth: FloatArray | None
) -> Compared:
    """Copy existing results, from which the page can be served, and compare them with the truth or the first."""
    results = [Reconstruction.load(source) for source in sources]
    # Page and server cut their tiles around the same pixels: those that are valid in all results.
    mask = compared_mask(results, None, truth)
    results = [replace(result, mask=mask) for result in results]
    folders = [f"{number}-{folder_name(name)}" for number, name in enumerate(names, 1)]
    depths = []
    rows = []
    for source, name, place, result in zip(sources, names, folders, results, strict=True):
        result.save(folder / place)
        expected = read_summary(source).get("expected_error") or {"degrees": None, "grade": None}
        if expected["degrees"] is not None:
            write_json(
                folder / place / "summary.json", {**result.summary(), "expected_error": expected}
            )
        depths.append(read_depth(source, mask.shape))
        if depths[-1] is not None:
            write_array(folder / place / "depth.npy", depths[-1])
        angle = angular_error(result.normals, results[0].normals if truth is None else truth, mask)[
            mask
        ]
        figures = {
            "mean": angle.mean(),
            "median": np.median(angle),
            "p90": np.percentile(angle, 90),
        }
        row = {
            "name": name,
            "method": result.method,
            **{key: float(value) for key, value in figures.items()},
        }
        rows.append(row | {"expected": expected["degrees"], "grade": expected["grade"]})
    return Compared(results, depths, rows, folders, truth, labels=names)


def _row(result: Reconstruction, capture: Capture, folder: Path) -> dict[str, Any]:
    """The figures of a method, from its result and the summary in its folder."""
    expected = read_summary(folder).get("expected_error") or {}
    figures = ("mean", "median", "within_10deg")
    return {
        "method": result.method,
        **{name: getattr(result.angular_error, name, None) for name in figures},
        "expected": expected.get("degrees"),
        "grade": expected.get("grade"),
        "unexplained": typical_residual(result.normals, capture),
        "seconds": result.own_seconds,
        "status": result.status,
    }


def _picture(capture: Capture, results: Sequence[Reconstruction]) -> NDArray[np.uint8]:
    """Normals of truth and methods in a row; if the truth is known, error maps below."""
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
        cv2.putText(
            head, caption, (6, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (20, 20, 20), 1, cv2.LINE_AA
        )
        columns.append(np.concatenate([head, *tiles]))
    return np.concatenate(columns, axis=1)


def truth_of(path: Path) -> FloatArray:
    """Read true normals from a capture that has them, an array, or a normal-map picture."""
    if path.suffix.lower() == ".npy":
        return read_truth(path)
    if path.suffix.lower() == ".png":
        return read_normal_map(path)[0]
    truth = Pipeline(path, method="ls").capture.truth
    if truth is None:
        raise CaptureError(f"{path} has no true normals.", code="no-truth", file=path)
    return truth


def numbered(names: Sequence[str]) -> list[str]:
    """Number the names that occur more than once.

    >>> numbered(["cat", "cat", "dog"])
    ['cat (1)', 'cat (2)', 'dog']
    """
    counts = Counter(names)
    seen = Counter[str]()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return unique
