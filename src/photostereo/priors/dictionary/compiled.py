"""The dictionary pass, compiled: the paper's sequential update, on the few patches that matter.

Symbols: R (w, m) the residual ``P - B^T D``; D (K, m) the atoms d_i; B (K, w) the codes g_i; mu and q the
threshold and the bound of the codes.

How it is fast without changing the result (to rounding):

*Residual.* ``E_i d_i = R d_i + g_i``, and after the threshold only the patches where the old or the new g_i
is not zero, its *changes*, take part in ``E_i^T g_i = R^T g_i + d_i (g_i_old . g_i)`` and in the update of R. That
update waits until the next atom, when the rows are still in the cache from the sum that made the new d_i.

*Blocks.* The products ``R d_j`` are taken for a block of atoms at once, like a matrix product, from the residual
R0 at the block's start. The changes of the block's earlier atoms k enter one by one::

    R d_i = R0 d_i + sum_k  g_k_old (d_k_old . d_i)  -  g_k (d_k . d_i)

*Chunks.* The patches are split into chunks of a fixed size, which the threads share. Sums over patches are
formed per chunk and added in the order of the chunks in double precision, so the result is the same for any
number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.priors.dictionary.atoms import check_thresholds
from photostereo.priors.dictionary.pass_kernels import follow_pass, products, run_pass, squares_by_chunk

Array = NDArray[Any]

#: Patches that one thread handles at a time: their rows fit a second-level cache; fewer would meet too often.
CHUNK = 768
#: The same if patches do not depend on each other: they stay in the first-level cache with a block of atoms.
FOLLOW_CHUNK = 18
#: Patches between two places where a pass that follows can be canceled.
FOLLOW_AT_ONCE = 8192
#: Atoms whose products with the residual are taken at once.
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
    """One pass over the atoms, **in place**: lowers, in each code and each atom in turn ::

        || P - B^T D ||_F^2 + mu^2 ||B||_0   subject to  |B| <= q,  ||d_i|| = 1

    It gives the result of ``update_dictionary`` in ``tests/priors/dictionary/readable.py``, to rounding, and the
    same one for any number of threads.

    Parameters
    ----------
    R : (w, m), the residual ``P - B^T D``; on return that of the new D and B
    D : (K, m), one unit atom per row; updated
    B : (K, w), the codes, row i those of atom i; updated
    mu, q : threshold and bound of the codes, ``q >= mu``
    update_atoms : false keeps the dictionary and updates the codes only

    Notes
    -----
    The time is that of one matrix product ``R D^T`` plus a part that grows with the number of non-zeros. The
    threads are Numba's and meet once per atom; if other programs keep the cores busy, or many solves run
    at once, one thread is faster (``numba.set_num_threads(1)`` or the variable ``NUMBA_NUM_THREADS=1``).

    Examples
    --------
    >>> R = np.array([[3.0, 4.0], [0.1, 0.0]])
    >>> D, B = np.array([[1.0, 0.0]]), np.zeros((1, 2))
    >>> dictionary_pass(R, D, B, mu=1.0)
    >>> D, B
    (array([[0.6, 0.8]]), array([[3., 0.]]))
    """
    check_thresholds(mu, q)
    _check_arrays(R, D, B)
    real = R.dtype.type
    work = _Workspace.make(len(R), R.shape[1], R.dtype, CHUNK, min(BLOCK, len(D)))
    run_pass(R, D, B, real(mu), real(q), update_atoms, CHUNK, work)


def follow_atoms(
    R: FloatArray,
    D: FloatArray,
    B: FloatArray,
    given: FloatArray,
    *,
    mu: float,
    q: float = math.inf,
    control: Control = SILENT,
) -> None:
    """A pass in which each atom of D is replaced by the given one when its turn is over, **in place**.

    Patches then need no other, which is much faster than learning. It can be canceled every few thousand patches, a few
    tenths of a second; R, D and B are then of no use.

    >>> R = np.array([[3.0, 4.0], [0.1, 0.0]])
    >>> D, B = np.array([[1.0, 0.0]]), np.zeros((1, 2))
    >>> follow_atoms(R, D, B, np.array([[0.6, 0.8]]), mu=1.0)
    >>> D, B
    (array([[0.6, 0.8]]), array([[3., 0.]]))
    """
    check_thresholds(mu, q)
    _check_arrays(R, D, B, given)
    real = R.dtype.type
    new = np.ascontiguousarray(given, D.dtype)
    gram, gram_new = (np.empty((len(D), len(D)), D.dtype) for _ in range(2))
    products(D, D, gram.T)  # after a product of its own OpenBLAS would keep a core for 20 ms
    products(new, D, gram_new.T)
    for first in range(0, len(R), FOLLOW_AT_ONCE):
        control.check()
        patches = first, min(first + FOLLOW_AT_ONCE, len(R))
        follow_pass(
            R, D, new, B, gram, gram_new, real(mu), real(q), FOLLOW_CHUNK, min(BLOCK, len(D)), *patches
        )
    D[:] = new


def squared_norm(R: FloatArray) -> float:
    """``||R||_F^2`` of a (w, m) array in double precision, the same for any number of threads.

    >>> squared_norm(np.full((10, 10), 2.0, np.float32))
    400.0
    """
    squared = np.zeros(-(-len(R) // CHUNK))
    squares_by_chunk(np.ascontiguousarray(R), CHUNK, squared)
    return float(np.cumsum(squared)[-1]) if len(squared) else 0.0  # in the order of the chunks


def _check_arrays(R: FloatArray, D: FloatArray, B: FloatArray, given: FloatArray | None = None) -> None:
    """The kernels work in place and do not look at bounds."""
    same_type = R.dtype in (np.float32, np.float64) and D.dtype == B.dtype == R.dtype
    in_place = all(a.ndim == 2 and a.flags.c_contiguous and a.flags.writeable for a in (R, D, B))
    fit = in_place and R.shape[1] == D.shape[1] and B.shape == (len(D), len(R))
    if not (same_type and fit and (given is None or given.shape == D.shape)):
        raise ValueError(
            "R (w, m), D (K, m), B (K, w) and the given atoms must be contiguous and of one float type."
        )


class _Workspace(NamedTuple):
    """Arrays of one pass, for the block of atoms at hand; made by NumPy, as Numba takes long to compile it.

    A change is a patch whose code of an atom is not zero before or after; each chunk lists its own from its
    first patch on.
    """

    H: Array  # (block, w) products R0 d_i
    D_old: Array  # (block, m) the atoms as they were
    patch: Array  # (block, w) lists of changes: the patch,
    old: Array  # (block, w) its code before,
    new: Array  # (block, w) its code after
    flag: Array  # (chunks, chunk + 8) whether a patch of the chunk changes, and padding
    eights: Array  # (chunks, ...) the same memory, eight flags at a time
    changes: Array  # (chunks, block) how many changes are listed
    gram_old: Array  # (block, block) [i, k] is d_k_old . d_i, for k < i
    gram_new: Array  # (block, block) [i, k] is d_k . d_i, for k < i
    toward: Array  # (chunks, m) R^T g_i over the patches of a chunk; so are the following
    overlap: Array  # (chunks,) g_i_old . g_i
    used: Array  # (chunks,) non-zeros of g_i
    direction: Array  # (m,) the new atom before it has length one, in double precision

    @classmethod
    def make(cls, w: int, m: int, dtype: Any, chunk: int, block: int) -> _Workspace:
        chunks = -(-w // chunk)
        codes = (block, w)
        flag = np.zeros((chunks, 8 * -(-chunk // 8) + 8), np.uint8)
        return cls(
            H=np.empty(codes, dtype),
            D_old=np.empty((block, m), dtype),
            patch=np.empty(codes, np.int32),
            old=np.empty(codes, dtype),
            new=np.empty(codes, dtype),
            flag=flag,
            eights=flag.view(np.uint64),
            changes=np.zeros((chunks, block), np.int64),
            gram_old=np.empty((block, block), dtype),
            gram_new=np.empty((block, block), dtype),
            toward=np.empty((chunks, m), dtype),
            overlap=np.zeros(chunks, dtype),
            used=np.zeros(chunks, np.int64),
            direction=np.empty(m),
        )
