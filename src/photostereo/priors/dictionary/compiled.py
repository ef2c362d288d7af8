"""The compiled dictionary pass: the paper's sequential update, of the few patches that change.

Symbols: R (w, m) the residual ``P - B^T D``; D (K, m) the atoms d_i; B (K, w) the codes g_i; mu and
q the threshold and the bound of the codes.

How it is fast without changing the result (up to rounding):

*Residual.* ``E_i d_i = R d_i + g_i``, and after the threshold only patches with a non-zero old or
new g_i, its *changes*, contribute to ``E_i^T g_i = R^T g_i + d_i (g_i_old . g_i)`` and to the
update of R. That update is delayed until the next atom, when the rows are still in the cache from
the sum for the new d_i.

*Blocks.* The products ``R d_j`` are computed for a block of atoms at once, like a matrix product,
from the residual R0 at the start of the block. The changes of the earlier atoms k of the block are
added one by one::

    R d_i = R0 d_i + sum_k  g_k_old (d_k_old . d_i)  -  g_k (d_k . d_i)

*Chunks.* The patches are split into chunks of a fixed size, which are distributed among the
threads. Sums over patches are computed per chunk and added in the order of the chunks in double
precision, so the result does not depend on the number of threads.

*Changes.* A change of atom k is a patch with a non-zero code before or after the update. The lists
``patch``, ``old`` and ``new`` (block, w) hold the changes of atom k in row k; those of a chunk
start at the index of its first patch, and their patches are counted from there.

Numba's disk cache detects edits only in the file of the called function, so all functions are in
one file. The readable form is ``update_dictionary`` in ``tests/priors/dictionary/readable.py``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.priors.dictionary.atoms import check_thresholds
from photostereo.runtime.algebra import SUMS
from photostereo.runtime.loops import njit, prange, shared

#: Patches per thread and turn: their rows fit the L2 cache; with fewer, threads would synchronize
#: too often.
CHUNK = 768
#: The same if patches are independent: they stay in the L1 cache with a block of atoms.
FOLLOW_CHUNK = 18
#: Patches of a following pass between two checks for cancellation.
FOLLOW_AT_ONCE = 8192
#: Atoms whose products with the residual are computed at once.
BLOCK = 24


def dictionary_pass(
    R: FloatArray,
    D: FloatArray,
    B: FloatArray,
    *,
    mu: float,
    q: float = math.inf,
    update_atoms: bool = True,
) -> None:
    """Run one pass over the atoms, **in place**.

    The update of each code and each atom in turn lowers ::

        || P - B^T D ||_F^2 + mu^2 ||B||_0   subject to  |B| <= q,  ||d_i|| = 1

    The time is that of one matrix product ``R D^T`` plus a part that grows with the number of
    non-zeros. Numba's threads synchronize once per atom; if other programs keep the cores busy,
    one thread is faster (``NUMBA_NUM_THREADS=1``).

    Parameters
    ----------
    R : array (w, m)
        The residual; on return, that of the new D and B.
    D : array (K, m)
        The atoms.
    B : array (K, w)
        The codes.
    mu, q : float
        Threshold and bound of the codes.
    update_atoms : bool
        Whether the atoms change; otherwise only the codes.
    """
    check_thresholds(mu, q)
    _check_arrays(R, D, B)
    real = R.dtype.type
    work = workspace(len(R), R.shape[1], min(BLOCK, len(D)), R.dtype)
    run_pass(R, D, B, real(mu), real(q), update_atoms, work)


def follow_atoms(
    R: FloatArray,
    D: FloatArray,
    B: FloatArray,
    successors: FloatArray,
    *,
    mu: float,
    q: float = math.inf,
    control: Control = SILENT,
) -> None:
    """Run a pass, **in place**, that replaces each atom by another at the end of its turn.

    Patches are then independent of each other, which is much faster than learning. If canceled, R,
    D and B are invalid.

    Parameters
    ----------
    R : array (w, m)
        The residual.
    D : array (K, m)
        The atoms.
    B : array (K, w)
        The codes.
    successors : array (K, m)
        The atoms after the pass.
    mu, q : float
        Threshold and bound of the codes.
    control : Control
        Cancellation.
    """
    check_thresholds(mu, q)
    _check_arrays(R, D, B, successors)
    real = R.dtype.type
    new = np.ascontiguousarray(successors, D.dtype)
    gram = np.empty((len(D), len(D)), D.dtype)
    gram_new = np.empty_like(gram)
    products(D, D, gram.T)  # OpenBLAS would keep a core busy for 20 ms after a product
    products(new, D, gram_new.T)
    # Patches are independent, so a pass can stop between any two of them.
    for first in range(0, len(R), FOLLOW_AT_ONCE):
        control.check()
        last = min(first + FOLLOW_AT_ONCE, len(R))
        follow_pass(R, D, new, B, gram, gram_new, real(mu), real(q), first, last)
    D[:] = new


def squared_norm(R: FloatArray) -> float:
    """Return ``||R||_F^2`` of an array (w, m) in double precision.

    It does not depend on the number of threads: chunks are added in order.
    """
    if not len(R):
        return 0.0
    squared = np.zeros(-(-len(R) // CHUNK))
    squares_by_chunk(np.ascontiguousarray(R), squared)
    return float(np.cumsum(squared)[-1])


def _check_arrays(
    R: FloatArray, D: FloatArray, B: FloatArray, successors: FloatArray | None = None
) -> None:
    """Check the arrays: the kernels work in place and without bounds checks."""
    same_type = R.dtype in (np.float32, np.float64) and D.dtype == B.dtype == R.dtype
    in_place = all(a.ndim == 2 and a.flags.c_contiguous and a.flags.writeable for a in (R, D, B))
    fit = in_place and R.shape[1] == D.shape[1] and B.shape == (len(D), len(R))
    fit = fit and (successors is None or successors.shape == D.shape)
    if not (same_type and fit):
        raise ValueError(
            "R (w, m), D (K, m), B (K, w) and the successors of the atoms must be contiguous and "
            "of one float type."
        )


class Workspace(NamedTuple):
    """Arrays of one pass for a block of atoms."""

    H: NDArray[Any]  #: (block, w) products R0 d_i
    D_old: NDArray[Any]  #: (block, m) the atoms before the update
    patch: NDArray[Any]  #: (block, w) index of the patch of each change
    old: NDArray[Any]  #: (block, w) its code before
    new: NDArray[Any]  #: (block, w) its code after
    changes: NDArray[Any]  #: (chunks, block) number of listed changes
    gram_old: NDArray[Any]  #: (block, block) d_k_old . d_i at [i, k], for k < i
    gram_new: NDArray[Any]  #: (block, block) d_k . d_i at [i, k], for k < i
    toward: NDArray[Any]  #: (chunks, m) R^T g_i over the patches of a chunk
    overlap: NDArray[Any]  #: (chunks,) g_i_old . g_i over these
    nonzeros: NDArray[Any]  #: (chunks,) of g_i among these
    direction: NDArray[Any]  #: (m,) the new atom before normalization, in double precision


def workspace(w: int, m: int, block: int, dtype: Any) -> Workspace:
    """Allocate a workspace, in NumPy: Numba would take long to compile this.

    Parameters
    ----------
    w, m : int
        Number of patches, and of values in each.
    block : int
        Number of atoms.
    dtype : dtype
        Of the pass.
    """
    chunks = -(-w // CHUNK)
    return Workspace(
        H=np.empty((block, w), dtype),
        D_old=np.empty((block, m), dtype),
        patch=np.empty((block, w), np.int32),
        old=np.empty((block, w), dtype),
        new=np.empty((block, w), dtype),
        changes=np.zeros((chunks, block), np.int64),
        gram_old=np.empty((block, block), dtype),
        gram_new=np.empty((block, block), dtype),
        toward=np.empty((chunks, m), dtype),
        overlap=np.zeros(chunks, dtype),
        nonzeros=np.zeros(chunks, np.int64),
        direction=np.empty(m),
    )


@njit(cache=True, fastmath=SUMS)
def dot(a, b):  # type: ignore[no-untyped-def]
    """Inner product, in the precision of the arrays."""
    total = a[0] * b[0]
    for t in range(1, a.size):
        total += a[t] * b[t]
    return total


@njit(cache=True, fastmath=SUMS)
def products(R, D, H):  # type: ignore[no-untyped-def]
    """Compute ``H[j, p] = d_j . r_p``.

    The sums of tiles of 3 patches by 4 atoms stay in registers, and panels of 16 atoms in the L1
    cache, while the loop runs over the patches.
    """
    w, m = R.shape
    K = D.shape[0]
    zero = R.dtype.type(0)
    for panel in range(0, K - 3, 16):
        for p in range(0, w - 2, 3):
            r0 = R[p]
            r1 = R[p + 1]
            r2 = R[p + 2]
            for j in range(panel, min(panel + 16, K - 3), 4):
                d0 = D[j]
                d1 = D[j + 1]
                d2 = D[j + 2]
                d3 = D[j + 3]
                s00 = s01 = s02 = s03 = zero
                s10 = s11 = s12 = s13 = zero
                s20 = s21 = s22 = s23 = zero
                for t in range(m):
                    a0 = r0[t]
                    a1 = r1[t]
                    a2 = r2[t]
                    b0 = d0[t]
                    b1 = d1[t]
                    b2 = d2[t]
                    b3 = d3[t]
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
                H[j, p] = s00
                H[j + 1, p] = s01
                H[j + 2, p] = s02
                H[j + 3, p] = s03
                H[j, p + 1] = s10
                H[j + 1, p + 1] = s11
                H[j + 2, p + 1] = s12
                H[j + 3, p + 1] = s13
                H[j, p + 2] = s20
                H[j + 1, p + 2] = s21
                H[j + 2, p + 2] = s22
                H[j + 3, p + 2] = s23
    for p in range(w):  # the rest outside the tiles
        for j in range(0 if p >= w - w % 3 else K - K % 4, K):
            H[j, p] = dot(R[p], D[j])


@njit(cache=True, fastmath=SUMS)
def correct(H, i, patch, old, new, changes, gram_old, gram_new):  # type: ignore[no-untyped-def]
    """Apply ``H_i += g_k_old (d_k_old . d_i) - g_k (d_k . d_i)`` for the changes of atoms k < i.

    The names are those of :class:`Workspace`, for one chunk of patches. Every fourth atom also
    updates the next three, so the lists of changes are read once for four atoms.
    """
    four = i - i % 4
    if four == i and i + 3 < H.shape[0]:
        h0 = H[i]
        h1 = H[i + 1]
        h2 = H[i + 2]
        h3 = H[i + 3]
        for k in range(i):
            a0 = gram_old[i, k]
            a1 = gram_old[i + 1, k]
            a2 = gram_old[i + 2, k]
            a3 = gram_old[i + 3, k]
            b0 = gram_new[i, k]
            b1 = gram_new[i + 1, k]
            b2 = gram_new[i + 2, k]
            b3 = gram_new[i + 3, k]
            for t in range(changes[k]):
                p = np.uint32(patch[k, t])
                before = old[k, t]
                after = new[k, t]
                h0[p] += before * a0 - after * b0
                h1[p] += before * a1 - after * b1
                h2[p] += before * a2 - after * b2
                h3[p] += before * a3 - after * b3
        return
    h = H[i]
    for k in range(four if four + 3 < H.shape[0] else 0, i):
        a = gram_old[i, k]
        b = gram_new[i, k]
        for t in range(changes[k]):
            h[np.uint32(patch[k, t])] += old[k, t] * a - new[k, t] * b


@njit(cache=True)
def list_changes(h, g, mu, patch):  # type: ignore[no-untyped-def]
    """List the indices where ``|h + g| >= mu`` or g is not zero, in order; return their number.

    They are few and unpredictable, so there is no branch: every index is written, and overwritten
    if it is not one.
    """
    zero = mu - mu
    count = np.uint32(0)  # unsigned: no index counts from the end
    for p in range(h.size):
        patch[count] = p
        count += np.uint32((abs(h[p] + g[p]) >= mu) | (g[p] != zero))
    return int(count)


@njit(cache=True)
def threshold(h, g, mu, q, patch, old, new, count):  # type: ignore[no-untyped-def]
    """Set ``g <- H_mu(h + g)`` clipped to q, at the listed patches.

    Fills ``old`` and ``new`` with the codes before and after; returns the number of non-zeros and
    the sum of ``g_old . g``.
    """
    zero = mu - mu
    nonzeros = 0
    overlap = zero
    for t in range(count):
        p = np.uint32(patch[t])
        before = g[p]
        y = h[p] + before
        after = min(max(y, -q), q) if abs(y) >= mu else zero
        g[p] = after
        nonzeros += after != zero
        old[t] = before
        new[t] = after
        overlap += before * after
    return nonzeros, overlap


@njit(cache=True, fastmath=SUMS)
def accumulate(R, patch, new, count, toward):  # type: ignore[no-untyped-def]
    """Compute ``toward = sum_p g_p r_p`` over the changes, eight at a time.

    That hides the memory latency of R.
    """
    for s in range(toward.size):
        toward[s] = 0
    end = count - count % 8
    for t in range(0, end, 8):
        r0 = R[patch[t]]
        r1 = R[patch[t + 1]]
        r2 = R[patch[t + 2]]
        r3 = R[patch[t + 3]]
        r4 = R[patch[t + 4]]
        r5 = R[patch[t + 5]]
        r6 = R[patch[t + 6]]
        r7 = R[patch[t + 7]]
        g0 = new[t]
        g1 = new[t + 1]
        g2 = new[t + 2]
        g3 = new[t + 3]
        g4 = new[t + 4]
        g5 = new[t + 5]
        g6 = new[t + 6]
        g7 = new[t + 7]
        for s in range(toward.size):
            first = (g0 * r0[s] + g1 * r1[s]) + (g2 * r2[s] + g3 * r3[s])
            second = (g4 * r4[s] + g5 * r5[s]) + (g6 * r6[s] + g7 * r7[s])
            toward[s] += first + second
    for t in range(end, count):
        r = R[patch[t]]
        g = new[t]
        for s in range(toward.size):
            toward[s] += g * r[s]


@njit(cache=True)
def new_atom(d, nonzeros, toward, overlap, direction):  # type: ignore[no-untyped-def]
    """Set ``d_i <- E_i^T g_i / ||E_i^T g_i||``, or e_1 if g_i = 0.

    The names are those of :class:`Workspace`; the sums of the chunks are added in order.
    """
    total = 0
    for count in nonzeros:
        total += count
    if total == 0:
        for s in range(d.size):
            d[s] = 0
        d[0] = 1
        return
    for s in range(d.size):
        direction[s] = 0
    weight = 0.0
    for c in range(toward.shape[0]):
        weight += overlap[c]
        for s in range(d.size):
            direction[s] += toward[c, s]
    for s in range(d.size):
        direction[s] += weight * d[s]
    length = math.sqrt(dot(direction, direction))
    if length > 0:  # otherwise every unit vector is optimal, and d_i stays
        for s in range(d.size):
            d[s] = direction[s] / length


@njit(cache=True, fastmath=SUMS)
def apply_changes(R, before, after, patch, old, new, count):  # type: ignore[no-untyped-def]
    """Apply ``r_p += g_old d_old - g d`` for the changes of one atom in one chunk."""
    for t in range(count):
        r = R[patch[t]]
        a = old[t]
        b = new[t]
        for s in range(r.size):
            r[s] += a * before[s] - b * after[s]


@njit(cache=True, parallel=True)
def run_pass(R, D, B, mu, q, update_atoms, work):  # type: ignore[no-untyped-def]
    """Run the whole pass; ``work`` is a :func:`workspace`."""
    H, D_old, patch, old, new, changes, gram_old, gram_new = work[:8]
    toward, overlap, nonzeros, direction = work[8:]
    w, m = R.shape
    K = D.shape[0]
    chunks, block = changes.shape
    for atom in range(K + 1):  # the last turn applies the changes of the last atom
        start = atom - atom % block
        i = atom % block
        size = min(block, K - start)
        before = (atom - 1) % block  # row of the previous atom, whose changes R still lacks
        # All that an atom needs of a chunk, while its rows are in the cache.
        for c in prange(chunks):
            low = c * CHUNK
            high = min((c + 1) * CHUNK, w)
            r = R[low:high]
            h = H[:size, low:high]
            places = patch[:, low:high]
            olds = old[:, low:high]
            news = new[:, low:high]
            if atom > 0:
                apply_changes(
                    r,
                    D_old[before],
                    D[atom - 1],
                    places[before],
                    olds[before],
                    news[before],
                    changes[c, before],
                )
            if atom == K:
                continue
            # A new block: products with the residual that all earlier atoms have left.
            if i == 0:
                products(r, D[start : start + size], h)
            # The changes since then are few, so they are added one by one.
            correct(h, i, places, olds, news, changes[c], gram_old, gram_new)
            g = B[atom, low:high]
            count = list_changes(h[i], g, mu, places[i])
            nonzeros[c], overlap[c] = threshold(h[i], g, mu, q, places[i], olds[i], news[i], count)
            changes[c, i] = count
            if update_atoms:
                accumulate(r, places[i], news[i], count, toward[c])
        if atom == K:
            break
        for s in range(m):  # a slice would take seconds to compile
            D_old[i, s] = D[atom, s]
        # The only point where the threads wait for each other.
        if update_atoms:
            new_atom(D[atom], nonzeros, toward, overlap, direction)
        # Inner products with the later atoms of the block, before and after the update.
        for j in range(i + 1, size):
            gram_old[j, i] = dot(D_old[i], D[start + j])
            gram_new[j, i] = dot(D[atom], D[start + j])


@shared(of="squared", fastmath=SUMS)
def squares_by_chunk(first, last, R, squared):  # type: ignore[no-untyped-def]
    """``||R||_F^2`` of each chunk, in double precision."""
    for c in range(first, last):
        total = 0.0
        for p in range(c * CHUNK, min((c + 1) * CHUNK, R.shape[0])):
            for s in range(R.shape[1]):
                total += np.float64(R[p, s]) * np.float64(R[p, s])
        squared[c] = total


# If the new atoms are known beforehand, patches are independent: codes and residual of a patch stay
# in the L1 cache from the first atom to the last, and the threads never synchronize. Up to
# rounding, the result is that of a pass atom by atom.


@njit(cache=True, fastmath=SUMS)
def _follow(R, before, after, B, gram, gram_new, H, mu, q):  # type: ignore[no-untyped-def]
    """Process one block of atoms on one chunk of patches: codes, then residual."""
    zero = mu - mu
    size, m = before.shape
    for p in range(R.shape[0]):
        h = H[p]
        r = R[p]
        for i in range(size):
            old = B[i, p]
            y = h[i] + old
            if abs(y) < mu and old == zero:
                continue
            new = min(max(y, -q), q) if abs(y) >= mu else zero
            B[i, p] = new
            g = gram[i]
            g_new = gram_new[i]
            for j in range(i + 1, size):
                h[j] += old * g[j] - new * g_new[j]
            d = before[i]
            d_new = after[i]
            for t in range(m):
                r[t] += old * d[t] - new * d_new[t]


@njit(cache=True, parallel=True)
def follow_pass(R, D, successors, B, gram, gram_new, mu, q, first, last):  # type: ignore[no-untyped-def]
    """Update codes B and residual R of the patches ``first`` to ``last``.

    ``gram[k, j]`` is ``d_k . d_j``, and ``gram_new[k, j]`` that of successor k with ``d_j``.
    """
    K = D.shape[0]
    for c in prange(-(-(last - first) // FOLLOW_CHUNK)):
        low = first + c * FOLLOW_CHUNK
        high = min(first + (c + 1) * FOLLOW_CHUNK, last)
        H = np.empty((high - low, min(BLOCK, K)), R.dtype)
        # The residual of the chunk stays in the cache for all atoms.
        for start in range(0, K, BLOCK):
            end = min(start + BLOCK, K)
            before = D[start:end]
            after = successors[start:end]
            codes = B[start:end, low:high]
            of_block = gram[start:end, start:end]
            of_block_new = gram_new[start:end, start:end]
            products(R[low:high], before, H.T)
            _follow(R[low:high], before, after, codes, of_block, of_block_new, H, mu, q)
