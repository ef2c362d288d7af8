"""The smoothness prior's loops over pixels, compiled; each pixel writes nothing but its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit, prange

Array = NDArray[Any]


@njit(cache=True)  # type: ignore[untyped-decorator]
def distance(n: Array, i: int, j: int) -> float:
    """|n_i − n_j|."""
    x, y, z = n[j, 0] - n[i, 0], n[j, 1] - n[i, 1], n[j, 2] - n[i, 2]
    return float(np.sqrt(x * x + y * y + z * z))


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def bound(n: Array, neighbors: Array, lam: float, delta: float, weight: Array, pull: Array) -> None:
    """w = 2 λ Σ ω (N,) and q = λ Σ ω (n_i + n_j) (N, 3)."""
    for i in prange(n.shape[0]):
        total, x, y, z = 0.0, 0.0, 0.0, 0.0
        for k in range(4):
            j = neighbors[i, k]
            if j >= 0:
                length = distance(n, i, j)
                omega = 1.0 if length <= delta else delta / length
                total += omega
                x += omega * (n[i, 0] + n[j, 0])
                y += omega * (n[i, 1] + n[j, 1])
                z += omega * (n[i, 2] + n[j, 2])
        weight[i] = 2.0 * lam * total
        pull[i, 0], pull[i, 1], pull[i, 2] = lam * x, lam * y, lam * z


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def roughness(n: Array, neighbors: Array, delta: float, out: Array) -> None:
    """(N,) Σ φ over the links to the right and down."""
    for i in prange(n.shape[0]):
        total = 0.0
        for k in range(2):
            j = neighbors[i, k]
            if j >= 0:
                length = distance(n, i, j)
                total += length * length if length <= delta else delta * (2.0 * length - delta)
        out[i] = total
