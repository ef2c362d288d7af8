"""Choose the method for ``fast``, ``best`` or ``auto``, the default.

``best`` is the learned model with the dictionary prior: the most accurate on all our captures with ground truth, and
close to matte fits on matte surfaces. ``fast`` is sparse regression with the same prior: it is robust to shadows and
highlights, and its time grows far less with pixels and photographs. ``auto`` is ``best`` if that takes minutes at
most and the network was trained for such captures, otherwise ``fast``. The result explains the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from photostereo.core.findings import Finding

#: Default method of ``solve``.
DEFAULT_METHOD = "auto"
#: Method behind ``fast``.
FAST = "dlsr"
#: Method behind ``best``.
BEST = "dlnet"
#: Words accepted in place of a method name.
WORDS = ("auto", "fast", "best")
#: Processor seconds per intensity (pixel × photograph) of a large capture with the best method.
SECONDS = 5e-7
#: Number of intensities that takes five minutes of one core.
INTENSITIES = 600_000_000
#: Smallest number of photographs the network was trained for.
FEWEST = 4
#: Largest number of photographs the network was trained for.
MOST = 200


@dataclass(frozen=True)
class Choice:
    """Name of a method and why it was chosen; no reason if it was requested by name."""

    name: str
    why: Finding | None = None


def choose(word: str, pixels: int | None = None, photographs: int | None = None) -> Choice:
    """Return the method for a word, given the numbers of mask pixels and photographs of a capture.

    Any other name is returned as it is. Without a capture, ``auto`` gives the method that it gives for most captures.
    """
    facts: dict[str, Any]
    if word == "fast":
        return Choice(FAST, Finding("asked-for-fast"))
    if word == "best":
        return Choice(BEST, Finding("asked-for-best"))
    if word != "auto":
        return Choice(word)
    if photographs is not None and not FEWEST <= photographs <= MOST:
        facts = {"fewest": FEWEST, "most": MOST, "photographs": photographs}
        return Choice(FAST, Finding("chosen-by-count", best=BEST, **facts))
    if pixels is not None and photographs is not None and pixels * photographs > INTENSITIES:
        minutes = pixels * photographs * SECONDS / 60
        facts = {"millions": pixels / 1e6, "photographs": photographs, "minutes": minutes}
        return Choice(FAST, Finding("chosen-by-size", best=BEST, **facts))
    return Choice(BEST, Finding("most-accurate"))
