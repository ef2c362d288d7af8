"""Network weights: float16 arrays in a NumPy archive with a digest, never a pickle.

Every name and shape is known beforehand, and the digest covers every name, shape and byte: a wrong or damaged file is
rejected before it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.safe import read_npz

#: The name of the archive in a package that includes one.
SHIPPED = "weights.npz"
#: Maximum size of an archive in bytes; the largest one that is shipped has 3.5 MB.
MOST_BYTES = 64 << 20
REMEDY = "Use a file that `photostereo train` wrote, or the built-in weights."

#: The expected shape of every array by name, given the arrays found (some networks come in several widths).
Shapes = Callable[[Mapping[str, NDArray[np.float16]]], Mapping[str, tuple[int, ...]]]


@dataclass(frozen=True, eq=False)
class Weights:
    """Read-only float32 arrays by name, and the digest of the float16 numbers in the archive."""

    arrays: Mapping[str, Float32]
    digest: str


def digest_of(arrays: Mapping[str, NDArray[np.float16]]) -> str:
    """SHA-256 over names, shapes and numbers, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], dtype="<f2")
        total.update(f"{name}{values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()


def read_weights(path: str | Path, shapes: Shapes) -> Weights:
    """Read weights that ``photostereo train`` wrote; raise :class:`ParameterError` if the archive is not valid."""
    path = Path(path)
    try:
        content = read_npz(path, "network weights", remedy=REMEDY, limit=MOST_BYTES)
    except CaptureError as error:
        raise ParameterError(str(error), code="unreadable-weights", file=path) from error
    claimed = str(content.pop("digest", ""))
    expected = shapes(content)
    for name in (*expected, *content):
        if not _is_half(content.get(name), expected.get(name)):
            problem = (
                f"{name} is missing, unknown, or not of the expected shape in finite 16-bit numbers"
            )
            raise ParameterError(
                f"{path} does not hold network weights: {problem}. {REMEDY}",
                code="not-weights",
                file=path,
                problem=problem,
            )
    if claimed != digest_of(content):
        raise ParameterError(
            f"The network weights in {path} do not match their digest: the file was damaged or "
            f"edited. {REMEDY}",
            code="damaged-weights",
            file=path,
        )
    arrays = {
        name: np.ascontiguousarray(values.astype(np.float32)) for name, values in content.items()
    }
    for values in arrays.values():
        values.flags.writeable = False
    return Weights(arrays, claimed)


def _is_half(array: NDArray[np.float16] | None, shape: tuple[int, ...] | None) -> bool:
    """Whether an array has a shape, and finite numbers of 16 bits."""
    if array is None or array.shape != shape:
        return False
    return array.dtype == np.float16 and bool(np.isfinite(array).all())


@cache
def shipped_weights(package: str, shapes: Shapes, digest: str) -> Weights:
    """Read the weights that a package includes.

    Parameters
    ----------
    package : str
        The package that holds the archive.
    shapes : callable
        Returns the expected shapes.
    digest : str
        The digest in the source code; that of the archive must be the same.
    """
    with as_file(files(package) / SHIPPED) as path:
        weights = read_weights(path, shapes)
    if weights.digest != digest:
        raise ParameterError(
            "The installed network weights are not those of this version. Install photostereo "
            "again.",
            code="wrong-shipped-weights",
        )
    return weights
