"""Picking the mask's pixels out of photographs, compiled: numpy takes three numbers at a time as slowly as one by one."""

from __future__ import annotations

from typing import Any

from photostereo.runtime.loops import shared


@shared(of="out")  # type: ignore[untyped-decorator]
def gather(first: int, last: int, frames: Any, index: Any, out: Any) -> None:
    """``out[j, i] = frames[j, index[i]]``: frames (d, S, c), index (N,), out (d, N, c)."""
    count, channels = out.shape[1:]
    for j in range(first, last):
        for i in range(count):
            for c in range(channels):
                out[j, i, c] = frames[j, index[i], c]
