"""The network's numbers: float16 in a NumPy archive with a digest, never a pickle.

The arrays of stage 0 are named ``0.first.linear.weight`` and so on (torch's names, so that one table serves both forms).
The digest covers every name, shape and byte, and every name, shape and type is checked: a damaged file is refused before
a compiled loop could read beyond its arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.safe import read_npz
from photostereo.io.weight_digest import digest_of
from photostereo.reflectance.learned.constants import FEATURES

#: The archive that the package brings, and its digest.
SHIPPED = "weights.npz"
SHIPPED_DIGEST = "5a41cf812676237855a87328ae0f0f2d2c98caf5728fb1c8fb3158596787f717"
LAYERS = ("first", "second", "third", "fourth", "head")
#: Limits of an archive: the shipped one has 0.3 MB, a width of 96 and two stages.
MOST_BYTES, MOST_WIDTH, MOST_STAGES = 64 << 20, 1024, 8
REMEDY = "Use a file that `photostereo train` wrote, or the package's own weights."


@dataclass(frozen=True)
class Layer:
    """One layer: hardswish(gain · (x W + bias) / rms + shift), W stored input first."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    gain: NDArray[np.float32]
    shift: NDArray[np.float32]


@dataclass(frozen=True)
class StageWeights:
    """The layers of one stage; ``context`` and ``out`` are plain affine maps (W, b)."""

    first: Layer
    second: Layer
    third: Layer
    fourth: Layer
    head: Layer
    context: tuple[NDArray[np.float32], NDArray[np.float32]]
    out: tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Weights:
    """A whole network and the digest of its numbers."""

    stages: tuple[StageWeights, ...]
    digest: str
    arrays: dict[str, NDArray[np.float16]]

    @property
    def width(self) -> int:
        return int(self.stages[0].second.bias.size)


def assemble(arrays: dict[str, NDArray[np.float16]]) -> Weights:
    """Weights from an archive's arrays."""

    def number(name: str) -> NDArray[np.float32]:
        return np.ascontiguousarray(arrays[name].astype(np.float32))

    def affine(name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.ascontiguousarray(number(f"{name}.weight").T), number(f"{name}.bias")

    def layer(name: str) -> Layer:
        return Layer(*affine(f"{name}.linear"), number(f"{name}.gain"), number(f"{name}.shift"))

    count = 1 + max(int(name.split(".")[0]) for name in arrays)
    stages = tuple(
        StageWeights(
            **{name: layer(f"{stage}.{name}") for name in LAYERS},
            context=affine(f"{stage}.context"),
            out=affine(f"{stage}.out"),
        )
        for stage in range(count)
    )
    return Weights(stages, digest_of(arrays), dict(arrays))


def expected_shapes(width: int, stages: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array of a network.

    >>> expected_shapes(96, 2)["1.first.linear.weight"]
    (96, 19)
    """
    inputs = {"first": FEATURES, "second": width, "third": width, "fourth": width, "head": 2 * width}
    shapes: dict[str, tuple[int, ...]] = {}
    for stage in range(stages):
        for name in LAYERS:
            shapes[f"{stage}.{name}.linear.weight"] = (width, inputs[name])
            for vector in ("linear.bias", "gain", "shift"):
                shapes[f"{stage}.{name}.{vector}"] = (width,)
        for name, rows, columns in (("context", width, 2 * width), ("out", 4, width)):
            shapes[f"{stage}.{name}.weight"], shapes[f"{stage}.{name}.bias"] = (rows, columns), (rows,)
    return shapes


def read_weights(path: str | Path) -> Weights:
    """Weights of an archive that ``photostereo train`` wrote; checked completely before anything is computed with them.

    Raises
    ------
    ParameterError
        If the file is missing, is no such archive, or does not match its own digest.
    """
    path = Path(path)
    try:
        content = read_npz(path, "network weights", remedy=REMEDY, limit=MOST_BYTES)
    except CaptureError as error:
        raise ParameterError(str(error), code="unreadable-weights", file=path) from error
    claimed = str(content.pop("digest", ""))
    problem = _problem(content)
    if problem:
        raise ParameterError(
            f"{path} does not hold network weights: {problem}. {REMEDY}",
            code="not-weights",
            file=path,
            problem=problem,
        )
    weights = assemble(content)
    if claimed != weights.digest:
        raise ParameterError(
            f"The network weights in {path} do not match their digest: the file was damaged or edited. {REMEDY}",
            code="damaged-weights",
            file=path,
        )
    return weights


def _problem(arrays: dict[str, NDArray[Any]]) -> str:
    """What is wrong with the arrays of an archive; empty if nothing is."""
    stages = {name.partition(".")[0] for name in arrays}
    bias = arrays.get("0.second.linear.bias")
    if bias is None or bias.ndim != 1 or not 1 <= bias.size <= MOST_WIDTH or len(stages) > MOST_STAGES:
        return "its layers are not those of the network"
    shapes = expected_shapes(bias.size, len(stages))
    different = sorted(shapes.keys() ^ arrays.keys())
    if different:
        return f"{different[0]} is {'missing' if different[0] in shapes else 'unknown'}"
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float16:
            return f"{name} is {array.dtype} of shape {array.shape}; expected float16 of shape {shape}"
        if not np.isfinite(array).all():
            return f"{name} holds values that are not finite"
    return ""


@cache
def shipped_weights() -> Weights:
    """The weights that the package brings; their digest is that of the source."""
    with as_file(files(__package__) / SHIPPED) as path:
        weights = read_weights(path)
    if weights.digest != SHIPPED_DIGEST:
        raise ParameterError(
            "The installed network weights are not those of this version. Install photostereo again.",
            code="wrong-shipped-weights",
        )
    return weights
