"""Sources of a pixel's normal and their uncertainty.

Each witness (the network, the matte fit, the outline of the mask) is a unit normal with a variance (mean squared angle,
radians²). They are averaged with inverse-variance weights, so none is switched on or off: if the matte model
explains the photographs within their noise, its variance is far below the network's, otherwise far above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from photostereo.runtime.arrays import Array, namespace


@dataclass(frozen=True)
class Witness:
    """Unit normals (N, 3) and their variances (N,) in radians²; infinite if nothing is known."""

    normals: Array
    variance: Array

    def some(self, which: Any) -> Witness:
        """Return a copy for some of the pixels."""
        return Witness(self.normals[which] + 0, self.variance[which] + 0)


def combine(*witnesses: Witness) -> Witness:
    """Return the inverse-variance average, as a unit normal with the remaining variance."""
    xp = namespace(witnesses[0].variance)
    precision: Array = 0.0
    total: Array = 0.0
    for witness in witnesses:
        precision = precision + 1.0 / witness.variance
        total = total + witness.normals / witness.variance[:, None]
    length = xp.sqrt((total * total).sum(-1))
    return Witness(total / (length + 1e-30)[:, None], 1.0 / precision)
