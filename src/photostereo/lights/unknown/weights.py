"""The archive of the network that estimates lights (:mod:`photostereo.io.network_weights`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from photostereo.io import network_weights
from photostereo.io.network_weights import Weights
from photostereo.lights.unknown.architecture import expected_shapes

SHIPPED_DIGEST = "17162c0df7463551858608b025b3f48344724dd3a3db5d6474e816754ff16fed"


def _shapes(arrays: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    return expected_shapes()


def read_weights(path: str | Path) -> Weights:
    """Weights of an archive that ``photostereo train --model lights`` wrote."""
    return network_weights.read_weights(path, _shapes)


def shipped_weights() -> Weights:
    """The weights that the package brings."""
    return network_weights.shipped_weights(__package__, _shapes, SHIPPED_DIGEST)
