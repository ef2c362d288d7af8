"""Which method a word stands for: ``fast``, ``best``, and ``auto``, the default.

``best`` is the learned model with the dictionary prior: the most accurate on every set of captures with truth that we
have, and close to matte fits on matte surfaces. ``fast`` is sparse regression with the same prior: shadows and highlights
do not mislead it, and its time grows far less with pixels and photographs. ``auto`` is ``best`` if that takes minutes at
most and the network was trained for such captures, otherwise ``fast``. The result says why a method was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from photostereo.core.findings import Finding

#: The default of ``solve``.
DEFAULT_METHOD = "auto"
#: The methods that the words stand for.
FAST, BEST = "dlsr", "dlnet"
#: Words that may be given instead of a method's name.
WORDS = ("auto", "fast", "best")
#: Seconds that the network takes for one intensity on one core, and the pixels × photographs that take minutes.
SECONDS, INTENSITIES = 2.6e-6, 300_000_000
#: Numbers of photographs that the network was trained for.
FEWEST, MOST = 4, 200


@dataclass(frozen=True)
class Choice:
    """A method's name, and why it was chosen; no reason if it was asked for by its own name."""

    name: str
    why: str = ""


def choose(word: str, pixels: int | None = None, photographs: int | None = None) -> Choice:
    """The method that a word stands for on a capture with these numbers of mask pixels and photographs.

    Any other name stands for itself. Without a capture, ``auto`` is what it is for most of them.

    >>> choose("fast").name, choose("ls").name, choose("auto", 45_200, 96).name
    ('dlsr', 'ls', 'dlnet')
    >>> choose("auto", 24_000_000, 60).name, choose("auto", 45_200, 3).name
    ('dlsr', 'dlsr')
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
