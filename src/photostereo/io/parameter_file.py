"""Arrays that a parameter gives by the name of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.safe import read_npy


def array_in_file(path: Path, what: str, remedy: str) -> Any:
    """The numbers in an ``.npy`` file that a parameter names, as float64."""
    try:
        array = read_npy(path, what, remedy=remedy)
    except CaptureError as problem:
        raise ParameterError(str(problem), code=problem.code, file=path) from problem
    if array.dtype.kind not in "fiu":
        raise ParameterError(
            f"The {what} {path} holds values of type {array.dtype}. {remedy}", code="wrong-type", file=path
        )
    return array.astype("float64")
