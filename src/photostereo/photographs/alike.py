"""What photographs of one capture must have in common, and the errors if they do not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError
from photostereo.photographs.develop import as_rgb

#: If the strengths of a light file follow the exposures.
CONTAINED = (
    "the exposure changes between the photographs, and the strengths in the light file change with it: they are assumed "
    "to include the exposure, which is not compensated again"
)
#: Strengths include the exposure if dividing by it leaves less than this share of its variation (in logarithms).
#: Independent strengths leave more than 1, measured ones that include it less than 0.1.
_LEFT = 0.35


def include_exposure(strengths: NDArray[Any], exposed: Sequence[float]) -> bool:
    """Whether strengths (d,) or (d, 3) follow the exposures: dividing by both would count these twice.

    >>> exposed = [0.5, 1.0, 2.0]
    >>> include_exposure(np.array([[1.1], [2.0], [3.9]]), exposed), include_exposure(np.ones((3, 1)), exposed)
    (True, False)
    """
    exposure = np.log(np.asarray(exposed))
    rest = np.log(as_rgb(np.asarray(strengths, np.float64)).mean(axis=1)) - exposure
    return bool(np.std(rest) < _LEFT * np.std(exposure))


def require_alike(frame: tuple[int, ...], path: Path, expected: tuple[int, int], first: Path) -> None:
    """Raise if a photograph has another height and width than the first."""
    if frame != expected:
        raise CaptureError(
            f"{path} is {frame[1]} × {frame[0]} pixels (width × height) but {first.name} is {expected[1]} × "
            f"{expected[0]}. All photographs must be taken from the same position and have the same size: export them "
            "again without cropping or rotating.",
            code="size-mismatch",
            file=path,
            found=frame,
            expected=expected,
        )


def mode_mismatch(path: Path, first: Path, *, first_is_color: bool) -> CaptureError:
    """A gray photograph among those in color, or the other way round."""
    own, usual = ("gray", "RGB") if first_is_color else ("RGB", "gray")
    return CaptureError(
        f"{path} is {own} but {first.name} is {usual}. Export all photographs in the same mode.",
        code="mode-mismatch",
        file=path,
    )


def companion_mismatch(path: Path, first: Path) -> CaptureError:
    """An ambient or flat photograph that does not belong to the others."""
    return CaptureError(
        f"{path} does not have the size or the color mode of {first.name}. Take it with the same camera settings as "
        "the photographs, or move it out of the folder.",
        code="companion-mismatch",
        file=path,
    )


def not_finite(path: Path, count: int) -> CaptureError:
    """A photograph with values that are no intensities."""
    return CaptureError(
        f"{path} has {count} values that are NaN, infinite or beyond 1e15. Export it again without undefined pixels, or "
        "leave it out together with its light.",
        code="photograph-not-finite",
        file=path,
        found=count,
    )
