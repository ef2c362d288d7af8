"""Estimate the movement of the camera from reduced pictures, and decide what to undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding, listed
from photostereo.photographs.alignment.edges import TURNED
from photostereo.photographs.alignment.motion import Motion, estimate_motion, farthest
from photostereo.photographs.framing import Float32

#: Smaller movements, in pixels, are reported but not undone: interpolation would cost as much detail as they do.
MATTERS = 1.0
#: A movement is certain if it exceeds this many standard errors ...
CERTAIN = 6.0
#: ... and if at least this share of the informative tiles agree on it. Shadows and highlights that wander with the light
#: make tiles disagree: 0.3 to 0.6 agree by chance on still captures, 0.8 to 1 on moved ones.
AGREEING = 0.6
#: A photograph must be explained this many times better with its displacement undone. Shading that is mistaken for movement
#: gives 1 or less, movement of a pixel or more 1.5 to 30.
GAIN = 1.25
#: If fewer tiles than this share agree, nothing is known about a photograph: there is no warning without evidence.
LIKELY = 0.4
#: A photograph is odd if the others leave e^x times more of it unexplained than of four fifths of all photographs, where x
#: is MISMATCH or, if misfits vary, SPREADS times their spread. Still ones have 2.3 at most, other objects mostly 2 to 7. It
#: does not match if its tiles also agree on nothing (see LIKELY), or its edges, however turned, agree with others ...
MISMATCH, SPREADS = 1.8, 2.0
#: ... less than usual by this: other objects by 0.5 to 0.9, odd ones that are still by 0.3 at most.
UNLIKE = 0.4
#: If they agree less by this, it only has to fit worse than four fifths of all photographs. Still ones have 0.5 at most;
#: dark ones, whose edges are noise, fit well.
FOREIGN = 0.6
#: Maximum number of photographs that a note names.
NAMED = 4
#: Fewer photographs cannot predict each other; smaller frames, in pixels, have too few tiles to agree on anything.
FEWEST, SMALLEST = 4, 64


@dataclass(frozen=True, eq=False)
class Alignment:
    """Camera movement between photographs, and which part of it is undone."""

    #: (d, 3), estimated displacement of each photograph in columns and rows, and its turn about the center in
    #: radians, clockwise.
    moves: FloatArray
    farthest: FloatArray  #: (d,), pixels by which that displaces the ends of the photograph.
    #: (d, 3), the part that is undone: zero for photographs that are still, or whose movement is uncertain or too
    #: small to matter.
    corrected: FloatArray
    uncertain: BoolArray  #: (d,), photographs that seem to have moved and are left as they are.
    #: (d,), photographs that do not match the others: of another object, or turned.
    mismatched: BoolArray

    @classmethod
    def of(cls, motion: Motion) -> Alignment:
        """Decide what to undo, from an estimate."""
        length = farthest(motion.moves, motion.reach)
        large = length > MATTERS
        evident = (length > CERTAIN * motion.errors) & (motion.gain >= GAIN)
        usual, most = np.quantile(motion.misfit, (0.5, 0.8))
        odd = motion.misfit > most + max(MISMATCH, SPREADS * (most - usual))
        edges, common = motion.edges, float(np.median(motion.edges.alike))
        turned = edges.better > TURNED
        # Tiles of a turned object may agree on a large displacement, but undoing it does not make the photograph fit.
        likely = large & evident & (motion.agreement >= LIKELY) & ~(odd & turned)
        certain = likely & (motion.agreement >= AGREEING)
        # Shading that moves with the light looks like movement, especially like a turn of a round object.
        moves = np.where((large & ~evident)[:, None], 0.0, motion.moves)
        corrected = np.where(certain[:, None], moves, 0.0)
        unlike = (edges.turned < common - UNLIKE) | (motion.agreement < LIKELY)
        # A photograph that the others explain as well as most is neither, however a weave looks under its light.
        strange = (edges.turned < common - FOREIGN) | turned
        mismatched = ((odd & unlike) | (strange & (motion.misfit > most))) & ~certain
        return cls(moves, farthest(moves, motion.reach), corrected, likely & ~certain, mismatched)

    @classmethod
    def still(cls, count: int) -> Alignment:
        """Photographs that have not moved."""
        nothing, none, no = np.zeros((count, 3)), np.zeros(count), np.zeros(count, dtype=bool)
        return cls(nothing, none, nothing, no, no)

    def take(self, kept: Sequence[int]) -> Alignment:
        """The alignment of some of the photographs."""
        chosen = list(kept)
        return Alignment(*(part[chosen] for part in vars(self).values()))

    def as_taken(self) -> Alignment:
        """The same with nothing undone: photographs that would have been corrected count as uncertain."""
        left = self.uncertain | self.corrected.any(axis=1)
        return replace(self, corrected=np.zeros_like(self.corrected), uncertain=left)

    @property
    def is_still(self) -> bool:
        """Whether nothing is undone."""
        return not self.corrected.any()

    def notes(self, files: Sequence[str]) -> tuple[Finding, ...]:
        """Notes for the user: which photographs were moved back, and which seem to be displaced."""
        notes, moved = [], np.asarray(self.corrected.any(axis=1))
        names, doubtful = np.array(files)[moved].tolist(), np.array(files)[self.uncertain].tolist()
        if names:
            turn = float(np.degrees(np.abs(self.corrected[:, 2]).max()))
            notes.append(
                Finding(
                    "camera-moved",
                    count=len(names),
                    photographs=len(files),
                    were="was" if len(names) == 1 else "were",
                    pixels=float(self.farthest[moved].max()),
                    degrees=turn,
                    turned=f" and {turn:.2f}°" if turn >= 0.005 else "",
                    names=listed(names, NAMED),
                )
            )
        if doubtful:
            notes.append(Finding("not-aligned", names=listed(doubtful, NAMED)))
        return tuple(notes)

    def as_dict(self, files: Sequence[str]) -> dict[str, Any]:
        """For JSON: whether anything was undone, and the displacement and turn (degrees) of every photograph."""
        degrees = np.degrees(self.moves[:, 2])
        return {
            "corrected": not self.is_still,
            "largest_pixels": round(float(self.farthest.max(initial=0.0)), 3),
            "shifts": dict(zip(files, np.round(self.moves[:, :2], 3).tolist(), strict=True)),
            "turns": dict(zip(files, np.round(degrees, 4).tolist(), strict=True)),
            "uncertain": [file for file, doubt in zip(files, self.uncertain, strict=True) if doubt],
        }


def find_alignment(pictures: Float32, scale: float, control: Control = SILENT) -> Alignment:
    """Estimate how far the camera moved between photographs; see :func:`photostereo.photographs.faults.survey`."""
    if len(pictures) < FEWEST or min(pictures.shape[1:]) < SMALLEST:
        return Alignment.still(len(pictures))
    return Alignment.of(estimate_motion(pictures, scale, control))
