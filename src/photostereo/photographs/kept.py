"""Decoded photographs that wait for their next reader, and reading ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from photostereo.io.spool import Spool, Spooled

T = TypeVar("T")


@dataclass
class Kept:
    """Photographs that have been decoded: some until they are used, and those in a temporary file."""

    first: dict[Path, NDArray[Any]]
    spool: Spool | None = None
    places: dict[Path, Spooled] = field(default_factory=dict)
    holds: bool = False

    def __reduce__(self) -> Any:  # another process decodes for itself
        return Kept, ({},)


def in_turn(read: Callable[[int], T], count: int, workers: int) -> Iterator[T]:
    """``read`` of 0, 1, ... in turn; the next ones are read meanwhile, one for each thread.

    >>> list(in_turn(lambda number: number**2, 4, 2))
    [0, 1, 4, 9]
    """
    with ThreadPoolExecutor(max_workers=workers) as pool:
        waiting = deque(pool.submit(read, number) for number in range(min(workers, count)))
        following = len(waiting)
        try:
            while waiting:
                result = waiting.popleft().result()
                if following < count:
                    waiting.append(pool.submit(read, following))
                    following += 1
                yield result
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
