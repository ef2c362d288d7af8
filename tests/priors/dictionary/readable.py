"""The paper's update of the dictionary and the sparse codes, and patches, in plain NumPy: what the fast forms must equal."""

from __future__ import annotations

import math

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.priors.dictionary.atoms import check_thresholds
from photostereo.priors.dictionary.patches import PatchGrid


def hard_threshold(y: FloatArray, mu: float) -> FloatArray:
    """``H_mu``: zero where ``|y| < mu``, y itself elsewhere.

    >>> hard_threshold(np.array([-2.0, 0.5, 1.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    return np.where(np.abs(y) < mu, 0, y).astype(y.dtype, copy=False)


def best_atom(E: FloatArray, g: FloatArray, d: FloatArray) -> FloatArray:
    """The unit vector that minimizes ``||E - g d^T||``: ``E^T g`` normalized, and ``e_1`` where g is zero.

    Where g is not zero but ``E^T g`` is, every unit vector does equally well, and ``d`` stays.
    """
    if not g.any():
        return np.eye(1, d.size, dtype=d.dtype).ravel()
    direction: FloatArray = E.T @ g
    length = np.linalg.norm(direction)
    return direction / length if length > 0 else d


def update_dictionary(
    P: FloatArray,
    D: FloatArray,
    B: FloatArray,
    *,
    mu: float,
    q: float = math.inf,
    update_atoms: bool = True,
    given: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """One pass over the atoms, which lowers the cost in each code and each atom in turn::

        minimize  || P - B^T D ||_F^2 + mu^2 ||B||_0   subject to  |B| <= q,  ||d_i|| = 1

    For i = 1 ... K, with ``E_i = P - sum_{k != i} g_k d_k^T`` from the latest values::

        g_i <- H_mu(E_i d_i), clipped to [-q, q]
        d_i <- E_i^T g_i / ||E_i^T g_i||,    or e_1 where g_i = 0

    (Patches and atoms are rows here; in the paper they are columns.)

    Parameters
    ----------
    P : (w, m) array
        One patch per row.
    D : (K, m) array
        One unit atom ``d_i`` per row.
    B : (K, w) array
        Row i is ``g_i``, the code of atom i in every patch.
    mu, q : float
        Threshold and bound of the codes, ``q >= mu``.
    update_atoms : bool
        False keeps the dictionary and updates the codes only.
    given : (K, m) array, optional
        Atoms that were learned elsewhere: each takes its place at the moment when it would be updated.

    Returns
    -------
    D, B : arrays
        New arrays; the arguments are left alone.

    References
    ----------
    .. [1] A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, "Robust Photometric Stereo via Dictionary
       Learning", IEEE Transactions on Computational Imaging, 2018, doi:10.48550/arXiv.1710.08873.
    .. [2] S. Ravishankar, R. R. Nadakuditi, J. A. Fessler, "Efficient Sum of Outer Products Dictionary
       Learning (SOUP-DIL) and Its Application to Inverse Problems", IEEE Transactions on Computational
       Imaging, 2017, doi:10.1109/TCI.2017.2697206.

    Examples
    --------
    >>> P = np.array([[3.0, 4.0], [0.1, 0.0]])
    >>> D, B = update_dictionary(P, np.array([[1.0, 0.0]]), np.zeros((1, 2)), mu=1.0)
    >>> D, B
    (array([[0.6, 0.8]]), array([[3., 0.]]))
    """
    check_thresholds(mu, q)
    D, B = D.copy(), B.copy()
    R = P - B.T @ D
    for i in range(len(D)):
        E = R + np.outer(B[i], D[i])
        B[i] = np.clip(hard_threshold(E @ D[i], mu), -q, q)
        if given is not None:
            D[i] = given[i]
        elif update_atoms:
            D[i] = best_atom(E, B[i], D[i])
        R = E - np.outer(B[i], D[i])
    return D, B


def extract_readable(grid: PatchGrid, n: FloatArray) -> FloatArray:
    """:meth:`PatchGrid.extract` in plain NumPy: paste the normals into a picture, cut each patch out."""
    w_x, w_y, _ = grid.size
    picture = np.zeros((*grid.mask.shape, 3), dtype=n.dtype)
    picture[grid.mask] = n
    corners = zip(grid.window_rows, grid.window_cols, strict=True)
    windows = [picture[row : row + w_y, col : col + w_x].transpose(2, 0, 1) for row, col in corners]
    return np.stack(windows).reshape(grid.n_patches, grid.patch_length)


def adjoint_readable(grid: PatchGrid, P: FloatArray) -> FloatArray:
    """:meth:`PatchGrid.adjoint` in plain NumPy: add each patch back into a picture, read the mask pixels."""
    w_x, w_y, _ = grid.size
    picture = np.zeros((*grid.mask.shape, 3), dtype=P.dtype)
    windows = P.reshape(-1, 3, w_y, w_x).transpose(0, 2, 3, 1)
    for window, row, col in zip(windows, grid.window_rows, grid.window_cols, strict=True):
        picture[row : row + w_y, col : col + w_x] += window
    return np.asarray(picture[grid.mask])


def extract(grid: PatchGrid, n: FloatArray) -> FloatArray:
    """All patches of the normals by the fast form: one row per patch, in the dtype of ``n``."""
    return grid.add_extract(n, np.zeros((grid.n_patches, grid.patch_length), dtype=n.dtype))


def adjoint(grid: PatchGrid, P: FloatArray) -> FloatArray:
    """``sum_j P_j^T p_j`` by the fast form: every patch added back at its position."""
    return -grid.pull(np.zeros((grid.n_pixels, 3), dtype=P.dtype), P)
