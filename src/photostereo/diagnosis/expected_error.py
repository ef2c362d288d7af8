"""How sure a result is of itself: the error that its method expects, with a grade in plain words.

The terminal, ``summary.json``, batches, comparisons and the page all report it from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from photostereo.lights.lights import Lights

#: Up to this many degrees a result is good, and up to the second fair. The default method is within 5° on well-lit
#: captures with truth and beyond 10° on those with a moved camera. Moving either by 1° changes only the word of
#: results near it: the degrees are always reported with it.
GOOD, FAIR = 5.0, 10.0
_WORDS = {"good": "good", "fair": "fair", "poor": "do not trust"}


class HasMaps(Protocol):
    """A result, as far as it matters here."""

    @property
    def maps(self) -> Mapping[str, NDArray[Any]]: ...

    @property
    def mask(self) -> NDArray[np.bool_]: ...


@dataclass(frozen=True)
class ExpectedError:
    """The error that a method expects of its normals.

    Attributes
    ----------
    degrees : float
        Mean over the mask.
    """

    degrees: float

    @property
    def grade(self) -> str:
        """``"good"``, ``"fair"`` or ``"poor"``.

        >>> [ExpectedError(degrees).grade for degrees in (3.2, 6.1, 12.4)]
        ['good', 'fair', 'poor']
        """
        return "good" if self.degrees <= GOOD else "fair" if self.degrees <= FAIR else "poor"

    @property
    def words(self) -> str:
        """For people.

        >>> ExpectedError(6.1).words, ExpectedError(12.4).words, ExpectedError(0.34).words
        ('fair: about 6°', 'do not trust: about 12°', 'good: about 0.3°')
        """
        return f"{_WORDS[self.grade]}: about {self.about}"

    @property
    def about(self) -> str:
        """The degrees, rounded.

        >>> ExpectedError(6.1).about, ExpectedError(1.97).about
        ('6°', '2.0°')
        """
        return f"{self.degrees:.0f}°" if self.degrees >= 3 else f"{self.degrees:.1f}°"

    def as_dict(self) -> dict[str, Any]:
        """For ``summary.json``."""
        return {"degrees": round(self.degrees, 2), "grade": self.grade}


def expected_error(result: HasMaps, lights: Lights | None = None) -> ExpectedError | None:
    """The mean expected error of a result, from its map ``spread``; None if its method estimates none.

    ``lights`` adds the expected error of the light directions, if they were estimated: the method takes them as true.

    Examples
    --------
    >>> import photostereo as ps
    >>> scene = ps.render_scene("sphere", size=24)
    >>> expected_error(ps.solve(scene, "ls")) is None
    True
    >>> expected_error(ps.solve(scene, "net")).grade
    'good'
    """
    spread = result.maps.get("spread")
    if spread is None:
        return None
    inside = np.asarray(spread)[result.mask]
    known = inside[np.isfinite(inside)]
    if not known.size:
        return None
    own, of_lights = float(known.mean(dtype=np.float64)), 0.0
    if lights is not None and lights.known and np.isfinite(lights.expected_error).any():
        of_lights = float(np.nanmean(lights.expected_error))
    return ExpectedError(float(np.hypot(own, of_lights)))
