"""Picking the mask's pixels out of photographs, compiled: numpy takes three numbers at a time as slowly as one by one."""

from __future__ import annotations

from typing import Any

from photostereo.runtime.loops import njit, prange


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def gather(frames: Any, index: Any, out: Any) -> None:
    """``out[j, i] = frames[j, index[i]]``: frames (d, S, c), index (N,), out (d, N, c)."""
    photographs, count, channels = out.shape
    for j in prange(photographs):
        for i in range(count):
            for c in range(channels):
                out[j, i, c] = frames[j, index[i], c]
