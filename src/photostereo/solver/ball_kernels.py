"""Compiled step of :mod:`.within_noise` for models whose data cost is quadratic in each pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.algebra_kernels import solve_3x3, times_3x3
from photostereo.runtime.loops import shared

Array = NDArray[Any]

#: Maximum number of Newton steps. From the left of the root they never overshoot, and each doubles the digits.
STEPS = 30


@shared(of="center")  # type: ignore[untyped-decorator]
def step_within(
    first: int,
    last: int,
    hessian: Array,
    linear: Array,
    center: Array,
    radius: Array,
    weight: Array,
    pull: Array,
    tolerance: float,
    out: Array,
) -> None:
    """Minimize ``nᵀH n − 2 hᵀn + w |n|² − 2 n·q`` subject to ``|n − m| ≤ radius``, pixel by pixel.

    With s = n − m and A = H + w I, the minimizer is s(ν) = (A + ν I)⁻¹ (h + q − A m), where ν ≥ 0 is the root of
    φ(ν) = 1/|s(ν)| − 1/radius. φ is concave and increasing, so Newton's steps approach the root from the left.
    """
    same, isotropic = hessian.shape[0] == 1, hessian.shape[1] == 1
    for i in range(first, last):
        k = 0 if same else i
        w = weight[i]
        if isotropic:  # the nearest point of the ball
            a = hessian[k, 0] + w
            m0, m1, m2 = center[i, 0], center[i, 1], center[i, 2]
            s0 = (linear[i, 0] + pull[i, 0]) / a - m0
            s1 = (linear[i, 1] + pull[i, 1]) / a - m1
            s2 = (linear[i, 2] + pull[i, 2]) / a - m2
            length = np.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
            scale = 1.0 if length <= radius[i] else radius[i] / length
            out[i, 0], out[i, 1], out[i, 2] = m0 + scale * s0, m1 + scale * s1, m2 + scale * s2
            continue
        a00, a01, a02 = hessian[k, 0] + w, hessian[k, 1], hessian[k, 2]
        a11, a12, a22 = hessian[k, 3] + w, hessian[k, 4], hessian[k, 5] + w
        m0, m1, m2 = center[i, 0], center[i, 1], center[i, 2]
        p0, p1, p2 = times_3x3(a00, a01, a02, a11, a12, a22, m0, m1, m2)
        g0, g1, g2 = (
            linear[i, 0] + pull[i, 0] - p0,
            linear[i, 1] + pull[i, 1] - p1,
            linear[i, 2] + pull[i, 2] - p2,
        )
        most = radius[i]
        nu = 0.0
        s0, s1, s2 = solve_3x3(a00, a01, a02, a11, a12, a22, g0, g1, g2)
        length = np.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
        if length > most:
            if most <= 0.0:
                s0 = s1 = s2 = 0.0
            else:
                for _ in range(STEPS):
                    t0, t1, t2 = solve_3x3(a00 + nu, a01, a02, a11 + nu, a12, a22 + nu, s0, s1, s2)
                    # |s|' = −s·(A + ν)⁻¹s / |s|
                    slope = (s0 * t0 + s1 * t1 + s2 * t2) / (length * length)
                    nu += (length / most - 1.0) / slope
                    s0, s1, s2 = solve_3x3(a00 + nu, a01, a02, a11 + nu, a12, a22 + nu, g0, g1, g2)
                    length = np.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
                    if abs(length - most) <= tolerance * most:
                        break
                if length > most:  # remove the remaining tolerance: the answer is always inside
                    s0, s1, s2 = s0 * most / length, s1 * most / length, s2 * most / length
        out[i, 0], out[i, 1], out[i, 2] = m0 + s0, m1 + s1, m2 + s2
