"""The elementwise half of the inexact augmented Lagrangian, fused into one sweep over the entries."""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True, parallel=True)
def shrink_and_ascend(D, A, X, dual, observed, lam, mu, mu_next, residual):  # type: ignore[no-untyped-def]
    """Sparse part, dual ascent and the next argument of the singular value threshold, in place.

    With ``Z = D − A + Λ/μ`` the sparse part is ``E = shrink(Z, λ/μ)`` and the ascended dual is
    ``Λ⁺ = Λ + μ (D − A − E) = clip(μ Z, ±λ)``, so that ``E = Z − Λ⁺/μ`` and E itself is never stored.
    Overwrites ``dual`` with Λ⁺ and ``X`` with ``D − E + Λ⁺/μ⁺``; fills ``residual`` with the rows'
    ``‖D − A − E‖² = ‖Λ⁺ − Λ‖²/μ²``. Where ``observed`` is False (pass an array with no rows when all is),
    λ is zero: the entry is free.
    """
    rows, columns = D.shape
    masked = observed.shape[0] == rows
    unit, unit_next = 1.0 / mu, 1.0 / mu_next  # one division per call, not four per entry
    for i in prange(rows):
        total = 0.0
        for j in range(columns):
            bound = lam
            if masked and not observed[i, j]:
                bound = 0.0
            old = dual[i, j]
            z = D[i, j] - A[i, j] + old * unit
            new = min(max(mu * z, -bound), bound)
            dual[i, j] = new
            X[i, j] = D[i, j] - z + new * (unit + unit_next)
            total += (new - old) * (new - old)
        residual[i] = total * (unit * unit)


@njit(cache=True, parallel=True)
def subtract_scaled(X, dual, mu, out):  # type: ignore[no-untyped-def]
    """``out = X − Λ/μ``, in the type of ``out``."""
    for i in prange(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = X[i, j] - dual[i, j] / mu


@njit(cache=True, parallel=True)
def lit(Y, floor, observed):  # type: ignore[no-untyped-def]
    """Fill ``observed`` with ``y_j > floor · max(y)`` of each pixel: what is darker counts as shadow."""
    for i in prange(Y.shape[0]):
        top = np.float64(Y[i, 0])
        for j in range(Y.shape[1]):
            top = max(top, np.float64(Y[i, j]))
        for j in range(Y.shape[1]):
            observed[i, j] = Y[i, j] > floor * top
