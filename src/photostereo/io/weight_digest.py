"""The digest by which a file of network weights is recognized."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def digest_of(arrays: Mapping[str, NDArray[np.float16]]) -> str:
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
