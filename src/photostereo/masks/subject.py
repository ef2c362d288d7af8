"""What is photographed: an object on a ground, or a surface that fills the frame, such as a relief or a painting?

The search for an object takes whatever reaches the border of the frame for its ground. On a surface that fills the frame
it finds rags, or nothing. An object is recognized by its outline: one or a few compact parts, on a ground that is dark, or
that differs from them in how it follows the lights. A relief at the border is as rough as in the middle, and the patches of
a painting are neither compact nor few.

The thresholds were chosen on 108 rendered captures of 18 kinds (:mod:`photostereo_lab.plausible`) and on captures of
objects and surfaces by others; each may change by a fifth without another verdict on them, unless noted.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray
from photostereo.masks.ground import SLIGHT, Clues

#: A pixel of the border is dark below this share of the brightest light in the frame.
DARK = 0.1
#: The ground is dark if this share of the border is. Objects on dark cloth have 0.58 to 1, if the frame does not cut them.
MOSTLY = 0.5
#: An object has at most this many parts. Surfaces fall into 1 to 28, whole ones on dark cloth into 1 to 5.
MOST_PARTS = 5
#: Parts with less than this share of the largest one do not count.
SPECK = 0.02
#: The parts of an object fill this share of their convex hulls, holes included, on average.
SOLID = 0.65
#: An object on a bright ground differs from the lights' pattern on the ground this many times as much as the border does.
#: Objects have 3 to 25; carved stones, where bosses stand out, at most 2.3.
STANDS_OUT = 2.5
#: Misfit to the pattern of the ground that noise alone causes.
NOISE = 0.01
#: A flat object, such as a coin, is accepted for its outline alone if it fills its hull to this share ...
WHOLE = 0.95
#: ... and its outline is shorter than this many times the root of its area (a disc has 3.5, a square 4, pixels add 1).
ROUND = 5.5
#: Smaller parts of the frame than this are not accepted for their outline alone.
SMALLEST = 0.02
#: The border is rough if it deviates from the pattern of a plane by this much.
ROUGH = 0.03
#: The border is patterned if the logarithm of its brightness has this standard deviation. Even tables have 0.02.
PATTERNED = 0.12


@dataclass(frozen=True)
class Outline:
    """The outline of what was found, in numbers."""

    parts: int  #: number of parts that count
    solidity: float  #: share of their convex hulls that they fill, holes included, weighted by area
    length: float  #: length over the root of the area, of the largest part
    share: float  #: share of the frame


def is_surface(mask: BoolArray, known: Clues) -> bool:
    """Whether the photographs show a surface that fills the frame rather than the object that was found.

    Parameters
    ----------
    mask : (h, w) bool array
        The object as found, all False if nothing stands out.
    known : Clues
        How the pixels differ from the ground.
    """
    has_dark_ground = _dark_share(known) > MOSTLY
    outline = outline_of(mask)
    if outline is None:
        return not has_dark_ground
    is_compact = outline.parts <= MOST_PARTS and outline.solidity >= SOLID
    if has_dark_ground:
        return outline.parts > 2 * MOST_PARTS
    if not is_compact:
        return True
    if _contrast(mask, known) >= STANDS_OUT:
        return False
    is_whole = outline.solidity >= WHOLE and outline.length <= ROUND and outline.share >= SMALLEST
    return not is_whole


def outline_of(mask: BoolArray) -> Outline | None:
    """Measure the outline of a mask; None if it is empty."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    if not contours:
        return None
    # Contours run through the centers of pixels: half a pixel is missing all around.
    lengths = np.array([cv2.arcLength(contour, closed=True) for contour in contours])
    areas = np.array([cv2.contourArea(contour) for contour in contours]) + 0.5 * lengths + 1
    hulls = [cv2.convexHull(contour) for contour in contours]
    around = np.array([cv2.arcLength(hull, closed=True) for hull in hulls])
    filled = areas / (np.array([cv2.contourArea(hull) for hull in hulls]) + 0.5 * around + 1)
    counts = areas >= SPECK * areas.max()
    largest = int(np.argmax(areas))
    return Outline(
        parts=int(counts.sum()),
        solidity=float(np.average(filled[counts], weights=areas[counts])),
        length=float(lengths[largest] / np.sqrt(areas[largest])),
        share=float(mask.mean()),
    )


def has_structure(known: Clues) -> bool:
    """Whether the border of the frame shows relief or a pattern; an even table or cloth does not."""
    return _misfit_at_border(known) > ROUGH or float(known.level[known.border].std()) > PATTERNED


def _dark_share(known: Clues) -> float:
    brightest = np.percentile(known.light, 95)
    return float((known.light[known.border] < DARK * brightest).mean())


def _contrast(mask: BoolArray, known: Clues) -> float:
    """How much less the object follows the lights as the ground does than the border of the frame."""
    misfit = float(np.median(np.exp(known.strangeness[mask]))) - SLIGHT
    return misfit / (max(_misfit_at_border(known), 0.0) + NOISE)


def _misfit_at_border(known: Clues) -> float:
    return float(np.percentile(np.exp(known.strangeness[known.border]), 75)) - SLIGHT
