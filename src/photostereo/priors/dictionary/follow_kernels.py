"""The dictionary pass where the new atoms are known beforehand: every patch for itself.

With learning, atom i + 1 waits for the sum over all patches that makes atom i. Where the atoms are given, a patch
needs no other: its codes and its residual stay in the first-level cache from the first atom to the last, and the
threads never meet. The result is that of a pass atom by atom, to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.priors.dictionary.pass_kernels import REORDER, products
from photostereo.runtime.loops import njit, prange

Array = NDArray[Any]


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
    first: int,
    last: int,
) -> None:
    """Codes B and residual R of the patches ``first`` to ``last`` after a pass in which each atom of D is replaced by the
    given one when its turn is over.

    ``gram[k, j] = d_k . d_j`` and ``gram_new[k, j] = given_k . d_j``.
    """
    K = D.shape[0]
    for c in prange(-(-(last - first) // chunk)):
        low, high = first + c * chunk, min(first + (c + 1) * chunk, last)
        H = np.empty((high - low, block), R.dtype)
        for start in range(0, K, block):
            end = min(start + block, K)
            part = R[low:high]
            products(part, D[start:end], H.T)
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
