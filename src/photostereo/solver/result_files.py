"""Open the files of a result folder and check their content.

Everything that reads a result folder (``mesh``, ``export``, ``compare``, ``figure``, the viewer) opens it here, so the
calling code may rely on the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError
from photostereo.io.safe import read_json, read_npy, read_npz
from photostereo.io.schema import NUMBER, ArraySpec, check_arrays, check_facts

#: Larger values overflow when they are squared in single precision.
_LARGEST = 1e18

ARRAYS = {
    "mask": ArraySpec("H W", kinds="bui", nonzero=True),
    "normals": ArraySpec("H W 3", low=-1.01, high=1.01),
    "albedo": ArraySpec("H W | H W 3", kinds="fui", low=-_LARGEST, high=_LARGEST),
}
#: Including optional files of a result; NaN means unknown.
FILES = ARRAYS | {
    "depth": ArraySpec("H W", low=-_LARGEST, high=_LARGEST, finite=False),
    "truth": ArraySpec("H W 3", low=-1.01, high=1.01),
}
SUMMARY: dict[str, Any] = {
    "capture": str,
    "digest": str,
    "method": str,
    "chosen?": str,
    "parameters": dict,
    "seconds": {str: NUMBER},
    "iterations": int,
    "status": str,
    "history": [dict],
    "angular_error?": dict,
    "expected_error?": {"degrees": NUMBER, "grade": str},
    "versions": {str: object},
    "strengths?": {"choice": str, "corrected": bool, "factors": {str: NUMBER}},
    "conventions?": {str: str},
    "surface?": {"pixel_size?": NUMBER, "unit?": str},
}


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of ``summary.json``."""
    facts = read_json(folder / "summary.json", "summary", remedy=_not_a_result(folder))
    check_facts(facts, SUMMARY, damaged_result(folder / "summary.json"))
    return dict(facts)


def read_arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """Return normals, albedo and mask, and the arrays of ``extras.npz`` as ``map_...`` and ``array_...``."""
    remedy = _not_a_result(folder)
    arrays = {name: read_npy(folder / f"{name}.npy", name, remedy=remedy) for name in ARRAYS}
    sizes = check_arrays(arrays, ARRAYS, damaged_result(folder))
    extras = folder / "extras.npz"
    if extras.exists():
        found = read_npz(extras, "extras", remedy=remedy)
        specs = {
            name: ArraySpec("H W *", kinds="fuib", finite=False)
            for name in found
            if name[:4] == "map_"
        }
        specs |= {name: ArraySpec("*", kinds="fuib") for name in found if name.startswith("array_")}
        if "map_spread" in found:
            specs["map_spread"] = ArraySpec("H W", low=-_LARGEST, high=_LARGEST)
        check_arrays(found, specs, damaged_result(extras), sizes)
        arrays |= {name: found[name] for name in specs}
    return arrays


def read_depth(folder: Path, frame: tuple[int, ...]) -> FloatArray | None:
    """Return the heights (H, W) of a result; None if it has no surface."""
    path = folder / "depth.npy"
    if not path.is_file():
        return None
    depth = map_array(path, "depth", frame, mapped=False).astype(np.float32, copy=False)
    mask = np.asarray(map_array(folder / "mask.npy", "mask", frame), dtype=bool)
    if not np.isfinite(depth[mask]).all():
        raise damaged_result(path)("depth has values inside the mask that are not finite")
    return depth


def read_truth(path: Path, frame: tuple[int, ...] | None = None) -> FloatArray:
    """Read true normals from an ``.npy`` file."""
    remedy = "Save the true normals as an H × W × 3 array of numbers."
    return map_array(path, "truth", frame, mapped=False, remedy=remedy).astype(
        np.float32, copy=False
    )


def map_array(
    path: Path,
    name: str,
    frame: tuple[int, ...] | None = None,
    *,
    mapped: bool = True,
    remedy: str = "",
) -> NDArray[Any]:
    """Memory-map or read one array of a result, and check it."""
    array = read_npy(path, name, remedy=remedy or _not_a_result(path.parent), mapped=mapped)
    sizes = {} if frame is None else {"H": frame[0], "W": frame[1]}
    check_arrays({name: array}, {name: FILES[name]}, damaged_result(path, remedy), sizes)
    return array


def is_result(folder: Path) -> bool:
    """Return whether a folder looks like the result of a solve."""
    return (folder / "summary.json").is_file() and (folder / "normals.npy").is_file()


def _not_a_result(folder: Path) -> str:
    return f"{folder} is not a result folder: give the output folder of a solve."


def damaged_result(path: Path, remedy: str = "") -> Callable[[str], CaptureError]:
    def complaint(problem: str) -> CaptureError:
        advice = remedy or "Solve again."
        return CaptureError(
            f"The result in {path} is damaged: {problem}. {advice}",
            code="damaged-result",
            file=path,
            problem=problem,
        )

    return complaint
