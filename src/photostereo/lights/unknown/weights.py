"""The archive of the network that estimates lights (:mod:`photostereo.io.network_weights`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from photostereo.io import network_weights
from photostereo.io.network_weights import Weights
from photostereo.lights.unknown.architecture import expected_shapes

SHIPPED_DIGEST = "e19b3d42c7b3627b1eac4978033ec351c00fd22fa9d67d4c343a29e4792220f1"


def _shapes(arrays: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    return expected_shapes()


def read_weights(path: str | Path) -> Weights:
    """Weights of an archive that ``photostereo train --model lights`` wrote."""
    return network_weights.read_weights(path, _shapes)


def shipped_weights() -> Weights:
    """The weights that the package brings."""
    return network_weights.shipped_weights(__package__, _shapes, SHIPPED_DIGEST)
