"""The mean angular error, compiled: it is recorded in every iteration."""

from __future__ import annotations

import math

from photostereo.runtime.loops import shared


@shared(of="degrees")
def angles_between(first, last, a, b, degrees):  # type: ignore[no-untyped-def]
    """:func:`photostereo.diagnosis.metrics.angle_between` of the rows of two (N, 3) arrays.

    Sine and cosine are both zero only where one of the vectors is: there it is 90 degrees.
    """
    for i in range(first, last):
        a0, a1, a2 = float(a[i, 0]), float(a[i, 1]), float(a[i, 2])
        b0, b1, b2 = float(b[i, 0]), float(b[i, 1]), float(b[i, 2])
        x, y, z = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
        sine, cosine = math.sqrt(x * x + y * y + z * z), a0 * b0 + a1 * b1 + a2 * b2
        degrees[i] = math.degrees(math.atan2(sine, cosine)) if sine > 0.0 or cosine != 0.0 else 90.0
