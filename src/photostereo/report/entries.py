"""Results, mask and reference shown on a comparison page."""

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
class Basis:
    """What results are compared on: the pixels, the truth and the photographs, if there are any."""

    name: str
    mask: BoolArray
    truth: FloatArray | None
    capture: Capture | None


@dataclass(frozen=True)
class Entry:
    """A result on the page: its key in the page's data, its name, its normals and their error."""

    key: str
    name: str
    title: str
    normals: FloatArray
    error: FloatArray | None
    folder: str | None = None
    depth: FloatArray | None = None


def basis_of(results: Sequence[Reconstruction], capture: Capture | None, truth: FloatArray | None) -> Basis:
    """The basis of results: that of their capture, or without it the pixels that all of them know."""
    frame = results[0].normals.shape[:2] if capture is None else capture.frame
    for result in results:
        _require_size(f"The result of {result.method}", result.normals, frame)
    if capture is not None:
        return Basis(capture.name, capture.mask, capture.truth if truth is None else truth, capture)
    if truth is not None:
        _require_size("The truth", truth, frame)
    mask = np.logical_and.reduce([result.mask for result in results])
    if not mask.any():
        raise ParameterError(
            "The results have no pixel in common. Compare results of one capture.", code="nothing-in-common"
        )
    return Basis(results[0].capture, mask, truth, None)


def _require_size(what: str, array: FloatArray, frame: tuple[int, ...]) -> None:
    if array.shape[:2] != frame:
        found, expected = (" × ".join(map(str, shape[:2])) for shape in (array.shape, frame))
        raise ParameterError(
            f"{what} measures {found} pixels, the others {expected}. Compare results of one capture.",
            code="sizes-differ",
        )


def entries_of(
    results: Sequence[Reconstruction],
    basis: Basis,
    *,
    labels: Sequence[str] | None = None,
    depths: Sequence[FloatArray | None] | None = None,
    folders: Sequence[str] | None = None,
) -> list[Entry]:
    """All results, then the truth, if it is known. Keys are our own, so that no name can do harm."""
    if depths is not None and len(depths) != len(results):
        raise ParameterError(
            f"{len(results)} results but {len(depths)} depth maps were given. Give one for each, or None.",
            code="counts-differ",
        )
    entries = []
    for number, result in enumerate(results):
        depth = None if depths is None else depths[number]
        if depth is not None:
            _require_size(f"The depth map of {result.method}", depth, basis.mask.shape)
        if depth is not None and not np.isfinite(depth[basis.mask]).any():
            depth = None
        truth = basis.truth
        entries.append(
            Entry(
                f"r{number}",
                result.method if labels is None else labels[number],
                wording.method_words(result.method)[0],
                result.normals,
                None if truth is None else angular_error(result.normals, truth, basis.mask),
                None if folders is None else folders[number],
                depth,
            )
        )
    if basis.truth is not None:
        folder = None if folders is None else "truth"
        entries.append(Entry("truth", "truth", "True normals", basis.truth, None, folder))
    return entries
