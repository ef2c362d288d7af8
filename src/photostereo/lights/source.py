"""Where a direction or a strength of a light comes from: a kind that code can ask for, and words for people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class SourceKind(Enum):
    """Kinds of sources; the value is what people read if nothing more is known."""

    GIVEN = "given"  #: by the caller, in Python
    FILE = "file"
    HAND = "moved by hand"
    CARD = "gray card"
    SHINY_BALL = "shiny ball"
    MATTE_BALL = "matte ball"
    SHADING = "shading of the object"
    FLAT_PARTS = "brightness of flat parts, assumed to face the camera"
    EQUAL_FITS = "equal (the shading of the object fits)"
    ASSUMED_EQUAL = "assumed to be equal"
    ESTIMATED = "estimated"  #: from the photographs, without any ball

    @property
    def is_ball(self) -> bool:
        """Whether a ball was measured."""
        return self in (SourceKind.SHINY_BALL, SourceKind.MATTE_BALL)


#: Sources of strengths, the best first; others are worse than these.
_BEST_STRENGTHS = (SourceKind.CARD, SourceKind.MATTE_BALL, SourceKind.SHADING)


@dataclass(frozen=True)
class LightSource:
    """The source of one value.

    Attributes
    ----------
    kind : SourceKind
        What code decides by.
    detail : str
        What people read instead of the kind: the name of the file, or the place of the ball.

    Examples
    --------
    >>> str(LightSource(SourceKind.FILE, "lights.csv")), str(LightSource(SourceKind.CARD))
    ('lights.csv', 'gray card')
    """

    kind: SourceKind
    detail: str = ""

    def __str__(self) -> str:
        return self.detail or self.kind.value

    @property
    def rank_of_strengths(self) -> int:
        """How much to trust strengths from here: 0 is best."""
        if self.kind in _BEST_STRENGTHS:
            return _BEST_STRENGTHS.index(self.kind)
        return len(_BEST_STRENGTHS)

    def seen_in(self, folder: str) -> LightSource:
        """Return the same source, with the folder that shows the ball."""
        if not self.kind.is_ball:
            return self
        return replace(self, detail=f"{self} in {folder}")


def source_of(value: LightSource | str) -> LightSource:
    """Return a source as it is; the words of a caller are a kind, such as ``"estimated"``, or a detail.

    >>> source_of("estimated").kind.name, source_of("my dome").kind.name
    ('ESTIMATED', 'GIVEN')
    """
    if isinstance(value, LightSource):
        return value
    if value in {kind.value for kind in SourceKind}:
        return LightSource(SourceKind(value))
    return LightSource(SourceKind.GIVEN, value)


def joined(sources: tuple[LightSource, ...]) -> LightSource:
    """Return one source for a value that several agree on; its kind is that of the first."""
    return LightSource(sources[0].kind, " and ".join(map(str, sources)))
