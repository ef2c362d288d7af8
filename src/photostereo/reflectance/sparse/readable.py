"""Sparse regression in plain NumPy: what the compiled loops mean. Symbols as in :mod:`.model`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The weakest prior on n that keeps its covariance finite: variance 1e6 at intensities of order one.
PRIOR_VARIANCE = 1e6


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
