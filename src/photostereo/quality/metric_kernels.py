"""The mean angular error, compiled: it is recorded in every iteration."""

from __future__ import annotations

import math

from photostereo.loops import njit, prange


@njit(cache=True, parallel=True)
def angles_between(a, b, degrees):  # type: ignore[no-untyped-def]
    """:func:`photostereo.quality.metrics.angle_between` of the rows of two (N, 3) arrays."""
    for i in prange(len(degrees)):
        a0, a1, a2 = float(a[i, 0]), float(a[i, 1]), float(a[i, 2])
        b0, b1, b2 = float(b[i, 0]), float(b[i, 1]), float(b[i, 2])
        x, y, z = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
        known = (a0 != 0.0 or a1 != 0.0 or a2 != 0.0) and (b0 != 0.0 or b1 != 0.0 or b2 != 0.0)
        angle = math.atan2(math.sqrt(x * x + y * y + z * z), a0 * b0 + a1 * b1 + a2 * b2)
        degrees[i] = math.degrees(angle) if known else 90.0
