"""Who stands on a comparison page, and on what ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from photostereo.capture import Capture
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import angular_error
from photostereo.report import wording
from photostereo.solver.reconstruction import Reconstruction


@dataclass(frozen=True)
class Ground:
    """What results are compared on: the pixels, the truth where it is known, the photographs where they are there."""

    name: str
    mask: BoolArray
    truth: FloatArray | None
    capture: Capture | None


@dataclass(frozen=True)
class Contestant:
    """A result on the page: its key in the page's data, its name, its normals and their error."""

    key: str
    name: str
    title: str
    normals: FloatArray
    error: FloatArray | None
    folder: str | None = None
    depth: FloatArray | None = None


def ground_of(results: Sequence[Reconstruction], capture: Capture | None, truth: FloatArray | None) -> Ground:
    """The ground of results: that of their capture, or without it the pixels that all of them know."""
    frame = results[0].normals.shape[:2] if capture is None else capture.frame
    against = results[0].method if capture is None else "the capture"
    for result in results:
        if result.normals.shape[:2] != frame:
            raise ParameterError(
                f"The result of {result.method} measures {_size(result.normals.shape)} pixels but {against} "
                f"{_size(frame)}. Compare results of one capture.",
                code="sizes-differ",
            )
    if capture is not None:
        truth = capture.truth if truth is None else truth
        return Ground(capture.name, capture.mask, truth, capture)
    if truth is not None and truth.shape[:2] != frame:
        raise ParameterError(
            f"The truth measures {_size(truth.shape)} pixels but the results {_size(frame)}. Give that of their capture.",
            code="sizes-differ",
        )
    mask = np.logical_and.reduce([result.mask for result in results])
    if not mask.any():
        raise ParameterError(
            "The results have no pixel in common. Compare results of one capture.", code="nothing-in-common"
        )
    return Ground(results[0].capture, mask, truth, None)


def _size(shape: tuple[int, ...]) -> str:
    return " × ".join(str(side) for side in shape[:2])


def contestants_of(
    results: Sequence[Reconstruction],
    ground: Ground,
    *,
    labels: Sequence[str] | None = None,
    depths: Sequence[FloatArray | None] | None = None,
    folders: Sequence[str] | None = None,
) -> list[Contestant]:
    """All results, then the truth where it is known. Keys are the page's own, so that no name can do harm."""
    if depths is not None and len(depths) != len(results):
        raise ParameterError(
            f"{len(results)} results but {len(depths)} depth maps were given. Give one for each, or None.",
            code="counts-differ",
        )
    everyone = []
    for number, result in enumerate(results):
        depth = None if depths is None else depths[number]
        if depth is not None and depth.shape != ground.mask.shape:
            raise ParameterError(
                f"The depth map of {result.method} measures {_size(depth.shape)} pixels but its normals "
                f"{_size(ground.mask.shape)}. Compare results of one capture.",
                code="sizes-differ",
            )
        if depth is not None and not np.isfinite(depth[ground.mask]).any():
            depth = None
        truth = ground.truth
        everyone.append(
            Contestant(
                f"r{number}",
                result.method if labels is None else labels[number],
                wording.method_title(result.method),
                result.normals,
                None if truth is None else angular_error(result.normals, truth, ground.mask),
                None if folders is None else folders[number],
                depth,
            )
        )
    if ground.truth is not None:
        folder = None if folders is None else "truth"
        everyone.append(Contestant("truth", "truth", "True normals", ground.truth, None, folder))
    return everyone
