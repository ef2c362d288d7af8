"""How long a stage still takes, from the later half of the steps that are done."""

from __future__ import annotations

import time
from bisect import bisect_left
from operator import itemgetter


class Pace:
    """Notes when steps are done.

    >>> pace = Pace()
    >>> for done in (1, 2, 3):
    ...     pace.note(done)
    >>> pace.seconds_left(3), pace.seconds_left(None), Pace().seconds_left(9)
    (None, None, None)
    """

    def __init__(self) -> None:
        self._steps: list[tuple[float, int]] = []

    def restart(self) -> None:
        """Forget everything: another stage, or compilation in between."""
        self._steps.clear()

    def note(self, done: int) -> None:
        """This number of steps is done now."""
        self._steps.append((time.monotonic(), done))

    def seconds_left(self, total: int | None) -> float | None:
        """Seconds until ``total`` steps are done; None if that is not known yet."""
        if not total or len(self._steps) < 3 or self._steps[-1][1] >= total:
            return None
        now, last = self._steps[-1]
        # The earlier half may have compiled; a few steps only would jump from one part of a step to the next.
        half = bisect_left(self._steps, last / 2, key=itemgetter(1))
        began, first = self._steps[min(half, len(self._steps) - 2)]
        return (now - began) / max(last - first, 1) * (total - last)
