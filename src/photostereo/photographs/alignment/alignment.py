"""Decide what an estimated camera movement means, and undo it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.photographs.alignment.motion import Motion, shifted

#: Smaller movements, in pixels, are reported but not undone: interpolation would cost as much detail as they do.
MATTERS = 1.0
#: A movement is certain if it exceeds this many standard errors ...
CERTAIN = 6.0
#: ... and if at least this share of the informative tiles agree on it. Shadows and highlights that wander with the light
#: make tiles disagree: 0.3 to 0.6 agree by chance on still captures, 0.8 to 1 on moved ones.
AGREEING = 0.6


@dataclass(frozen=True, eq=False)
class Alignment:
    """Camera movement between photographs, and which part of it is undone.

    Attributes
    ----------
    shifts : (d, 2) float64
        Estimated displacement of each photograph in columns and rows.
    errors : (d,) float64
        Its standard error in pixels.
    corrected : (d, 2) float64
        What is undone: zero for photographs that are still, or whose movement is uncertain or too small to matter.
    uncertain : (d,) bool
        Photographs that seem to have moved, without certainty.
    """

    shifts: NDArray[np.float64]
    errors: NDArray[np.float64]
    corrected: NDArray[np.float64]
    uncertain: NDArray[np.bool_]

    @classmethod
    def of(cls, motion: Motion) -> Alignment:
        """Decide from an estimate."""
        length = np.hypot(*motion.shifts.T)
        large = length > MATTERS
        certain = (length > CERTAIN * motion.errors) & (motion.agreement >= AGREEING)
        corrected = np.where((large & certain)[:, None], motion.shifts, 0.0)
        return cls(motion.shifts, motion.errors, corrected, large & ~certain)

    @classmethod
    def still(cls, count: int) -> Alignment:
        """Photographs that have not moved."""
        nothing = np.zeros((count, 2))
        return cls(nothing, np.zeros(count), nothing, np.zeros(count, dtype=bool))

    @property
    def is_still(self) -> bool:
        """Whether nothing is undone."""
        return not self.corrected.any()

    def apply(self, number: int, photograph: NDArray[np.float32]) -> NDArray[np.float32]:
        """A photograph (H, W) or (H, W, 3) with its movement undone; the same array if it is still."""
        return shifted(photograph, self.corrected[number])
