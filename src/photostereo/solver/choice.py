"""Which method a word stands for: ``fast``, ``best``, and ``auto``, where nothing is said.

``best`` is the learned model with the dictionary prior: the most accurate on every set of captures with truth that we
have, and next to matte fits on matte ones (benchmarks/README.md). ``fast`` is sparse regression with the same prior: shadows
and highlights do not mislead it, and its time grows far less with pixels and photographs. ``auto`` is ``best`` where that is
a matter of minutes and the network knows such captures; elsewhere ``fast``. Why it was taken is told with the result.
"""

from __future__ import annotations

from dataclasses import dataclass

#: What ``solve`` uses where nothing is said.
DEFAULT_METHOD = "auto"
#: What the words for people who do not want to know stand for.
FAST, BEST = "dlsr", "dlnet"
#: Words in the place of a method's name.
WORDS = ("auto", "fast", "best")
#: What the network takes for one intensity on one core, and how many (pixels × photographs) are a matter of minutes.
SECONDS, INTENSITIES = 2.6e-6, 300_000_000
#: Photographs that the network was made for.
FEWEST, MOST = 4, 200


@dataclass(frozen=True)
class Choice:
    """A method's name, and why it was taken; no reason where it was asked for by its own name."""

    name: str
    why: str = ""


def choose(word: str, pixels: int | None = None, photographs: int | None = None) -> Choice:
    """The method that a word stands for on a capture of so many mask pixels and photographs.

    Any other name stands for itself. Without a capture ``auto`` is what it is for most of them.

    Examples
    --------
    >>> choose("fast").name, choose("ls").name, choose("auto", 45_200, 96).name
    ('dlsr', 'ls', 'dlnet')
    >>> choose("auto", 24_000_000, 60).name, choose("auto", 45_200, 3).name
    ('dlsr', 'dlsr')
    """
    if word == "fast":
        return Choice(FAST, "asked for as fast: robust, and quick on any number of pixels")
    if word == "best":
        return Choice(BEST, "asked for as best: the most accurate on captures with truth")
    if word != "auto":
        return Choice(word)
    if photographs is not None and not FEWEST <= photographs <= MOST:
        return Choice(
            FAST,
            f"chosen because the most accurate one ({BEST}) was made for {FEWEST} to {MOST} photographs, not {photographs}",
        )
    if pixels is not None and photographs is not None and pixels * photographs > INTENSITIES:
        return Choice(
            FAST,
            f"chosen for {pixels / 1e6:.1f} million pixels × {photographs} photographs: the most accurate one ({BEST}, "
            f"--method best) would look at them for {pixels * photographs * SECONDS / 60:.0f} core-minutes",
        )
    return Choice(BEST, "chosen as the most accurate on captures with truth")
