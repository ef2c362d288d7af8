"""Rows of overlapping feathers (or tiles, or scales) as a height field with exact slopes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.scenes.jets import Array, Jet, where


@dataclass(frozen=True)
class Plumage:
    """What is seen of overlapping feathers."""

    #: lift above the skin, from 0 (root) to about 1 (tip), with a step wherever a feather ends
    height: Jet
    along: Array  #: position on the visible feather, 0 at its root and 1 at the middle of its tip
    across: Array  #: position across it, −1 to 1
    tone: Array  #: a number in [0, 1) for each feather, to vary its color
    row: Array  #: number of the row that the visible feather hangs from (at y = row · pitch)


def overlap_feathers(x: Jet, y: Jet, *, width: float, pitch: float, point: float = 0.4) -> Plumage:
    """Feathers that hang down along −y in staggered rows, each row over the roots of the one below.

    x and y are coordinates across and along the plumage (they need not be straight), ``pitch`` is the distance between
    rows (a feather is twice as long), and ``point`` how much shorter a feather is at its sides, in (0, 0.5].
    """
    # The row whose roots are next above always reaches this point; the row above that only where it is long
    # enough.
    lower = np.ceil(y.value / pitch)
    near, near_across, near_tone = _feather(x, y, lower, width, pitch)
    far, far_across, far_tone = _feather(x, y, lower + 1.0, width, pitch)
    covered = far.value <= 1.0 - point * far_across.value**2
    along = where(covered, far, near)
    across = where(covered, far_across, near_across)
    # The vane falls off to both sides of a thin shaft.
    height = along - 0.22 * across.square() + 0.10 * (-30.0 * across.square()).exp()
    return Plumage(height, along.value, across.value, np.where(covered, far_tone, near_tone), lower + covered)


def _feather(x: Jet, y: Jet, row: Array, width: float, pitch: float) -> tuple[Jet, Jet, Array]:
    """Position on the row's feather over each point: along (0 to 1), across (−1 to 1); its tone."""
    stagger = 0.5 * width * np.mod(row, 2.0)
    column = np.floor((x.value - stagger) / width)
    along = (row * pitch - y) / (2.0 * pitch)
    across = (x - (stagger + (column + 0.5) * width)) * (2.0 / width)
    # A cheap hash of row and column: the same feather has the same tone at any resolution.
    tone = np.mod(np.sin(row * 12.9898 + column * 78.233) * 43758.5453, 1.0)
    return along, across, tone
