"""The models' equations in plain NumPy: what the compiled loops must equal. Symbols as in the models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.lowrank.model import GROWTH, LARGEST
from photostereo.reflectance.sparse.model import PRIOR_VARIANCE


def l1_reweighted_readable(
    Y: NDArray[np.float64],
    L: NDArray[np.float64],
    *,
    floor: float = 1e-6,
    max_iter: int = 1000,
    tol: float = 1e-8,
) -> NDArray[np.float64]:
    """L1 by reweighting alone, all pixels at once, in plain NumPy: what the compiled loop starts with."""
    top = np.abs(Y).max(axis=1, keepdims=True)
    top[top == 0] = 1.0
    y = Y / top
    n = y @ np.linalg.pinv(L)
    for _ in range(max_iter):
        w = 1.0 / np.maximum(np.abs(y - n @ L), floor)
        gram = np.einsum("aj,nj,bj->nab", L, w, L)
        step = np.linalg.solve(gram, ((w * (y - n @ L)) @ L.T)[:, :, None])[:, :, 0]
        n = n + step
        if np.abs(step).max() < tol:
            break
    return np.asarray(n * top)


def sbl_readable(
    Y: NDArray[np.float64],
    L: NDArray[np.float64],
    *,
    noise: float = 1e-3,
    max_iter: int = 200,
    tol: float = 1e-5,
) -> NDArray[np.float64]:
    """SBL by expectation maximization, pixel after pixel in plain NumPy: what the compiled loop means."""
    normals = np.zeros((len(Y), 3))
    for i, row in enumerate(Y):
        top = np.abs(row).max()
        if top == 0:
            continue
        y, gamma, n = row / top, np.ones(L.shape[1]), np.zeros(3)
        for _ in range(max_iter):
            S = gamma + noise
            covariance = np.linalg.inv((L / S) @ L.T + np.eye(3) / PRIOR_VARIANCE)
            previous, n = n, covariance @ (L @ (y / S))
            if np.abs(n - previous).max() < tol:
                break
            k = gamma / S
            spread = np.einsum("aj,ab,bj->j", L, covariance, L)
            gamma = np.maximum((k * (y - L.T @ n)) ** 2 + gamma * noise / S + k**2 * spread, 1e-10)
        normals[i] = n * top
    return normals


def robust_pca_readable(
    Y: np.ndarray, lam: float, *, tol: float = 1e-7, max_iter: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """The same iteration with a plain singular value decomposition: (A, E)."""
    norm = np.linalg.norm(Y, 2)
    dual = Y / max(norm, np.abs(Y).max() / lam)
    mu = 1.25 / norm
    limit = LARGEST * mu
    E = np.zeros_like(Y)
    for _ in range(max_iter):
        U, s, Vt = np.linalg.svd(Y - E + dual / mu, full_matrices=False)
        A = (U * np.maximum(s - 1.0 / mu, 0.0)) @ Vt
        Z = Y - A + dual / mu
        E = np.sign(Z) * np.maximum(np.abs(Z) - lam / mu, 0.0)
        dual = dual + mu * (Y - A - E)
        mu = min(GROWTH * mu, limit)
        if np.linalg.norm(Y - A - E) / np.linalg.norm(Y) < tol:
            break
    return A, E


def pieces_matrix(
    intensities: NDArray[np.float64], p: int, from_minimum: bool = False
) -> NDArray[np.float64]:
    """The matrix C of one pixel (d × p), readable: the part of each intensity that lies in each piece.

    >>> pieces_matrix(np.array([0.0, 0.3, 1.0]), 2)
    array([[0. , 0. ],
           [0.3, 0. ],
           [0.5, 0.5]])
    """
    low = float(intensities.min()) if from_minimum else 0.0
    knots = low + np.arange(p + 1) * (float(intensities.max()) - low) / p
    if low > 0:
        knots[0] = (
            0.0  # the curve starts at the origin: the first piece reaches from 0 to the first inner knot
        )
    width = np.diff(knots)
    clipped: NDArray[np.float64] = np.clip(
        intensities[:, None] - knots[None, :-1], 0.0, width[None, :]
    )
    return clipped
