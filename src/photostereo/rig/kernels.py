"""Compiled loops of a prepared rig: weighted sums of photographs, and a few rounds of reweighting.

Pixels are processed in rows of :data:`LANES`, the same step for all of them at once, so that the compiler can use vector
instructions. Photographs are read as the camera delivers them (8, 16 or 32 bits); everything else is single precision.
"""

import numpy as np

from photostereo.runtime.algebra import SUMS
from photostereo.runtime.loops import njit, prange

#: Pixels per step: their sums stay in the first cache.
LANES = 512
#: The same for reweighting, which keeps the photographs of its pixels, too.
ROBUST_LANES = 128
#: An albedo below this share of full scale has no direction.
BLACK = 1e-6


@njit(cache=True, parallel=True, fastmath=SUMS, error_model="numpy")
def solve_linear(images, weights, ambient, offsets, normals, albedo):  # type: ignore[no-untyped-def]
    """Fill unit ``normals`` (N × 3) and ``albedo`` (N): x = Σ_j weights[:, j] images[j] − offsets · ambient.

    ``images`` is d × N, ``weights`` 3 × d; ``ambient`` has N values, or none.
    """
    d, pixels = images.shape
    for step in prange(-(-pixels // LANES)):
        first = step * LANES
        count = min(LANES, pixels - first)
        x = np.zeros(LANES, np.float32)
        y = np.zeros(LANES, np.float32)
        z = np.zeros(LANES, np.float32)
        if len(ambient):
            for i in range(count):
                dark = ambient[first + i]
                x[i] = -offsets[0] * dark
                y[i] = -offsets[1] * dark
                z[i] = -offsets[2] * dark
        for j in range(d):
            a = weights[0, j]
            b = weights[1, j]
            c = weights[2, j]
            for i in range(count):
                value = np.float32(images[j, first + i])
                x[i] += a * value
                y[i] += b * value
                z[i] += c * value
        _normalize(x, y, z, first, count, normals, albedo)


@njit(cache=True, parallel=True, fastmath=SUMS, error_model="numpy")
def solve_robust(  # type: ignore[no-untyped-def]
    images, gains, lights, weights, ambient, rounds, floor, normals, albedo
):
    """Like :func:`solve_linear`, then ``rounds`` of least squares with weights 1 / max(|residual|, floor · brightness).

    This approaches least absolute residuals. ``lights`` is d × 3, ``gains`` turns stored numbers into intensities.
    """
    d, pixels = images.shape
    for step in prange(-(-pixels // ROBUST_LANES)):
        first = step * ROBUST_LANES
        count = min(ROBUST_LANES, pixels - first)
        values = np.zeros((d, ROBUST_LANES), np.float32)
        x = np.zeros(ROBUST_LANES, np.float32)
        y = np.zeros(ROBUST_LANES, np.float32)
        z = np.zeros(ROBUST_LANES, np.float32)
        least = np.full(ROBUST_LANES, np.float32(1e-30))
        sums = np.zeros((9, ROBUST_LANES), np.float32)
        for j in range(d):
            for i in range(count):
                dark = ambient[first + i] if len(ambient) else np.float32(0.0)
                value = gains[j] * (np.float32(images[j, first + i]) - dark)
                values[j, i] = value
                least[i] = max(least[i], floor * value)
                x[i] += weights[0, j] * value
                y[i] += weights[1, j] * value
                z[i] += weights[2, j] * value
        for _ in range(rounds):
            sums[:] = np.float32(0.0)
            for j in range(d):
                a = lights[j, 0]
                b = lights[j, 1]
                c = lights[j, 2]
                for i in range(count):
                    residual = abs(values[j, i] - a * x[i] - b * y[i] - c * z[i])
                    weight = least[i] / max(residual, least[i])
                    sums[0, i] += weight * (a * a)
                    sums[1, i] += weight * (a * b)
                    sums[2, i] += weight * (a * c)
                    sums[3, i] += weight * (b * b)
                    sums[4, i] += weight * (b * c)
                    sums[5, i] += weight * (c * c)
                    weighted = weight * values[j, i]
                    sums[6, i] += weighted * a
                    sums[7, i] += weighted * b
                    sums[8, i] += weighted * c
            _solve_symmetric(sums, count, x, y, z)
        _normalize(x, y, z, first, count, normals, albedo)


@njit(cache=True, fastmath=SUMS, error_model="numpy")
def _solve_symmetric(sums, count, x, y, z):  # type: ignore[no-untyped-def]
    """Solve one 3 × 3 system per pixel by cofactors; rows 0–5 of ``sums`` are the matrix, 6–8 the right-hand side."""
    for i in range(count):
        xx = sums[0, i]
        xy = sums[1, i]
        xz = sums[2, i]
        yy = sums[3, i]
        yz = sums[4, i]
        zz = sums[5, i]
        c00 = yy * zz - yz * yz
        c01 = xz * yz - xy * zz
        c02 = xy * yz - xz * yy
        c11 = xx * zz - xz * xz
        c12 = xy * xz - xx * yz
        c22 = xx * yy - xy * xy
        determinant = xx * c00 + xy * c01 + xz * c02
        # Too few photographs agree to determine a normal: keep the last one.
        good = determinant > np.float32(1e-9) * (xx + yy + zz) ** 3
        scale = np.float32(1.0) / determinant if good else np.float32(0.0)
        u = sums[6, i]
        v = sums[7, i]
        w = sums[8, i]
        keep = np.float32(0.0) if good else np.float32(1.0)
        x[i] = keep * x[i] + scale * (c00 * u + c01 * v + c02 * w)
        y[i] = keep * y[i] + scale * (c01 * u + c11 * v + c12 * w)
        z[i] = keep * z[i] + scale * (c02 * u + c12 * v + c22 * w)


@njit(cache=True, fastmath=SUMS, error_model="numpy")
def _normalize(x, y, z, first, count, normals, albedo):  # type: ignore[no-untyped-def]
    """Divide by the length, which is the albedo; black pixels get the zero vector."""
    for i in range(count):
        length = np.sqrt(x[i] * x[i] + y[i] * y[i] + z[i] * z[i])
        scale = np.float32(1.0) / length if length > np.float32(BLACK) else np.float32(0.0)
        pixel = first + i
        normals[pixel, 0] = scale * x[i]
        normals[pixel, 1] = scale * y[i]
        normals[pixel, 2] = scale * z[i]
        albedo[pixel] = length
