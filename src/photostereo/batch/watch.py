"""A folder that fills up: captures are taken when their files have stopped changing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: What is compared between two looks at a capture: names, sizes and times of its files.
State = tuple[tuple[str, int, int], ...]


@dataclass
class Watch:
    """Which captures are new and complete.

    Attributes
    ----------
    look : lists the captures that are there now
    quiet : seconds for which the files of a capture must not have changed
    every : seconds between two looks
    idle : stop after this number of seconds without a change; None: continue until interrupted
    """

    look: Callable[[], Sequence[Path]]
    quiet: float = 5.0
    every: float = 2.0
    idle: float | None = None
    _states: dict[Path, tuple[State, float]] = field(default_factory=dict)
    _taken: set[Path] = field(default_factory=set)
    _last_look: float = -1e9
    _last_news: float = field(default_factory=time.monotonic)

    def stay(self) -> None:
        """Something happens: begin to count the idle time anew."""
        self._last_news = time.monotonic()

    def ready(self) -> list[Path] | None:
        """Captures that are new and complete; None when the watch is over."""
        now = time.monotonic()
        if now - self._last_look < self.every:
            return []
        self._last_look = now
        found = []
        for path in self.look():
            if path in self._taken:
                continue
            state = _state_of(path)
            if path not in self._states or self._states[path][0] != state:
                self._states[path] = (state, now)
                self.stay()
            if state and now - self._states[path][1] >= self.quiet:
                self._taken.add(path)
                found.append(path)
                self.stay()
        return None if self.idle is not None and now - self._last_news > self.idle else found


def _state_of(path: Path) -> State:
    try:
        files = [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file())
        return tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    except OSError:  # it is being moved or removed just now
        return ()
