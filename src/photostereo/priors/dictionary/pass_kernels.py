"""The loops of the compiled dictionary pass; ``compiled`` explains the method and has the function to call.

A *change* of atom k is a patch whose code is not zero before or after the update. The lists ``patch``,
``old`` and ``new`` (block, w) hold the changes of atom k in row k; those of one chunk start at its first
patch, ``low``.

All of it is in one file because Numba's cache on disk notices an edit only in the file of the function called.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered and fused, which vectorisation needs; infinities and NaN keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True)  # type: ignore[untyped-decorator]
def ordered_sum(values: Array) -> Any:
    """The sum in the order of the array; in the parallel function ``values.sum()`` would go by threads."""
    total = values[0] * 0
    for value in values:
        total += value
    return total


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def dot(a: Array, b: Array) -> Any:
    """The inner product, in the arrays' own precision."""
    total = a[0] * b[0]
    for t in range(1, a.size):
        total += a[t] * b[t]
    return total


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def products(R: Array, D: Array, H: Array) -> None:
    """``H[j, p] = d_j . r_p``, in tiles of 2 patches by 4 atoms, whose sums stay in registers.

    The atoms are taken in panels of 16, which stay in the first-level cache while the patches go by.
    """
    w, m = R.shape
    K = D.shape[0]
    zero = R.dtype.type(0)
    for panel in range(0, K - 3, 16):
        for p in range(0, w - 1, 2):
            r0, r1 = R[p], R[p + 1]
            for j in range(panel, min(panel + 16, K - 3), 4):
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
                H[j, p], H[j + 1, p], H[j + 2, p], H[j + 3, p] = s00, s01, s02, s03
                H[j, p + 1], H[j + 1, p + 1], H[j + 2, p + 1], H[j + 3, p + 1] = s10, s11, s12, s13
    for p in range(w):  # what the tiles leave over
        for j in range(0 if p >= w - w % 2 else K - K % 4, K):
            H[j, p] = dot(R[p], D[j])


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def correct(
    h: Array,
    i: int,
    patch: Array,
    old: Array,
    new: Array,
    changes: Array,
    low: int,
    gram_old: Array,
    gram_new: Array,
) -> None:
    """``h += g_k_old (d_k_old . d_i) - g_k (d_k . d_i)`` for all the changes of the earlier atoms k < i."""
    for k in range(i):
        a, b = gram_old[k], gram_new[k]
        for t in range(low, low + changes[k]):
            h[patch[k, t]] += old[k, t] * a - new[k, t] * b


@njit(cache=True)  # type: ignore[untyped-decorator]
def threshold(
    h: Array,
    g: Array,
    mu: Any,
    q: Any,
    low: int,
    high: int,
    patch: Array,
    old: Array,
    new: Array,
    earlier: Array,
    latest: Array,
    offset: int,
) -> tuple[int, int, int]:
    """``g <- H_mu(h + g)`` clipped to q; lists the changes; counts changes, non-zeros and clipped codes."""
    zero = mu - mu
    at, kept, held = low, 0, 0
    for p in range(low, high):
        before = g[p]
        y = h[p] + before
        if abs(y) < mu and before == zero:
            continue
        after = min(max(y, -q), q) if abs(y) >= mu else zero
        g[p] = after
        kept += after != zero
        held += abs(after) == q
        patch[at], old[at], new[at] = p, before, after
        earlier[at] = latest[p]
        latest[p] = offset + at
        at += 1
    return at - low, kept, held


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def accumulate(R: Array, patch: Array, new: Array, low: int, count: int, toward: Array) -> None:
    """``toward = sum_p g_p r_p`` over the changes; four at a time, to wait less for rows of R from memory."""
    for s in range(toward.size):
        toward[s] = 0
    end = low + count - count % 4
    for t in range(low, end, 4):
        r0, r1, r2, r3 = R[patch[t]], R[patch[t + 1]], R[patch[t + 2]], R[patch[t + 3]]
        g0, g1, g2, g3 = new[t], new[t + 1], new[t + 2], new[t + 3]
        for s in range(toward.size):
            toward[s] += (g0 * r0[s] + g1 * r1[s]) + (g2 * r2[s] + g3 * r3[s])
    for t in range(end, low + count):
        r, g = R[patch[t]], new[t]
        for s in range(toward.size):
            toward[s] += g * r[s]


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def overlaps(
    i: int, old: Array, new: Array, earlier: Array, low: int, count: int, with_old: Array, with_new: Array
) -> None:
    """``with_old[k] = g_k_old . g_i`` for k <= i and ``with_new[k] = g_k . g_i`` for k < i, in one chunk.

    Follows, from each patch where g_i is not zero, the chain of that patch's changes in the earlier atoms.
    """
    for k in range(i + 1):
        with_old[k] = 0
        with_new[k] = 0
    w = old.shape[1]
    for t in range(low, low + count):
        g = new[i, t]
        if g != 0:
            with_old[i] += old[i, t] * g
            link = earlier[i, t]
            while link >= 0:
                k = link // w
                at = link - k * w
                with_old[k] += old[k, at] * g
                with_new[k] += new[k, at] * g
                link = earlier[k, at]


@njit(cache=True)  # type: ignore[untyped-decorator]
def new_atom(
    D_old: Array, D: Array, i: int, is_used: bool, toward: Array, overlap_old: Array, overlap_new: Array
) -> None:
    """``d_i <- E_i^T g_i / ||E_i^T g_i||``, or e_1 where g_i = 0; adds the chunks' sums in their order."""
    d = D[i]
    if not is_used:
        for s in range(d.size):
            d[s] = 0
        d[0] = 1
        return
    direction = np.zeros(d.size)
    for c in range(toward.shape[0]):
        for s in range(d.size):
            direction[s] += toward[c, s]
    for k in range(i + 1):
        a = b = 0.0
        for c in range(toward.shape[0]):
            a += overlap_old[c, k]
            b += overlap_new[c, k]
        for s in range(d.size):
            direction[s] += a * D_old[k, s] - b * D[k, s]
    length = math.sqrt(dot(direction, direction))
    if length > 0:  # else every unit vector does equally well, and d_i stays
        for s in range(d.size):
            d[s] = direction[s] / length


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def apply_changes(
    R: Array, D_old: Array, D: Array, patch: Array, old: Array, new: Array, changes: Array, low: int
) -> None:
    """``r_p += g_k_old d_k_old - g_k d_k`` for all the changes of the block in one chunk."""
    for k in range(D.shape[0]):
        before, after = D_old[k], D[k]
        for t in range(low, low + changes[k]):
            r = R[patch[k, t]]
            a, b = old[k, t], new[k, t]
            for s in range(r.size):
                r[s] += a * before[s] - b * after[s]


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def sum_of_squares(R: Array) -> float:
    """``||R||_F^2`` in double precision."""
    total = 0.0
    for p in range(R.shape[0]):
        for s in range(R.shape[1]):
            total += np.float64(R[p, s]) * np.float64(R[p, s])
    return total


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def run_pass(
    R: Array, D: Array, B: Array, mu: Any, q: Any, update_atoms: bool, given: Array, chunk: int, work: Any
) -> tuple[float, int, int, int]:
    """The whole pass; ``work`` is a ``compiled._Workspace``. Residual, non-zeros, codes at q, empty atoms.

    Atoms that are ``given`` take the place of those that would be learned; an empty array gives none.
    """
    H, D_old, patch, old, new, earlier, latest, changes = work[:8]
    gram_old, gram_new, toward, overlap_old, overlap_new = work[8:13]
    used, nonzeros, clipped, squared = work[13:]
    w, m = R.shape
    K = D.shape[0]
    chunks, block = changes.shape
    empty = 0
    first, size = 0, 0  # of the block whose changes R still lacks
    for start in range(0, K, block):
        for c in prange(chunks):
            low, high = c * chunk, min((c + 1) * chunk, w)
            apply_changes(R, D_old, D[first : first + size], patch, old, new, changes[c], low)
            products(R[low:high], D[start : start + block], H[:, low:high])
            for p in range(low, high):
                latest[p] = -1
        first, size = start, min(block, K - start)
        for k in range(size):
            for s in range(m):
                D_old[k, s] = D[first + k, s]
        for i in range(size):
            for c in prange(chunks):
                low, high = c * chunk, min((c + 1) * chunk, w)
                correct(H[i], i, patch, old, new, changes[c], low, gram_old[i], gram_new[i])
                count, kept, held = threshold(
                    H[i], B[first + i], mu, q, low, high, patch[i], old[i], new[i], earlier[i], latest, i * w
                )
                changes[c, i] = count
                used[c] = kept
                nonzeros[c] += kept
                clipped[c] += held
                if update_atoms:
                    accumulate(R, patch[i], new[i], low, count, toward[c])
                    overlaps(i, old, new, earlier, low, count, overlap_old[c], overlap_new[c])
            is_used = ordered_sum(used) > 0
            empty += not is_used
            if given.size > 0:
                for s in range(m):
                    D[first + i, s] = given[first + i, s]
            elif update_atoms:
                new_atom(D_old, D[first : first + size], i, is_used, toward, overlap_old, overlap_new)
            for j in range(i + 1, size):
                gram_old[j, i] = dot(D_old[i], D[first + j])
                gram_new[j, i] = dot(D[first + i], D[first + j])
    for c in prange(chunks):
        low, high = c * chunk, min((c + 1) * chunk, w)
        apply_changes(R, D_old, D[first : first + size], patch, old, new, changes[c], low)
        squared[c] = sum_of_squares(R[low:high])
    return ordered_sum(squared), ordered_sum(nonzeros), ordered_sum(clipped), empty


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def squared_norm_by_chunks(R: Array, chunk: int, squared: Array) -> float:
    """``||R||_F^2``; ``squared`` has room for one number per chunk."""
    for c in prange(squared.size):
        squared[c] = sum_of_squares(R[c * chunk : min((c + 1) * chunk, R.shape[0])])
    return float(ordered_sum(squared))
