"""Writing 16-bit photographs, in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.io.atomic import write_bytes
from photostereo.io.png import encode_png
from photostereo.runtime.threads import processors


def write_png(path: Path, picture: NDArray[Any]) -> None:
    """An (H, W) or (H, W, 3) RGB picture of uint8 or uint16 as PNG, whatever script its name is in."""
    write_bytes(path, encode_png(picture, fast=True))


def write_photographs(images: NDArray[Any], paths: Sequence[Path], exposure: float) -> None:
    """``round(65535 · exposure · intensity)`` of each photograph as 16-bit RGB PNG; gray gets three equal
    channels.
    """

    def write(number: int) -> None:
        values = np.rint(np.asarray(images[number], dtype=np.float64) * (65535 * exposure))
        stored = np.clip(values, 0, 65535).astype(np.uint16)
        write_png(paths[number], stored if stored.ndim == 3 else np.repeat(stored[..., None], 3, axis=2))

    with ThreadPoolExecutor(max_workers=processors()) as pool:
        pending = [pool.submit(write, number) for number in range(len(paths))]
        try:
            for job in pending:
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
