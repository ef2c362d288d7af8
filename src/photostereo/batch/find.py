"""Find the captures of a batch: named ones, those inside folders, and those that appear in a folder later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.io.names import folder_name
from photostereo.photographs.video.suffixes import VIDEO_SUFFIXES

#: Suffixes of files that are captures by themselves.
CAPTURE_FILES = (".npz", ".lp", *sorted(VIDEO_SUFFIXES))
#: Compared between two checks of a capture: names, sizes and times of its files.
State = tuple[tuple[str, int, int], ...]


def as_text(name: Path | str) -> str:
    """A path or a message as text; bytes of file names that are not text are escaped."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def find_captures(places: Iterable[Path], *, out: Path) -> list[Path]:
    """Return the places that are captures, and those in other places, except hidden ones, results, balls and ``out``."""
    inside = (
        _inside(place.expanduser().absolute(), out.expanduser().absolute()) for place in places
    )
    return list(dict.fromkeys(chain.from_iterable(inside)))


def _inside(place: Path, out: Path) -> Iterator[Path]:
    from photostereo.capture.loading import FEWEST, recognize
    from photostereo.io.images import list_images
    from photostereo.solver.result_files import is_result

    if not place.exists():
        raise CaptureError(
            f"{place} does not exist. Name captures, or a folder that contains captures.",
            code="missing-capture",
            file=place,
        )
    if place.is_file() or recognize(place) is not None or len(list_images(place)) >= FEWEST:
        yield place
        return
    captures = []
    for entry in sorted(place.iterdir()):
        is_output = entry == out or out in entry.parents or is_result(entry)
        if entry.name.startswith(".") or is_output:
            continue
        if entry.is_dir() or entry.suffix.lower() in CAPTURE_FILES:
            captures.append(entry)
    balls = _balls_of(captures)
    yield from (entry for entry in captures if entry.resolve() not in balls)


def _balls_of(entries: Sequence[Path]) -> set[Path]:
    """Return folders of ball photographs that give other captures their lights."""
    from photostereo.capture.layouts.folder import (
        find_ball_series,
        is_ball_series,
        photographs_and_mask,
    )

    balls: set[Path] = set()
    if not any(is_ball_series(entry) for entry in entries):
        return balls
    for entry in entries:
        if entry.is_dir() and not is_ball_series(entry):
            try:
                photographs, _ = photographs_and_mask(entry)
            except CaptureError:
                continue
            if photographs:
                balls.update(folder.resolve() for folder in find_ball_series(entry, photographs))
    return balls


def name_captures(paths: Sequence[Path], names: dict[str, str]) -> dict[str, Path]:
    """Return captures by a unique name for their folder of results; ``names`` maps paths to names, and is extended."""
    named = {}
    for path in paths:
        text = as_text(path)
        if text not in names:
            plain = folder_name(path.stem if path.is_file() else path.name)
            name = plain
            number = 2
            while name in names.values():
                name = f"{plain}-{number}"
                number += 1
            names[text] = name
        named[names[text]] = path
    return named


@dataclass
class Watch:
    """Detects captures that are new and complete."""

    look: Callable[[], Sequence[Path]]  #: lists the captures present now
    quiet: float = 5.0  #: seconds without changes after which a capture is complete
    every: float = 2.0  #: seconds between two checks
    #: stop after this number of seconds without a change; None: continue until interrupted
    idle: float | None = None
    _states: dict[Path, tuple[State, float]] = field(default_factory=dict)
    _taken: set[Path] = field(default_factory=set)
    _last_look: float = -1e9
    _last_news: float = field(default_factory=time.monotonic)

    def stay(self) -> None:
        """Restart the idle timer because something happened."""
        self._last_news = time.monotonic()

    def ready(self) -> list[Path] | None:
        """Return captures that are new and complete; None when the watch is over."""
        now = time.monotonic()
        if now - self._last_look < self.every:
            return []
        self._last_look = now
        complete = []
        for path in self.look():
            if path in self._taken:
                continue
            state = _state_of(path)
            if path not in self._states or self._states[path][0] != state:
                self._states[path] = (state, now)
                self.stay()
            if state and now - self._states[path][1] >= self.quiet:
                self._taken.add(path)
                complete.append(path)
                self.stay()
        if self.idle is not None and now - self._last_news > self.idle:
            return None
        return complete


def _state_of(path: Path) -> State:
    try:
        entries = [path] if path.is_file() else sorted(path.rglob("*"))
        files = [(entry, entry.stat()) for entry in entries if entry.is_file()]
        return tuple((str(file), state.st_size, state.st_mtime_ns) for file, state in files)
    except OSError:  # it is being moved or removed
        return ()
