"""A folder with ``stack.npy`` (photographs × height × width) and ``lights.txt``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from photostereo.capture import Capture
from photostereo.capture.options import ReadOptions


class StackReader:
    """What :func:`photostereo.load` asks of a layout."""

    LAYOUT = "stack"

    def recognizes(self, path: Path) -> bool:
        return (path / "stack.npy").is_file() and (path / "lights.txt").is_file()

    def read(self, path: Path, options: ReadOptions) -> Capture:
        images = np.load(path / "stack.npy", allow_pickle=False)
        return Capture(images, np.loadtxt(path / "lights.txt"), name=path.name)


STACK = StackReader()
