"""Weight archives of the set network and of the context network.

The format is that of :mod:`photostereo.io.network_weights`.

The arrays of stage 0 of the set network are named ``0.first.linear.weight`` and so on, as in torch,
so that one table serves both implementations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from photostereo.io.network_weights import Weights as Weights
from photostereo.io.network_weights import read_weights, shipped_weights
from photostereo.reflectance.learned import context
from photostereo.reflectance.learned.constants import FEATURES
from photostereo.reflectance.learned.context import network as context_form

#: SHA-256 of the built-in weights of the set network...
SHIPPED_DIGEST = "d69eb66b8dfc10a865fb2192fe153dc695ad871ef85f3604fb3529497564288e"
#: ... and of the context network.
CONTEXT_DIGEST = "30f43b416fd75679b13d1f1c656ad67faff99fc79303b04f871f6add619e9b92"
#: Layers of a stage; besides, it has the linear maps ``context`` and ``out``.
LAYERS = ("first", "second", "third", "fourth", "head")
#: Largest width in an archive; the built-in one has 96.
MOST_WIDTH = 1024
#: Most stages in an archive; the built-in one has two.
MOST_STAGES = 8


def expected_shapes(width: int, stages: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array of a set network."""
    inputs = {
        "first": FEATURES,
        "second": width,
        "third": width,
        "fourth": width,
        "head": 2 * width,
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for stage in range(stages):
        for name in LAYERS:
            shapes[f"{stage}.{name}.linear.weight"] = (width, inputs[name])
            for vector in ("linear.bias", "gain", "shift"):
                shapes[f"{stage}.{name}.{vector}"] = (width,)
        for name, rows, columns in (("context", width, 2 * width), ("out", 4, width)):
            shapes[f"{stage}.{name}.weight"] = (rows, columns)
            shapes[f"{stage}.{name}.bias"] = (rows,)
    return shapes


def shapes_of(arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes required for a set network of this archive's width."""
    bias = arrays.get("0.second.linear.bias")
    width = 1 if bias is None else max(bias.size, 1)
    return expected_shapes(min(width, MOST_WIDTH), min(stages_of(arrays), MOST_STAGES))


def stages_of(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of stages in an archive; at least one."""
    return max(1, len({name.partition(".")[0] for name in arrays}))


def set_network(path: str | Path | None = None) -> Weights:
    """Read the weights of the set network from a file; by default, the built-in ones."""
    if path is None:
        return shipped_weights(__package__, shapes_of, SHIPPED_DIGEST)
    return read_weights(path, shapes_of)


def context_network() -> Weights:
    """Read the built-in weights of the context network."""
    return shipped_weights(context.__name__, context_form.expected_shapes, CONTEXT_DIGEST)
