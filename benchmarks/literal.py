"""The paper's algorithm, literally: the reference for the benchmarks. Not part of the library.

Dense passes over the atoms, 25 proximal steps of size 1 / (2 ‖L‖²) on the full photographs, slopes from a
precomputed pseudoinverse (with the √γ that the stacked form needs; the paper prints γ). Intensities, λ, μ
as in the library; the paper's units have n, a and μ divided by p, which changes nothing but the numbers, so
the library's units are used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from photostereo.priors.dictionary.atoms import initial_dictionary
from photostereo.priors.dictionary.patches import PatchGrid
from tests.priors.dictionary.readable import adjoint, extract
from tests.reflectance.readable import pieces_matrix

PROXIMAL_STEPS = 25


@dataclass
class LiteralResult:
    costs: list[float]
    seconds: list[float]


def dense_pass(R, D, B, mu, q):
    """The (D, B) update in the residual form, dense NumPy, one atom at a time."""
    for i in range(len(D)):
        R += np.outer(B[i], D[i])
        products = R @ D[i]
        B[i] = np.clip(np.where(np.abs(products) >= mu, products, 0), -q, q)
        if B[i].any():
            direction = R.T @ B[i]
            D[i] = direction / np.linalg.norm(direction)
        else:
            D[i] = 0
            D[i, 0] = 1
        R -= np.outer(B[i], D[i])


def literal_pdlnv(
    pixels, lights, mask, *, lam, mu, p=2, gamma=1e4, q=1e3, iterations=50, size=(8, 8, 3), stride=4
) -> LiteralResult:
    """PDLNV as printed: alternate n (25 proximal steps), (D, B), a; start from least squares and a = 1."""
    count, _photographs = pixels.shape
    dtype = pixels.dtype
    L = lights.astype(dtype)
    grid = PatchGrid.from_mask(mask, size=size, stride=stride)
    cover = grid.count.astype(dtype)[:, None]
    C = np.stack([pieces_matrix(row, p) for row in pixels]).astype(dtype)  # N × d × p
    root = np.sqrt(gamma)
    stacked = np.concatenate([C, np.full((count, 1, p), root, dtype)], axis=1)
    inverse = np.linalg.pinv(stacked.astype(np.float32))  # N × p × (d + 1)
    n = (pixels @ np.linalg.pinv(L)).astype(dtype)
    a = np.ones((count, p), dtype)
    D = initial_dictionary("dct", size).astype(dtype)
    B = np.zeros((len(D), grid.n_patches), dtype)
    tau = 1.0 / (2.0 * np.linalg.norm(L, 2) ** 2)
    result = LiteralResult([], [])
    for _ in range(iterations):
        began = time.perf_counter()
        R = extract(grid, n) - B.T @ D
        dense_pass(R, D, B, mu, q)
        pull = adjoint(grid, B.T @ D)
        y = np.einsum("ndp,np->nd", C, a)
        for _ in range(PROXIMAL_STEPS):
            gradient = 2.0 * ((n @ L - y) @ L.T)
            n = (n - tau * gradient + 2 * tau * lam * pull) / (1 + 2 * tau * lam * cover)
        right = np.concatenate([n @ L, np.full((count, 1), root * p, dtype)], axis=1)
        a = np.einsum("npd,nd->np", inverse, right)
        result.seconds.append(time.perf_counter() - began)
        data = ((np.einsum("ndp,np->nd", C, a) - n @ L).astype(np.float64) ** 2).sum()
        data += gamma * ((a.astype(np.float64).sum(1) - p) ** 2).sum()
        fit = ((extract(grid, n) - B.T @ D).astype(np.float64) ** 2).sum()
        result.costs.append(float(data + lam * (fit + mu**2 * np.count_nonzero(B))))
    return result
