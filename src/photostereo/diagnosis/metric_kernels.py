"""The mean angular error, compiled: it is recorded in every iteration."""

from __future__ import annotations

import math

import numpy as np

from photostereo.runtime.loops import njit, prange

#: Pixels whose sines and cosines wait in the first-level cache: vectors of three are taken apart one by one, angles are
#: found eight at once.
TOGETHER = 512


@njit(cache=True, error_model="numpy")
def _arc_tangent(y, x):  # type: ignore[no-untyped-def]
    """``atan2(y, x)`` for y ≥ 0, to rounding, and a right angle at (0, 0); without branches, so that it becomes vector
    instructions.

    The quotient is brought below 2/3 in size, where a rational function is exact to 1e-16 (S. L. Moshier, Methods and
    Programs for Mathematical Functions, 1989).
    """
    across = abs(x)
    steep = y > across
    larger = y if steep else across
    smaller = across if steep else y
    folds = smaller > 0.66 * larger
    above = smaller - larger if folds else smaller
    below = smaller + larger if folds else larger
    t = above / (below if below > 0.0 else 1.0)
    z = t * t
    p = -8.750608600031904122785e-1 * z - 1.615753718733365076637e1
    p = (p * z - 7.500855792314704667340e1) * z - 1.228866684490136173410e2
    p = p * z - 6.485021904942025371773e1
    q = (z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2
    q = (q * z + 4.328810604912902668951e2) * z + 4.853903996359136964868e2
    q = q * z + 1.945506571482613964425e2
    base = 0.25 * math.pi if folds else 0.0
    angle = base + (t + t * z * p / q)
    rest = 0.5 * math.pi - angle
    angle = rest if steep or larger == 0.0 else angle
    back = math.pi - angle
    return back if x < 0.0 else angle


@njit(cache=True)
def _take_apart(a, b, squared_sine, cosine):  # type: ignore[no-untyped-def]
    """``|a × b|²`` and ``a · b`` of the rows."""
    for i in range(len(cosine)):
        a0, a1, a2 = float(a[i, 0]), float(a[i, 1]), float(a[i, 2])
        b0, b1, b2 = float(b[i, 0]), float(b[i, 1]), float(b[i, 2])
        x, y, z = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
        squared_sine[i] = x * x + y * y + z * z
        cosine[i] = a0 * b0 + a1 * b1 + a2 * b2


@njit(cache=True, error_model="numpy")
def _angles(squared_sine, cosine, degrees):  # type: ignore[no-untyped-def]
    for i in range(len(degrees)):
        degrees[i] = _arc_tangent(math.sqrt(squared_sine[i]), cosine[i]) * (180.0 / math.pi)


@njit(cache=True, parallel=True)
def angles_between(a, b, degrees):  # type: ignore[no-untyped-def]
    """:func:`photostereo.diagnosis.metrics.angle_between` of the rows of two (N, 3) arrays.

    Sine and cosine are both zero only where one of the vectors is: there it is 90 degrees.
    """
    count = len(degrees)
    for part in prange(-(-count // TOGETHER)):
        low, high = part * TOGETHER, min((part + 1) * TOGETHER, count)
        squared_sine, cosine = np.empty(high - low), np.empty(high - low)
        _take_apart(a[low:high], b[low:high], squared_sine, cosine)
        _angles(squared_sine, cosine, degrees[low:high])
