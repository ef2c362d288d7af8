"""The archive of the network that estimates lights (:mod:`photostereo.io.network_weights`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from photostereo.io import network_weights
from photostereo.io.network_weights import Weights
from photostereo.lights.unknown.architecture import expected_shapes

SHIPPED_DIGEST = "fc3e4ff5694b129d649adfe198a40096bb217a4b36da5906239a8868219c588c"


def _shapes(arrays: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    return expected_shapes()


def read_weights(path: str | Path) -> Weights:
    """Weights of an archive that ``photostereo train --model lights`` wrote."""
    return network_weights.read_weights(path, _shapes)


def shipped_weights() -> Weights:
    """The weights that the package brings."""
    return network_weights.shipped_weights(__package__, _shapes, SHIPPED_DIGEST)
