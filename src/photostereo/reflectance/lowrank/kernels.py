"""One iteration of the augmented Lagrangian as one parallel sweep over the rows, and a small eigensolver.

A library's matrix product would do the multiplications as fast, but its threads meet several times per product,
and dozens of times in an eigendecomposition: on a machine that is busy with anything else each meeting waits for
a thread that is not running. Here the threads meet once per iteration, and a block of rows is read, multiplied,
shrunk and summed into its Gram matrix while it is in the cache.
"""

from __future__ import annotations

import numpy as np

from photostereo.runtime.loops import njit, prange

#: Rows that are worked on together; a multiple of four.
TILE = 64


@njit(cache=True, fastmath={"contract"})
def _multiply(X, M, out):  # type: ignore[no-untyped-def]
    """``out = X M`` for a block of rows (a multiple of four), four rows and four terms at a time."""
    rows, (inner, columns) = X.shape[0], M.shape
    for i in range(0, rows, 4):
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        for j in range(columns):
            o0[j] = o1[j] = o2[j] = o3[j] = 0.0
        k = 0
        while k + 3 < inner:
            m0, m1, m2, m3 = M[k], M[k + 1], M[k + 2], M[k + 3]
            a0, a1, a2, a3 = x0[k], x0[k + 1], x0[k + 2], x0[k + 3]
            b0, b1, b2, b3 = x1[k], x1[k + 1], x1[k + 2], x1[k + 3]
            c0, c1, c2, c3 = x2[k], x2[k + 1], x2[k + 2], x2[k + 3]
            d0, d1, d2, d3 = x3[k], x3[k + 1], x3[k + 2], x3[k + 3]
            for j in range(columns):
                u0, u1, u2, u3 = m0[j], m1[j], m2[j], m3[j]
                o0[j] += a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3
                o1[j] += b0 * u0 + b1 * u1 + b2 * u2 + b3 * u3
                o2[j] += c0 * u0 + c1 * u1 + c2 * u2 + c3 * u3
                o3[j] += d0 * u0 + d1 * u1 + d2 * u2 + d3 * u3
            k += 4
        while k < inner:
            m0 = M[k]
            for j in range(columns):
                o0[j] += x0[k] * m0[j]
                o1[j] += x1[k] * m0[j]
                o2[j] += x2[k] * m0[j]
                o3[j] += x3[k] * m0[j]
            k += 1


@njit(cache=True, fastmath={"contract"})
def _add_gram(X, gram):  # type: ignore[no-untyped-def]
    """``gram += XᵀX``, on and above the diagonal (and a little below), four columns and four rows at a time."""
    rows, columns = X.shape
    for a in range(0, columns - 3, 4):
        # Slices that begin at the diagonal: the inner loop runs from 0, which the compiler vectorises far better.
        g0, g1, g2, g3 = gram[a, a:], gram[a + 1, a:], gram[a + 2, a:], gram[a + 3, a:]
        for i in range(0, rows, 4):
            x0, x1, x2, x3 = X[i, a:], X[i + 1, a:], X[i + 2, a:], X[i + 3, a:]
            a0, a1, a2, a3 = x0[0], x1[0], x2[0], x3[0]
            b0, b1, b2, b3 = x0[1], x1[1], x2[1], x3[1]
            c0, c1, c2, c3 = x0[2], x1[2], x2[2], x3[2]
            d0, d1, d2, d3 = x0[3], x1[3], x2[3], x3[3]
            for j in range(columns - a):
                u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                g0[j] += a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3
                g1[j] += b0 * u0 + b1 * u1 + b2 * u2 + b3 * u3
                g2[j] += c0 * u0 + c1 * u1 + c2 * u2 + c3 * u3
                g3[j] += d0 * u0 + d1 * u1 + d2 * u2 + d3 * u3
    for a in range(columns - columns % 4, columns):
        for i in range(rows):
            for j in range(a, columns):
                gram[a, j] += X[i, a] * X[i, j]


@njit(cache=True)
def _shrink_and_ascend(D, A, X, dual, observed, masked, lam, mu, mu_next, block):  # type: ignore[no-untyped-def]
    """Sparse part, dual ascent and the next argument of the singular value threshold, in place.

    With ``Z = D − A + Λ/μ`` the sparse part is ``E = shrink(Z, λ/μ)`` and the ascended dual is
    ``Λ⁺ = Λ + μ (D − A − E) = clip(μ Z, ±λ)``, so that ``E = Z − Λ⁺/μ`` and E itself is never stored.
    Overwrites ``dual`` with Λ⁺, ``X`` and ``block`` with ``D − E + Λ⁺/μ⁺``; returns ``‖D − A − E‖² = ‖Λ⁺ − Λ‖²/μ²``.
    """
    unit, unit_next = 1.0 / mu, 1.0 / mu_next
    total = 0.0
    for i in range(D.shape[0]):
        for j in range(D.shape[1]):
            bound = lam
            if masked and not observed[i, j]:
                bound = 0.0
            old = dual[i, j]
            z = D[i, j] - A[i, j] + old * unit
            new = min(max(mu * z, -bound), bound)
            dual[i, j] = new
            X[i, j] = block[i, j] = D[i, j] - z + new * (unit + unit_next)
            total += (new - old) * (new - old)
    return total * (unit * unit)


@njit(cache=True, parallel=True)
def sweep(Y, X, dual, observed, left, right, lam, mu, mu_next, residuals, grams):  # type: ignore[no-untyped-def]
    """One iteration: ``A = X left right`` is the threshold of X; X and dual move on, in place.

    ``grams`` (parts × d × d) and ``residuals`` (parts) receive each part's share of ``XᵀX`` (its upper
    triangle) for the new X, and of ``‖Y − A − E‖²``. The parts do not depend on the number of threads, so
    neither does the result. ``left`` with no columns stands for A = 0; ``right`` with no rows, for a square
    ``left`` that is the whole product.
    """
    rows, columns = Y.shape
    masked = observed.shape[0] == rows
    parts = grams.shape[0]
    thin = right.shape[0] > 0
    for part in prange(parts):
        grams[part] = 0.0
        residuals[part] = 0.0
        first, last = part * rows // parts, (part + 1) * rows // parts
        # Whole tiles only: a part that ends within one is filled up with rows of zeros.
        block, A = np.zeros((TILE, columns)), np.zeros((TILE, columns))
        half = np.zeros((TILE, left.shape[1]))
        for start in range(first, last, TILE):
            stop = min(start + TILE, last)
            count = stop - start
            block[:count] = X[start:stop]
            block[count:] = 0.0
            if thin:
                _multiply(block, left, half)
                _multiply(half, right, A)
            elif left.shape[1] > 0:
                _multiply(block, left, A)
            seen = observed[start:stop] if masked else observed
            residuals[part] += _shrink_and_ascend(
                Y[start:stop], A, X[start:stop], dual[start:stop], seen, masked, lam, mu, mu_next, block
            )
            _add_gram(block, grams[part])


@njit(cache=True, parallel=True)
def begin(Y, observed, scale, mu, X, dual, grams):  # type: ignore[no-untyped-def]
    """``Λ = Y/scale`` where observed, else 0, and ``X = Y + Λ/μ``, with the parts' Gram matrices of X.

    With scale = 0, Λ = 0 and X = Y.
    """
    rows, columns = Y.shape
    masked = observed.shape[0] == rows
    parts = grams.shape[0]
    for part in prange(parts):
        grams[part] = 0.0
        first, last = part * rows // parts, (part + 1) * rows // parts
        block = np.zeros((TILE, columns))
        for start in range(first, last, TILE):
            stop = min(start + TILE, last)
            block[stop - start :] = 0.0
            for i in range(start, stop):
                for j in range(columns):
                    value = np.float64(Y[i, j])
                    dual[i, j] = 0.0
                    if scale > 0.0 and (not masked or observed[i, j]):
                        dual[i, j] = value / scale
                    X[i, j] = value + dual[i, j] / mu
                    block[i - start, j] = X[i, j]
            _add_gram(block, grams[part])


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _squared_norm(row):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in row:
        total += value * value
    return total


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _rotate_rows(W, squares, i, j):  # type: ignore[no-untyped-def]
    """Make rows i and j of W orthogonal by a rotation; the cosine of the angle that they had."""
    p, q = W[i], W[j]
    product = 0.0
    for k in range(p.size):
        product += p[k] * q[k]
    size = np.sqrt(squares[i] * squares[j])
    if size == 0.0 or abs(product) <= 1e-15 * size:
        return 0.0
    zeta = (squares[j] - squares[i]) / (2.0 * product)
    t = 1.0 / (abs(zeta) + np.sqrt(1.0 + zeta * zeta))
    if zeta < 0.0:
        t = -t
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = c * t
    pp = qq = 0.0
    for k in range(p.size):
        x, y = p[k], q[k]
        u, v = c * x - s * y, s * x + c * y
        p[k] = u
        q[k] = v
        pp += u * u
        qq += v * v
    squares[i] = pp
    squares[j] = qq
    return abs(product) / size


@njit(cache=True)
def _square_root(G):  # type: ignore[no-untyped-def]
    """R with ``RᵀR = G``, the largest remaining diagonal entry first; rows of zeros where G has no more rank."""
    rest, R = G.copy(), np.zeros_like(G)
    floor = 1e-16 * np.diag(G).max()
    for row in R:
        pivot = 0
        for i in range(1, row.size):
            if rest[i, i] > rest[pivot, pivot]:
                pivot = i
        if rest[pivot, pivot] <= floor:
            break
        row[:] = rest[pivot] / np.sqrt(rest[pivot, pivot])
        for i in range(row.size):
            factor = row[i]
            for j in range(row.size):
                rest[i, j] -= factor * row[j]
        rest[pivot] = 0.0
        rest[:, pivot] = 0.0
    return R


@njit(cache=True)
def eigenvectors(G, tol, max_sweeps):  # type: ignore[no-untyped-def]
    """Eigenvalues and eigenvectors (rows) of a positive semi-definite matrix by one-sided Jacobi rotations.

    Rotations Q make the rows of ``W = Q R`` orthogonal, where ``RᵀR = G``. Then ``G = WᵀW``: each row is an
    eigenvector times the root of its eigenvalue, and the rotations need not be kept. From the Cholesky factor
    this takes half as many sweeps as from G itself (Veselić and Hari, Numerische Mathematik 56, 1989). Rows of
    (nearly) zero length have no direction and come back as zeros.
    """
    W = _square_root(G)
    size = len(W)
    squares = np.empty(size)
    for _ in range(max_sweeps):
        for i in range(size):
            squares[i] = _squared_norm(W[i])
        floor = 1e-14 * squares.max()
        worst = 0.0
        for i in range(size - 1):
            for j in range(i + 1, size):
                if squares[i] > floor and squares[j] > floor:
                    worst = max(worst, _rotate_rows(W, squares, i, j))
        if worst < tol:
            break
    values = np.empty(size)
    for i in range(size):
        values[i] = _squared_norm(W[i])
    floor = 1e-14 * values.max()
    for i in range(size):
        W[i] *= 1.0 / np.sqrt(values[i]) if values[i] > floor else 0.0
    return values, W


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
