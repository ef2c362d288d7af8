"""The loops of the compiled dictionary pass; ``compiled`` explains the method and has the function to call.

A *change* of atom k is a patch whose code is not zero before or after the update. The lists ``patch``,
``old`` and ``new`` (block, w) hold the changes of atom k in row k; those of one chunk start at its first
patch, and count the patches from there. All loops but the last two see the patches of one chunk only.

All of it is in one file because Numba's cache on disk notices an edit only in the file of the function called.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit, prange, shared

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


@njit(cache=True)  # type: ignore[untyped-decorator]
def copy_row(source: Array, target: Array) -> None:
    """``target[:] = source``, which Numba takes seconds to compile."""
    for s in range(source.size):
        target[s] = source[s]


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def dot(a: Array, b: Array) -> Any:
    """The inner product, in the arrays' own precision."""
    total = a[0] * b[0]
    for t in range(1, a.size):
        total += a[t] * b[t]
    return total


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def products(R: Array, D: Array, H: Array) -> None:
    """``H[j, p] = d_j . r_p``, in tiles of 3 patches by 4 atoms, whose sums stay in registers.

    The atoms are taken in panels of 16, which stay in the first-level cache while the patches go by.
    """
    w, m = R.shape
    K = D.shape[0]
    zero = R.dtype.type(0)
    for panel in range(0, K - 3, 16):
        for p in range(0, w - 2, 3):
            r0, r1, r2 = R[p], R[p + 1], R[p + 2]
            for j in range(panel, min(panel + 16, K - 3), 4):
                d0, d1, d2, d3 = D[j], D[j + 1], D[j + 2], D[j + 3]
                s00 = s01 = s02 = s03 = zero
                s10 = s11 = s12 = s13 = zero
                s20 = s21 = s22 = s23 = zero
                for t in range(m):
                    a0, a1, a2 = r0[t], r1[t], r2[t]
                    b0, b1, b2, b3 = d0[t], d1[t], d2[t], d3[t]
                    s00 += a0 * b0
                    s01 += a0 * b1
                    s02 += a0 * b2
                    s03 += a0 * b3
                    s10 += a1 * b0
                    s11 += a1 * b1
                    s12 += a1 * b2
                    s13 += a1 * b3
                    s20 += a2 * b0
                    s21 += a2 * b1
                    s22 += a2 * b2
                    s23 += a2 * b3
                H[j, p], H[j + 1, p], H[j + 2, p], H[j + 3, p] = s00, s01, s02, s03
                H[j, p + 1], H[j + 1, p + 1], H[j + 2, p + 1], H[j + 3, p + 1] = s10, s11, s12, s13
                H[j, p + 2], H[j + 1, p + 2], H[j + 2, p + 2], H[j + 3, p + 2] = s20, s21, s22, s23
    for p in range(w):  # what the tiles leave over
        for j in range(0 if p >= w - w % 3 else K - K % 4, K):
            H[j, p] = dot(R[p], D[j])


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def correct(
    H: Array,
    i: int,
    patch: Array,
    old: Array,
    new: Array,
    changes: Array,
    gram_old: Array,
    gram_new: Array,
) -> None:
    """``H_i += g_k_old (d_k_old . d_i) - g_k (d_k . d_i)`` for all the changes of the earlier atoms k < i.

    Every fourth atom does so for the three that follow it, too: the lists of changes are read once for four.
    """
    four = i - i % 4
    if four == i and i + 3 < H.shape[0]:
        h0, h1, h2, h3 = H[i], H[i + 1], H[i + 2], H[i + 3]
        for k in range(i):
            a0, a1, a2, a3 = gram_old[i, k], gram_old[i + 1, k], gram_old[i + 2, k], gram_old[i + 3, k]
            b0, b1, b2, b3 = gram_new[i, k], gram_new[i + 1, k], gram_new[i + 2, k], gram_new[i + 3, k]
            for t in range(changes[k]):
                p, before, after = np.uint32(patch[k, t]), old[k, t], new[k, t]
                h0[p] += before * a0 - after * b0
                h1[p] += before * a1 - after * b1
                h2[p] += before * a2 - after * b2
                h3[p] += before * a3 - after * b3
        return
    h = H[i]
    for k in range(four if four + 3 < H.shape[0] else 0, i):
        a, b = gram_old[i, k], gram_new[i, k]
        for t in range(changes[k]):
            h[np.uint32(patch[k, t])] += old[k, t] * a - new[k, t] * b


@njit(cache=True)  # type: ignore[untyped-decorator]
def list_changes(h: Array, g: Array, mu: Any, patch: Array, flag: Array, eights: Array) -> int:
    """The places where ``|h + g| >= mu`` or g is not zero, in order; how many.

    They are few and cannot be foreseen. So every place is flagged first, which vectorises, and the flags are
    looked at eight at a time. ``flag`` has room for them, and for eight more; ``eights`` is the same memory.
    """
    zero = mu - mu
    for p in range(h.size):
        flag[p] = (abs(h[p] + g[p]) >= mu) | (g[p] != zero)
    for p in range(h.size, h.size + 8):
        flag[p] = 0
    count = np.uint32(0)  # without a sign: no index counts from the end
    for k in range(-(-h.size // 8)):
        if eights[k] != 0:
            for p in range(np.uint32(8 * k), np.uint32(8 * k + 8)):
                if flag[p]:
                    patch[count] = p
                    count += np.uint32(1)
    return int(count)


@njit(cache=True)  # type: ignore[untyped-decorator]
def threshold(
    h: Array, g: Array, mu: Any, q: Any, patch: Array, old: Array, new: Array, count: int
) -> tuple[int, Any]:
    """``g <- H_mu(h + g)`` clipped to q, at the listed patches; counts non-zeros and sums ``g_old . g``."""
    zero = mu - mu
    kept, overlap = 0, zero
    for t in range(count):
        p = np.uint32(patch[t])
        before = g[p]
        y = h[p] + before
        after = min(max(y, -q), q) if abs(y) >= mu else zero
        g[p] = after
        kept += after != zero
        old[t], new[t] = before, after
        overlap += before * after
    return kept, overlap


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def accumulate(R: Array, patch: Array, new: Array, count: int, toward: Array) -> None:
    """``toward = sum_p g_p r_p`` over the changes; eight at a time, to wait less for rows of R from memory."""
    for s in range(toward.size):
        toward[s] = 0
    end = count - count % 8
    for t in range(0, end, 8):
        r0, r1, r2, r3 = R[patch[t]], R[patch[t + 1]], R[patch[t + 2]], R[patch[t + 3]]
        r4, r5, r6, r7 = R[patch[t + 4]], R[patch[t + 5]], R[patch[t + 6]], R[patch[t + 7]]
        g0, g1, g2, g3 = new[t], new[t + 1], new[t + 2], new[t + 3]
        g4, g5, g6, g7 = new[t + 4], new[t + 5], new[t + 6], new[t + 7]
        for s in range(toward.size):
            first = (g0 * r0[s] + g1 * r1[s]) + (g2 * r2[s] + g3 * r3[s])
            second = (g4 * r4[s] + g5 * r5[s]) + (g6 * r6[s] + g7 * r7[s])
            toward[s] += first + second
    for t in range(end, count):
        r, g = R[patch[t]], new[t]
        for s in range(toward.size):
            toward[s] += g * r[s]


@njit(cache=True)  # type: ignore[untyped-decorator]
def new_atom(d: Array, is_used: bool, toward: Array, overlap: Array, direction: Array) -> None:
    """``d_i <- E_i^T g_i / ||E_i^T g_i||``, or e_1 if g_i = 0; adds the chunks' sums in their order.

    ``direction`` is where they are added, in double precision.
    """
    if not is_used:
        for s in range(d.size):
            d[s] = 0
        d[0] = 1
        return
    for s in range(d.size):
        direction[s] = 0
    own = 0.0
    for c in range(toward.shape[0]):
        own += overlap[c]
        for s in range(d.size):
            direction[s] += toward[c, s]
    for s in range(d.size):
        direction[s] += own * d[s]
    length = math.sqrt(dot(direction, direction))
    if length > 0:  # else every unit vector does equally well, and d_i stays
        for s in range(d.size):
            d[s] = direction[s] / length


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def apply_changes(
    R: Array, before: Array, after: Array, patch: Array, old: Array, new: Array, count: int
) -> None:
    """``r_p += g_old d_old - g d`` for the changes of one atom in one chunk."""
    for t in range(count):
        r = R[patch[t]]
        a, b = old[t], new[t]
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
    R: Array, D: Array, B: Array, mu: Any, q: Any, update_atoms: bool, chunk: int, work: Any
) -> None:
    """The whole pass; ``work`` is a ``compiled._Workspace``."""
    H, D_old, patch, old, new, flag, eights, changes, gram_old, gram_new = work[:10]
    toward, overlap, used, direction = work[10:]
    w = R.shape[0]
    K = D.shape[0]
    chunks, block = changes.shape
    for atom in range(K + 1):  # the last turn applies what the last atom has changed
        start, i = atom - atom % block, atom % block
        size = min(block, K - start)
        before = (atom - 1) % block  # the row of the atom before, whose changes R still lacks
        for c in prange(chunks):
            low, high = c * chunk, min((c + 1) * chunk, w)
            r, h = R[low:high], H[:size, low:high]
            places, olds, news = patch[:, low:high], old[:, low:high], new[:, low:high]
            if atom > 0:
                count = changes[c, before]
                apply_changes(
                    r, D_old[before], D[atom - 1], places[before], olds[before], news[before], count
                )
            if atom == K:
                continue
            if i == 0:
                products(r, D[start : start + size], h)
            correct(h, i, places, olds, news, changes[c], gram_old, gram_new)
            g = B[atom, low:high]
            count = list_changes(h[i], g, mu, places[i], flag[c], eights[c])
            kept, own = threshold(h[i], g, mu, q, places[i], olds[i], news[i], count)
            changes[c, i], used[c], overlap[c] = count, kept, own
            if update_atoms:
                accumulate(r, places[i], news[i], count, toward[c])
        if atom == K:
            break
        copy_row(D[atom], D_old[i])
        if update_atoms:
            new_atom(D[atom], ordered_sum(used) > 0, toward, overlap, direction)
        for j in range(i + 1, size):
            gram_old[j, i] = dot(D_old[i], D[start + j])
            gram_new[j, i] = dot(D[atom], D[start + j])


@shared(of="squared")  # type: ignore[untyped-decorator]
def squares_by_chunk(first: int, last: int, R: Array, chunk: int, squared: Array) -> None:
    """``||R||_F^2`` of each chunk."""
    for c in range(first, last):
        squared[c] = sum_of_squares(R[c * chunk : min((c + 1) * chunk, R.shape[0])])


# If the new atoms are known beforehand, patches do not depend on each other: codes and residual of a patch stay in the
# first-level cache from the first atom to the last, and the threads never meet. The result is that of a pass atom by
# atom, to rounding.


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
