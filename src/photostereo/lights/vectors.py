"""Vectors to lights: their lengths, and whether each has a direction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError


def require_directions(
    vectors: NDArray[Any], *, file: Path | None = None, names: Sequence[str] | None = None
) -> None:
    """Check that every vector (d, 3) is finite and not zero; raises ``"light-not-finite"`` or ``"light-zero"``."""
    faults = {
        "light-not-finite": (~np.isfinite(vectors).all(axis=1), "has a value that is NaN or infinite"),
        "light-zero": (np.abs(vectors).max(axis=1) < 1e-12, "is the zero vector, which has no direction"),
    }
    for code, (bad, words) in faults.items():
        if bad.any():
            number = int(np.argmax(bad))
            label = f"Light {number + 1}" + (f" ({names[number]})" if names else "")
            raise CaptureError(
                f"{label}{'' if file is None else f' in {file}'} {words}. Correct it, or leave out the photograph together "
                "with its light.",
                code=code,
                file=file,
                light=number + 1,
            )


def row_lengths(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The Euclidean norm of each row, even if its square would overflow.

    >>> [f"{length:.3g}" for length in row_lengths(np.array([[3.0, 0, 4], [3e200, 0, 4e200]]))]
    ['5', '5e+200']
    """
    top = np.abs(vectors).max(axis=1, initial=1e-300)
    far = np.where(top > 1e100, top, 1.0)
    return np.asarray(far * np.linalg.norm(vectors / far[:, None], axis=1))
