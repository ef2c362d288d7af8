"""The network's numbers: float16 in a NumPy archive with a digest, never a pickle.

``stages`` layers of the same shape, named ``0.first.weight`` and so on (torch's names, so that one table serves both
forms). The digest covers every name, shape and byte: a damaged or edited file is refused, not used.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import ParameterError

#: The archive that the package brings, and its digest.
SHIPPED = "weights.npz"
SHIPPED_DIGEST = "5a41cf812676237855a87328ae0f0f2d2c98caf5728fb1c8fb3158596787f717"
LAYERS = ("first", "second", "third", "fourth", "head")


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


def digest_of(arrays: dict[str, NDArray[np.float16]]) -> str:
    """SHA-256 over names, shapes and numbers, in the order of the names.

    >>> digest_of({"a": np.zeros(2, np.float16)})[:8]
    'c89137e8'
    """
    total = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], dtype="<f2")
        total.update(f"{name}{values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()


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


def read_weights(path: str | Path) -> Weights:
    """Weights of an archive that ``photostereo train`` wrote.

    Raises
    ------
    ParameterError
        If the file is missing, is no such archive, or does not match its own digest.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        claimed = str(content.pop("digest"))
        arrays = {name: values for name, values in content.items() if values.dtype == np.float16}
        weights = assemble(arrays)
    except FileNotFoundError as error:
        raise ParameterError(
            f"There are no weights at {path}. Give a file that `photostereo train` wrote."
        ) from error
    except Exception as error:  # NumPy and zipfile raise whatever the bytes lead to
        raise ParameterError(
            f"{path} is not a file of network weights ({error}). Give one that `photostereo train` wrote."
        ) from error
    if claimed != weights.digest:
        raise ParameterError(
            f"The weights in {path} do not match their digest: the file was damaged or edited. Restore it, or train "
            "again with `photostereo train`."
        )
    return weights


@cache
def shipped_weights() -> Weights:
    """The weights that the package brings; their digest is that of the source."""
    with as_file(files(__package__) / SHIPPED) as path:
        weights = read_weights(path)
    if weights.digest != SHIPPED_DIGEST:
        raise ParameterError(
            "The installed network weights are not those of this version. Install photostereo again."
        )
    return weights
