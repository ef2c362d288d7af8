"""The dictionary pass, compiled: the same sequential update as ``readable``, on the few patches that matter.

Symbols: R (w, m) the residual ``P - B^T D``; D (K, m) the atoms d_i; B (K, w) the codes g_i; mu and q the
threshold and the bound of the codes.

How it is fast without changing the result (to rounding):

*Residual.* ``E_i d_i = R d_i + g_i``, and after the threshold only the patches where the old or the new g_i is
not zero, its *changes*, take part in ``E_i^T g_i = R^T g_i + d_i (g_i_old . g_i)`` and in the update of R.

*Blocks.* The products ``R d_j`` are taken for a block of atoms at once, like a matrix product. Inside the block
R is left as it was at the block's start, R0. The changes of the earlier atoms k are put in where they count::

    R d_i   = R0 d_i   + sum_k  g_k_old (d_k_old . d_i)  -  g_k (d_k . d_i)
    R^T g_i = R0^T g_i + sum_k  d_k_old (g_k_old . g_i)  -  d_k (g_k . g_i)

and R0 is brought up to date with all of them at the end of the block.

*Chunks.* The patches are split into chunks of a fixed size, which the threads share. Sums over patches are
formed per chunk and added in the order of the chunks in double precision, so the result is the same for any
number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from photostereo.conventions import FloatArray
from photostereo.dictionary.readable import check_thresholds
from photostereo.errors import ParameterError

Array = NDArray[Any]

#: Patches that one thread handles at a time: 128 rows of 192 float32 values fit a second-level cache.
CHUNK = 128
#: Atoms whose products with the residual are taken at once.
BLOCK = 32

# Sums may be reordered and fused, which vectorisation needs; infinities and NaN keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


@dataclass(frozen=True)
class PassStatistics:
    """What a pass left behind.

    Attributes
    ----------
    residual_squared : float
        ``||P - B^T D||_F^2`` after the pass.
    nonzeros : int
        ``||B||_0`` after the pass.
    clipped : int
        Codes that the bound q held back.
    empty_atoms : int
        Atoms that no patch uses.
    """

    residual_squared: float
    nonzeros: int
    clipped: int
    empty_atoms: int

    def cost(self, mu: float) -> float:
        """``||P - B^T D||_F^2 + mu^2 ||B||_0``."""
        return self.residual_squared + mu**2 * self.nonzeros


def dictionary_pass(
    R: FloatArray,
    D: FloatArray,
    B: FloatArray,
    *,
    mu: float,
    q: float = math.inf,
    update_atoms: bool = True,
) -> PassStatistics:
    """One pass over the atoms, **in place**: lowers, in each code and each atom in turn ::

        || P - B^T D ||_F^2 + mu^2 ||B||_0   subject to  |B| <= q,  ||d_i|| = 1

    It gives the result of :func:`photostereo.dictionary.readable.update_dictionary`, to rounding, and the same
    one for any number of threads.

    Parameters
    ----------
    R : (w, m) array, float32 or float64
        The residual ``P - B^T D``; on return that of the new D and B.
    D : (K, m) array
        One unit atom per row; updated.
    B : (K, w) array
        The codes, row i those of atom i; updated.
    mu, q : float
        Threshold and bound of the codes, ``q >= mu``.
    update_atoms : bool
        False keeps the dictionary and updates the codes only.

    Returns
    -------
    PassStatistics

    Notes
    -----
    The time is that of one matrix product ``R D^T`` plus a part that grows with the number of non-zeros.

    Examples
    --------
    >>> R = np.array([[3.0, 4.0], [0.1, 0.0]])
    >>> D, B = np.array([[1.0, 0.0]]), np.zeros((1, 2))
    >>> dictionary_pass(R, D, B, mu=1.0).nonzeros
    1
    >>> D, B
    (array([[0.6, 0.8]]), array([[3., 0.]]))
    """
    check_thresholds(mu, q)
    _check_arrays(R, D, B)
    real = R.dtype.type
    squared, nonzeros, clipped, empty = _pass(R, D, B, real(mu), real(q), update_atoms, CHUNK, BLOCK)
    return PassStatistics(float(squared), int(nonzeros), int(clipped), int(empty))


def squared_norm(R: FloatArray) -> float:
    """``||R||_F^2`` of a (w, m) array in double precision, the same for any number of threads.

    >>> squared_norm(np.full((10, 10), 2.0, np.float32))
    400.0
    """
    return float(_squared_norm(np.ascontiguousarray(R), CHUNK))


def _check_arrays(R: FloatArray, D: FloatArray, B: FloatArray) -> None:
    kinds_agree = R.dtype in (np.float32, np.float64) and D.dtype == B.dtype == R.dtype
    writable = all(a.flags.c_contiguous and a.flags.writeable for a in (R, D, B))
    shapes_agree = (
        R.ndim == D.ndim == B.ndim == 2 and R.shape[1] == D.shape[1] and B.shape == (len(D), len(R))
    )
    if not (kinds_agree and writable and shapes_agree):
        raise ParameterError(
            f"The dictionary pass works in place on contiguous arrays of one type, float32 or float64: "
            f"R (w, m), D (K, m) and B (K, w). These are R {R.dtype} {R.shape}, D {D.dtype} {D.shape} and "
            f"B {B.dtype} {B.shape}."
        )


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def _pass(
    R: Array, D: Array, B: Array, mu: Any, q: Any, update_atoms: bool, chunk: int, block: int
) -> tuple[float, int, int, int]:
    w, m = R.shape
    K = D.shape[0]
    chunks = (w + chunk - 1) // chunk
    # Of the block at hand: products, old atoms, and for each atom the changes (patch, old code, new code); each
    # chunk lists its own from its first patch on, `changes` of them.
    H = np.empty((block, w), R.dtype)
    D_old = np.empty((block, m), R.dtype)
    patch = np.empty((block, w), np.int32)
    old = np.empty((block, w), R.dtype)
    new = np.empty((block, w), R.dtype)
    changes = np.zeros((block, chunks), np.int64)
    # gram_old[k, i] = d_k_old . d_i and gram_new[k, i] = d_k . d_i for an earlier atom k and a later atom i.
    gram_old = np.zeros((block, block), R.dtype)
    gram_new = np.zeros((block, block), R.dtype)
    # Sums over the patches of one chunk, for the atom at hand.
    toward = np.empty((chunks, m), R.dtype)  # R0^T g_i
    overlap_old = np.empty((chunks, block), R.dtype)  # g_k_old . g_i, and for k = i: g_i_old . g_i
    overlap_new = np.empty((chunks, block), R.dtype)  # g_k . g_i
    used = np.zeros(chunks, np.int64)  # non-zeros of g_i
    nonzeros = np.zeros(chunks, np.int64)
    clipped = np.zeros(chunks, np.int64)
    squared = np.zeros(chunks)
    empty = 0

    first, size = 0, 0  # of the block whose changes R still lacks
    for start in range(0, K, block):
        for c in prange(chunks):
            low, high = c * chunk, min((c + 1) * chunk, w)
            _apply_changes(R, D_old, D[first : first + size], patch, old, new, changes[:, c], low)
            _products(R[low:high], D[start : start + block], H[:, low:high])
        first, size = start, min(block, K - start)
        D_old[:size] = D[first : first + size]
        for i in range(size):
            d = D[first + i]
            for c in prange(chunks):
                low, high = c * chunk, min((c + 1) * chunk, w)
                h, g = H[i, low:high], B[first + i, low:high]
                for k in range(i):
                    _correct(h, patch[k], old[k], new[k], low, changes[k, c], gram_old[k, i], gram_new[k, i])
                count, kept, held = _threshold(h, g, mu, q, patch[i], old[i], new[i], low)
                changes[i, c] = count
                used[c] = kept
                nonzeros[c] += kept
                clipped[c] += held
                toward[c] = 0
                overlap_old[c] = 0
                overlap_new[c] = 0
                if update_atoms and kept > 0:
                    _accumulate(R, patch[i], new[i], low, count, toward[c])
                    for k in range(i + 1):
                        a, b = _overlaps(g, patch[k], old[k], new[k], low, changes[k, c])
                        overlap_old[c, k] = a
                        overlap_new[c, k] = b
            is_used = used.sum() > 0
            empty += not is_used
            if update_atoms and is_used:
                _set_atom(d, D_old, D[first : first + size], i, toward, overlap_old, overlap_new)
            elif update_atoms:
                d[:] = 0
                d[0] = 1
            for j in range(i + 1, size):
                gram_old[i, j] = _dot(D_old[i], D[first + j])
                gram_new[i, j] = _dot(d, D[first + j])
    for c in prange(chunks):
        low, high = c * chunk, min((c + 1) * chunk, w)
        _apply_changes(R, D_old, D[first : first + size], patch, old, new, changes[:, c], low)
        squared[c] = _squares(R[low:high])
    return squared.sum(), nonzeros.sum(), clipped.sum(), empty


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _dot(a: Array, b: Array) -> Any:
    total = a[0] * b[0]
    for t in range(1, a.size):
        total += a[t] * b[t]
    return total


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _products(R: Array, D: Array, H: Array) -> None:
    """``H[j, p] = d_j . r_p``, in tiles of 4 patches by 4 atoms, whose sums stay in registers."""
    w, m = R.shape
    K = D.shape[0]
    zero = R.dtype.type(0)
    for p in range(0, w - 3, 4):
        r0, r1, r2, r3 = R[p], R[p + 1], R[p + 2], R[p + 3]
        for j in range(0, K - 3, 4):
            d0, d1, d2, d3 = D[j], D[j + 1], D[j + 2], D[j + 3]
            s00 = s01 = s02 = s03 = zero
            s10 = s11 = s12 = s13 = zero
            s20 = s21 = s22 = s23 = zero
            s30 = s31 = s32 = s33 = zero
            for t in range(m):
                a0, a1, a2, a3 = r0[t], r1[t], r2[t], r3[t]
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
                s30 += a3 * b0
                s31 += a3 * b1
                s32 += a3 * b2
                s33 += a3 * b3
            H[j, p], H[j + 1, p], H[j + 2, p], H[j + 3, p] = s00, s01, s02, s03
            H[j, p + 1], H[j + 1, p + 1], H[j + 2, p + 1], H[j + 3, p + 1] = s10, s11, s12, s13
            H[j, p + 2], H[j + 1, p + 2], H[j + 2, p + 2], H[j + 3, p + 2] = s20, s21, s22, s23
            H[j, p + 3], H[j + 1, p + 3], H[j + 2, p + 3], H[j + 3, p + 3] = s30, s31, s32, s33
        for j in range(K - K % 4, K):
            H[j, p], H[j, p + 1] = _dot(r0, D[j]), _dot(r1, D[j])
            H[j, p + 2], H[j, p + 3] = _dot(r2, D[j]), _dot(r3, D[j])
    for p in range(w - w % 4, w):
        for j in range(K):
            H[j, p] = _dot(R[p], D[j])


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _correct(
    h: Array, patch: Array, old: Array, new: Array, low: int, count: int, gram_old: Any, gram_new: Any
) -> None:
    """``h += g_k_old (d_k_old . d_i) - g_k (d_k . d_i)`` for the changes of an earlier atom k."""
    for t in range(low, low + count):
        h[patch[t] - low] += old[t] * gram_old - new[t] * gram_new


@njit(cache=True)  # type: ignore[untyped-decorator]
def _threshold(
    h: Array, g: Array, mu: Any, q: Any, patch: Array, old: Array, new: Array, low: int
) -> tuple[int, int, int]:
    """``g <- H_mu(h + g)`` clipped to q; lists the changes; counts changes, non-zeros and clipped codes."""
    count, kept, held = low, 0, 0
    zero = mu - mu
    for p in range(g.size):
        before = g[p]
        y = h[p] + before
        keep = abs(y) >= mu and y != zero
        if keep or before != zero:
            after = zero
            if keep:
                after = min(max(y, -q), q)
                kept += 1
                held += after != y
            g[p] = after
            patch[count] = low + p
            old[count] = before
            new[count] = after
            count += 1
    return count - low, kept, held


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _accumulate(R: Array, patch: Array, new: Array, low: int, count: int, toward: Array) -> None:
    """``toward += sum_p g_p r_p`` over the listed patches."""
    for t in range(low, low + count):
        g = new[t]
        if g != 0:
            r = R[patch[t]]
            for s in range(toward.size):
                toward[s] += g * r[s]


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _overlaps(g: Array, patch: Array, old: Array, new: Array, low: int, count: int) -> tuple[Any, Any]:
    """``(g_k_old . g_i, g_k . g_i)`` over the changes of atom k in this chunk, with ``g`` the new g_i."""
    a = b = g.dtype.type(0)
    for t in range(low, low + count):
        value = g[patch[t] - low]
        a += old[t] * value
        b += new[t] * value
    return a, b


@njit(cache=True)  # type: ignore[untyped-decorator]
def _set_atom(
    d: Array, D_old: Array, D: Array, i: int, toward: Array, overlap_old: Array, overlap_new: Array
) -> None:
    """``d_i <- E_i^T g_i / ||E_i^T g_i||``, from the sums of the chunks, added in their order."""
    m = d.size
    direction = np.zeros(m)
    for c in range(toward.shape[0]):
        for s in range(m):
            direction[s] += toward[c, s]
    for k in range(i + 1):
        a = b = 0.0
        for c in range(toward.shape[0]):
            a += overlap_old[c, k]
            b += overlap_new[c, k]
        if k == i:
            b = 0.0
        for s in range(m):
            direction[s] += a * D_old[k, s] - b * D[k, s]
    length = math.sqrt((direction**2).sum())
    if length > 0:
        for s in range(m):
            d[s] = direction[s] / length


@njit(cache=True, fastmath=REORDER)  # type: ignore[untyped-decorator]
def _apply_changes(
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
def _squares(R: Array) -> float:
    total = 0.0
    for p in range(R.shape[0]):
        for s in range(R.shape[1]):
            total += float(R[p, s]) * float(R[p, s])
    return total


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def _squared_norm(R: Array, chunk: int) -> float:
    chunks = (R.shape[0] + chunk - 1) // chunk
    squared = np.zeros(chunks)
    for c in prange(chunks):
        squared[c] = _squares(R[c * chunk : min((c + 1) * chunk, R.shape[0])])
    return squared.sum()
