"""How long a stage still takes, from its last few steps."""

from __future__ import annotations

import time
from collections import deque

#: Steps that count: few enough to forget compilation and a cold cache. Half or twice as many serve as well.
RECENT = 8


class Pace:
    """Notes when steps are done.

    >>> pace = Pace()
    >>> for done in (1, 2, 3):
    ...     pace.note(done)
    >>> pace.seconds_left(3), pace.seconds_left(None), Pace().seconds_left(9)
    (None, None, None)
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque(maxlen=RECENT)

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
        (began, first), (now, last) = self._steps[0], self._steps[-1]
        return (now - began) / max(last - first, 1) * (total - last)
