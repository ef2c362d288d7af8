"""Sixteen hexadecimal digits that identify a capture."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray


def digest_of(
    shape: tuple[int, ...], photographs: Iterable[bytes], lights: FloatArray, mask: BoolArray
) -> str:
    """The digest of a capture, from the :func:`hash_of` each of its photographs."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr((shape, np.dtype(np.float32).str)).encode())
    for array in (lights, mask):
        state.update(repr((array.shape, array.dtype.str)).encode())
    for part in (*photographs, hash_of(lights), hash_of(mask)):
        state.update(part)
    return state.hexdigest()


def hash_of(array: NDArray[Any]) -> bytes:
    """Of the content of an array."""
    # SHA-256 has instructions of its own on today's processors: twice as fast as BLAKE2 there.
    return hashlib.sha256(np.ascontiguousarray(array).data).digest()
