"""Videos of an object under a moving light: the frames that spread the light become photographs.

Somebody props up a phone and walks a torch around the object for twenty seconds. Which frames are used, and how they are
decoded, is in :mod:`photostereo.photographs.video`. The lights are estimated; the exposure may change, since strengths are
estimated, too.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.conventions import Float32
from photostereo.core.findings import Finding
from photostereo.io.camera import Shot
from photostereo.io.spool import Spool, Spooled, open_spool
from photostereo.photographs.video.choose import choose_frames
from photostereo.photographs.video.decode import chosen_frames, is_video, look_at

LAYOUT = "video"

#: The number that stands for white. Averages of 8-bit frames are finer than 8 bits.
WHITE = 65535
#: Bytes of the frames of a usual video, 60 of 1920 × 1080: a disk must have room for them.
USUAL_BYTES = 800_000_000


def recognizes(path: Path) -> bool:
    """A video file, by its suffix."""
    return is_video(path)


def find(path: Path, options: ReadOptions) -> Source:
    """Choose and decode the frames; they wait in a temporary file."""
    look, stride = look_at(path)
    frames = VideoFrames(chosen_frames(path, stride * choose_frames(look)))
    note = Finding("video-frames", count=len(frames), frames=stride * len(look.pictures))
    return Source(path, LAYOUT, path.stem, photographs=frames, mask_default="auto", notes=(note,))


class VideoFrames:
    """Frames of a video as photographs: linear, 16 bits, in a temporary file that is deleted with this object.

    Parameters
    ----------
    frames : iterable of (int, (H, W, 3) array)
        Numbers of the frames in the video, and their linear intensities from 0 to 1.
    """

    def __init__(self, frames: Iterable[tuple[int, Float32]]) -> None:
        self._spool = open_spool(USUAL_BYTES) or Spool(Path(tempfile.gettempdir()))
        self._numbers: list[int] = []
        self._places: list[Spooled] = []
        self._digests: list[str] = []
        for number, linear in frames:
            stored = np.rint(WHITE * np.clip(linear, 0, 1)).astype(np.uint16)
            self._numbers.append(number)
            self._places.append(self._spool.write(stored))
            self._digests.append(hashlib.sha256(stored.data).hexdigest())

    def __len__(self) -> int:
        return len(self._numbers)

    def name(self, k: int) -> str:
        """The number of the frame, from 1, as players count."""
        return f"frame-{self._numbers[k] + 1:05d}"

    def head(self, k: int) -> Shot:
        """Only the size is known: videos do not record the exposure of their frames."""
        height, width = self._places[k].shape[:2]
        return Shot(frame=(height, width))

    def read(self, k: int) -> NDArray[np.generic]:
        """The linear numbers, RGB."""
        return self._spool.read(self._places[k])

    def digest(self, k: int) -> str:
        """SHA-256 of the numbers."""
        return self._digests[k]
