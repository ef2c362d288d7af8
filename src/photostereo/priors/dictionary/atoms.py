"""Initial dictionaries: K atoms of unit norm, one per row.

A dictionary of K atoms of length m is undercomplete (K < m), square, or overcomplete (K > m). The
cosine dictionaries serve all three: the K lowest frequencies, the orthonormal DCT-II, and a DCT-II
with finer frequencies (the usual overcomplete DCT: ``cos(pi k (t + 1/2) / K)`` with the mean
removed for k > 0, then normalized).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import ParameterError, require_known

#: Kinds for :func:`initial_dictionary`.
KINDS = ("dct", "dct-separable", "identity", "random-patches")

#: Allowed deviation of a given dictionary from unit norm (rounding in a file); it is then
#: normalized.
NORM_TOLERANCE = 1e-3


def check_thresholds(mu: float, q: float) -> None:
    """Raise a :class:`ParameterError` unless ``0 <= mu <= q`` and ``mu`` is finite."""
    if not (math.isfinite(mu) and mu >= 0):
        raise ParameterError(
            f"mu, the threshold of the sparse codes, must be zero or a positive number, not {mu}.",
            code="threshold-out-of-range",
            mu=mu,
        )
    if not q >= mu or q <= 0:
        raise ParameterError(
            "q, the bound on the sparse codes, must be positive and at least mu, because the "
            f"closed form of the code update holds only then; got q = {q} with mu = {mu}. Leave q "
            "out, or raise it.",
            code="bound-below-threshold",
            mu=mu,
            q=q,
        )


def initial_dictionary(
    kind: str | FloatArray,
    size: tuple[int, int, int],
    atoms: int | None = None,
    *,
    patches: FloatArray | None = None,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.float64]:
    """Return an initial dictionary (K, m).

    Parameters
    ----------
    kind : str or array
        ``"dct"``: the one-dimensional DCT of length m. ``"dct-separable"``: products of cosines
        along z, y and x. ``"identity"``: unit vectors, followed by cosines (as ``"dct"``) if K > m.
        ``"random-patches"``: K different ``patches``, normalized. An array (K, m) is checked and
        normalized to rounding.
    size : tuple of three int
        (w_x, w_y, w_z) of a patch, ``m = w_x w_y w_z``.
    atoms : int, optional
        K; by default m, or the rows of the array.
    patches : array (w, m), optional
        To draw from.
    rng : Generator or int, optional
        For the draw.

    Examples
    --------
    >>> D = initial_dictionary("dct", (8, 8, 3))
    >>> D.shape, bool(np.allclose(D @ D.T, np.eye(192)))
    ((192, 192), True)
    """
    length = size[0] * size[1] * size[2]
    if not isinstance(kind, str):
        return _checked_array(np.asarray(kind), length, atoms)
    count = length if atoms is None else atoms
    if int(count) != count or count < 1:
        raise ParameterError(
            f"The number of atoms must be a positive whole number; got {atoms}.",
            code="atoms-not-a-count",
            atoms=atoms,
        )
    if kind == "dct":
        return cosines(length, count)
    if kind == "dct-separable":
        return separable_cosines(size, count)
    if kind == "identity":
        units = np.eye(min(count, length), length)
        if count <= length:
            return units
        return np.concatenate([units, cosines(length, count - length)])
    require_known(kind, KINDS, "initial dictionary", "unknown-dictionary")
    return _drawn_patches(patches, length, count, rng)


def check_atom_count(atoms: int, n_patches: int) -> None:
    """Raise a :class:`ParameterError` if there are more atoms than patches to learn them from."""
    if atoms > n_patches:
        raise ParameterError(
            f"There are more atoms than patches: {atoms} atoms, but only {n_patches} patches "
            "touch the mask. Choose fewer atoms, a smaller patch or a smaller stride.",
            code="more-atoms-than-patches",
            atoms=atoms,
            patches=n_patches,
        )


def cosines(length: int, count: int) -> NDArray[np.float64]:
    """Return DCT-II atoms (count, length) of one axis, lowest frequency first.

    The steps of the frequency are finer if count > length.
    """
    # At count = length these are the orthonormal DCT-II.
    frequency = np.arange(count)[:, None] / max(count, length)
    atoms = np.cos(np.pi * frequency * (np.arange(length) + 0.5))
    atoms[1:] -= atoms[1:].mean(axis=1, keepdims=True)
    if length == 1:
        atoms[:] = 1.0  # without its mean, an atom of one value would be zero
    return np.asarray(atoms / np.linalg.norm(atoms, axis=1, keepdims=True))


def separable_cosines(size: tuple[int, int, int], count: int) -> NDArray[np.float64]:
    """Return atoms (count, m) that are products of cosines along z, y and x.

    Up to m atoms: those of lowest total frequency of the separable DCT-II, in its Kronecker order
    (z slowest). Beyond m: the whole basis, so that the atoms span the patches, then, lowest first,
    products with intermediate frequencies along x and y, from a grid finer by an integer f. At
    ``K = f^2 m`` this is the usual overcomplete separable DCT.
    """
    w_x, w_y, w_z = size
    if count > w_x * w_y * w_z and w_x == w_y == 1:
        raise ParameterError(
            f"A patch of one pixel has only {w_z} separable cosines, fewer than the {count} atoms "
            "requested. Choose fewer atoms or a larger patch.",
            code="too-few-cosines",
            w_z=w_z,
            count=count,
        )
    finer = 1
    while True:
        # An axis of one value has one frequency.
        f_x = finer if w_x > 1 else 1
        f_y = finer if w_y > 1 else 1
        if w_x * f_x * w_y * f_y * w_z >= count:
            break
        finer += 1
    k_z, k_y, k_x = (k.ravel() for k in np.indices((w_z, w_y * f_y, w_x * f_x)))
    frequency = k_z / w_z + k_y / (w_y * f_y) + k_x / (w_x * f_x)
    # Every f-th frequency of the finer grid belongs to the orthonormal basis.
    is_basis = (k_y % f_y == 0) & (k_x % f_x == 0)
    basis = np.flatnonzero(is_basis)
    between = np.flatnonzero(~is_basis)
    if count <= basis.size:
        chosen = np.sort(basis[np.argsort(frequency[basis], kind="stable")[:count]])
    else:
        lowest = between[np.argsort(frequency[between], kind="stable")]
        chosen = np.concatenate([basis, lowest[: count - basis.size]])
    along_z = cosines(w_z, w_z)
    along_y = cosines(w_y, w_y * f_y)
    along_x = cosines(w_x, w_x * f_x)
    products = np.einsum(
        "kz,ky,kx->kzyx", along_z[k_z[chosen]], along_y[k_y[chosen]], along_x[k_x[chosen]]
    )
    return np.asarray(products.reshape(count, -1))


def _drawn_patches(
    patches: FloatArray | None, length: int, count: int, rng: np.random.Generator | int | None
) -> NDArray[np.float64]:
    if patches is None or patches.ndim != 2 or patches.shape[1] != length:
        raise ParameterError(
            'The initial dictionary "random-patches" needs the patches to draw from, one of '
            f"{length} values per row.",
            code="no-patches-to-draw",
            length=length,
        )
    check_atom_count(count, len(patches))
    norms = np.linalg.norm(patches.astype(np.float64), axis=1)
    # A patch outside the object is zero and cannot be an atom.
    usable = np.flatnonzero(norms > 1e-6 * norms.max())
    if usable.size < count:
        raise ParameterError(
            f'The initial dictionary "random-patches" draws {count} different patches, but only '
            f'{usable.size} are not zero. Choose fewer atoms or the dictionary "dct".',
            code="too-few-patches-to-draw",
            count=count,
            there=usable.size,
        )
    chosen = np.random.default_rng(rng).choice(usable, size=count, replace=False)
    return np.asarray(patches[chosen].astype(np.float64) / norms[chosen, None])


def _checked_array(array: FloatArray, length: int, atoms: int | None) -> NDArray[np.float64]:
    hint = ""
    if array.ndim == 2 and array.shape[0] == length != array.shape[1]:
        hint = " Its first axis has that length: transpose it."
    if array.ndim != 2 or array.shape[1] != length or len(array) == 0:
        raise ParameterError(
            f"A dictionary for these patches must have one atom of {length} values per row; this "
            f"array has shape {array.shape}.{hint}",
            code="dictionary-of-another-shape",
            length=length,
            shape=array.shape,
        )
    if atoms is not None and atoms != len(array):
        raise ParameterError(
            f"The dictionary given has {len(array)} atoms, but {atoms} were requested. Leave the "
            "number of atoms out.",
            code="dictionary-of-another-size",
            given=len(array),
            atoms=atoms,
        )
    D = array.astype(np.float64)
    norms = np.linalg.norm(D, axis=1)
    if not np.isfinite(D).all():
        raise ParameterError(
            "The dictionary given has values that are not finite numbers.",
            code="dictionary-not-finite",
        )
    # The message names the worst atom.
    worst = int(np.argmax(np.abs(norms - 1)))
    if abs(norms[worst] - 1) > NORM_TOLERANCE:
        raise ParameterError(
            f"The atoms of a dictionary must have unit norm, but atom {worst} of the one given "
            f"has norm {norms[worst]:.4g}. Divide each row by its norm.",
            code="atoms-not-unit",
            worst=worst,
            norm=norms[worst],
        )
    return np.asarray(D / norms[:, None])
