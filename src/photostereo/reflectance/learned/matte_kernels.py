"""Compiled version of both matte fits of :mod:`photostereo.runtime.matte_fits`, in one pass over the pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.algebra_kernels import inverse_3x3, times_3x3
from photostereo.runtime.illumination import for_loops, pseudo_inverse
from photostereo.runtime.loops import shared
from photostereo.runtime.matte_fits import (
    FEWEST_LIT,
    LIT_NOISE,
    LIT_RIDGE,
    LIT_SHARE,
    UNUSABLE,
    MatteFit,
    gain_of,
)


def fit_both(
    pixels: NDArray[np.float32], lights: NDArray[Any], noise: NDArray[np.float32]
) -> tuple[MatteFit, MatteFit]:
    """Return ``fit_all`` and ``fit_lit`` of (N, d) intensities under (3, d) or (N, 3, d) lights."""
    count, d = pixels.shape
    scaled, misfit = np.empty((2, count, 3), np.float32), np.empty((2, count), np.float32)
    photographs, gain = np.empty((2, count), np.float32), np.empty((2, count), np.float32)
    photographs[0], gain[0] = d, gain_of(lights)
    shared_or_own = for_loops(lights.swapaxes(-1, -2)), for_loops(pseudo_inverse(lights))
    _fit_both(pixels, *shared_or_own, noise, scaled, misfit, photographs[1], gain[1])
    whole, lit = (MatteFit(scaled[k], misfit[k], photographs[k], gain[k]) for k in (0, 1))
    return whole, lit


@shared(of="pixels", error_model="numpy")
def _fit_both(first, last, pixels, all_lights, inverses, noise, scaled, misfit, lit_count, lit_gain):  # type: ignore[no-untyped-def]
    d = pixels.shape[1]
    for p in range(first, last):
        row = pixels[p]
        lights, inverse = all_lights[min(p, len(all_lights) - 1)], inverses[min(p, len(inverses) - 1)]
        x = y = z = 0.0
        top = row[0]
        for j in range(d):
            value = row[j]
            x += value * inverse[j, 0]
            y += value * inverse[j, 1]
            z += value * inverse[j, 2]
            top = max(top, value)
        floor = LIT_NOISE * np.sqrt(noise[p]) + LIT_SHARE * top
        xx = yy = zz = LIT_RIDGE
        xy = xz = yz = bx = by = bz = total = 0.0
        lit = 0
        for j in range(d):
            value = row[j]
            lx, ly, lz = lights[j, 0], lights[j, 1], lights[j, 2]
            rest = value - (x * lx + y * ly + z * lz)
            total += rest * rest
            if value > floor:
                xx += lx * lx
                xy += lx * ly
                xz += lx * lz
                yy += ly * ly
                yz += ly * lz
                zz += lz * lz
                bx += value * lx
                by += value * ly
                bz += value * lz
                lit += 1
        scaled[0, p, 0], scaled[0, p, 1], scaled[0, p, 2] = x, y, z
        misfit[0, p] = total / max(d - 3, 1)
        ixx, ixy, ixz, iyy, iyz, izz = inverse_3x3(xx, xy, xz, yy, yz, zz)
        x, y, z = times_3x3(ixx, ixy, ixz, iyy, iyz, izz, bx, by, bz)
        total = 0.0
        for j in range(d):
            if row[j] > floor:
                rest = row[j] - (x * lights[j, 0] + y * lights[j, 1] + z * lights[j, 2])
                total += rest * rest
        scaled[1, p, 0], scaled[1, p, 1], scaled[1, p, 2] = x, y, z
        misfit[1, p] = total / (lit - 3.0 if lit > 4 else 1.0)
        lit_count[p] = lit
        lit_gain[p] = (ixx + iyy + izz) / 3.0 + (UNUSABLE if lit < FEWEST_LIT else 0.0)
