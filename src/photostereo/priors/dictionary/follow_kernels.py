"""The dictionary pass where the new atoms are known beforehand: every patch for itself.

With learning, atom i + 1 waits for the sum over all patches that makes atom i. Where the atoms are given, a patch
needs no other: its codes and its residual stay in the first-level cache from the first atom to the last, and the
threads never meet. The result is that of :func:`.pass_kernels.run_pass` with the same atoms, to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Array = NDArray[Any]

REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _products(R: Array, D: Array, H: Array) -> None:
    """``H[p, j] = r_p . d_j`` in tiles of 2 patches by 4 atoms, whose sums stay in registers."""
    w, m = R.shape
    K = D.shape[0]
    zero = R.dtype.type(0)
    for p in range(0, w - 1, 2):
        r0, r1 = R[p], R[p + 1]
        for j in range(0, K - 3, 4):
            d0, d1, d2, d3 = D[j], D[j + 1], D[j + 2], D[j + 3]
            s00 = s01 = s02 = s03 = zero
            s10 = s11 = s12 = s13 = zero
            for t in range(m):
                a0, a1 = r0[t], r1[t]
                b0, b1, b2, b3 = d0[t], d1[t], d2[t], d3[t]
                s00 += a0 * b0
                s01 += a0 * b1
                s02 += a0 * b2
                s03 += a0 * b3
                s10 += a1 * b0
                s11 += a1 * b1
                s12 += a1 * b2
                s13 += a1 * b3
            H[p, j], H[p, j + 1], H[p, j + 2], H[p, j + 3] = s00, s01, s02, s03
            H[p + 1, j], H[p + 1, j + 1], H[p + 1, j + 2], H[p + 1, j + 3] = s10, s11, s12, s13
    for p in range(w):  # what the tiles leave over
        for j in range(0 if p >= w - w % 2 else K - K % 4, K):
            total = zero
            for t in range(m):
                total += R[p, t] * D[j, t]
            H[p, j] = total


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _follow(
    R: Array, before: Array, after: Array, B: Array, gram: Array, gram_new: Array, H: Array, mu: Any, q: Any
) -> None:
    """One block of atoms on one chunk of patches: codes, then residual."""
    zero = mu - mu
    size, m = before.shape
    for p in range(R.shape[0]):
        h, r = H[p], R[p]
        for i in range(size):
            old = B[i, p]
            y = h[i] + old
            if abs(y) < mu and old == zero:
                continue
            new = min(max(y, -q), q) if abs(y) >= mu else zero
            B[i, p] = new
            g, g_new = gram[i], gram_new[i]
            for j in range(i + 1, size):
                h[j] += old * g[j] - new * g_new[j]
            d, d_new = before[i], after[i]
            for t in range(m):
                r[t] += old * d[t] - new * d_new[t]


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def follow_pass(
    R: Array,
    D: Array,
    given: Array,
    B: Array,
    gram: Array,
    gram_new: Array,
    mu: Any,
    q: Any,
    chunk: int,
    block: int,
) -> None:
    """Codes B and residual R after a pass in which each atom of D is replaced by the given one when its turn is over.

    ``gram[k, j] = d_k . d_j`` and ``gram_new[k, j] = given_k . d_j``.
    """
    w = R.shape[0]
    K = D.shape[0]
    for c in prange(-(-w // chunk)):
        low, high = c * chunk, min((c + 1) * chunk, w)
        H = np.empty((high - low, block), R.dtype)
        for start in range(0, K, block):
            end = min(start + block, K)
            part = R[low:high]
            _products(part, D[start:end], H)
            _follow(
                part,
                D[start:end],
                given[start:end],
                B[start:end, low:high],
                gram[start:end, start:end],
                gram_new[start:end, start:end],
                H,
                mu,
                q,
            )
