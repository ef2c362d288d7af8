"""What the piecewise model keeps of the photographs."""

from __future__ import annotations

from dataclasses import dataclass

from photostereo.runtime.arrays import Array


@dataclass(frozen=True)
class PiecewiseStatistics:
    """All that the model keeps of the photographs, for N pixels and p pieces.

    Attributes
    ----------
    gram : (N, p, p) ``T = CᵀC``
    cross : (N, p, 3) ``Q = CᵀLᵀ``
    usable : (N,) False where the curve cannot be told (no intensity, or no range): there a = 1, the
        Lambertian model
    """

    gram: Array
    cross: Array
    usable: Array
