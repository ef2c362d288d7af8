"""Decode a video with OpenCV: one look at all frames, then the chosen ones, averaged with their neighbors.

Frames come as 8-bit RGB with the transfer curve of ITU-R BT.709, upright. The curve is undone before anything is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32, FloatArray, Indices, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.photographs.video.choose import Look
from photostereo.photographs.video.suffixes import VIDEO_SUFFIXES

#: Longer side of the small pictures that all frames are judged by.
SIDE = 96
#: Frames on either side that are averaged with a chosen one if they show the same light.
HALO = 2
#: They do if they differ from it by no more than this share of its brightness, on average. The light of a torch that is
#: walked around in 20 seconds changes a frame by 1 to 2 %; noise and compression by about 1 %.
SAME = 0.02
#: Frames are looked at up to this number; of longer videos, every second or third one is.
LONGEST = 3000


def is_video(path: Path) -> bool:
    """Whether a file is a video, by its suffix."""
    return path.suffix.lower() in VIDEO_SUFFIXES and path.is_file()


def look_at(path: Path, control: Control = SILENT) -> tuple[Look, int]:
    """See every frame small.

    Parameters
    ----------
    path : path
        The video.
    control : Control
        Receives progress and can cancel the work.

    Returns
    -------
    Look
        The frames.
    stride : int
        Which frames these are: every one, or every second, third, ... of a long video.
    """
    pictures = []
    sharpness = []
    stride = 1
    with _Opened(path) as video:
        stride = max(1, -(-video.count // LONGEST))
        control.stage("video", video.count)
        for number, frame in video.frames():
            control.advance()
            if number % stride:
                continue
            linear = gray_from_rgb(linear_from_bt709(frame))
            pictures.append(_small(linear))
            sharpness.append(_sharpness(linear))
    if len(pictures) < 3:
        raise CaptureError(
            f"{path} has {len(pictures)} frames. Record some twenty seconds.",
            code="video-too-short",
            file=path,
            found=len(pictures),
        )
    return Look(np.stack(pictures), np.array(sharpness)), stride


def chosen_frames(
    path: Path, chosen: Indices, control: Control = SILENT
) -> Iterator[tuple[int, Float32]]:
    """Decode the chosen frames, each averaged with neighbors under the same light against noise and compression.

    Parameters
    ----------
    path : path
        The video.
    chosen : (k,) array of int
        Numbers of frames, ascending.
    control : Control
        Receives progress and can cancel the work.

    Yields
    ------
    (int, (H, W, 3) float32 array)
        The number of the frame, and its linear RGB intensities from 0 to 1.
    """
    control.stage("frames", len(chosen))
    waiting = [int(number) for number in chosen]
    window: dict[int, Float32] = {}
    with _Opened(path) as video:
        last = -1
        for number, frame in video.frames():
            last = number
            if waiting and number >= waiting[0] - HALO:
                window[number] = linear_from_bt709(frame)
            while waiting and number >= waiting[0] + HALO:
                yield _finished(waiting.pop(0), window, control)
                _forget(window, waiting)
            if not waiting:
                return
        while waiting and waiting[0] <= last:
            yield _finished(waiting.pop(0), window, control)


def linear_from_bt709(values: NDArray[np.uint8]) -> Float32:
    """Undo the transfer curve of BT.709 (8 bits, full range).

    >>> linear_from_bt709(np.array([0, 20, 128, 255], np.uint8)).round(3)
    array([0.   , 0.017, 0.261, 1.   ], dtype=float32)
    """
    linear: Float32 = _CURVE[values]
    return linear


def _curve() -> Float32:
    encoded = np.arange(256) / 255.0
    low = encoded / 4.5
    high = ((encoded + 0.099) / 1.099) ** (1 / 0.45)
    return np.where(encoded < 0.081, low, high).astype(np.float32)


_CURVE = _curve()


def _finished(number: int, window: dict[int, Float32], control: Control) -> tuple[int, Float32]:
    control.advance()
    return number, averaged(number, window)


def averaged(number: int, window: dict[int, Float32]) -> Float32:
    """The mean of a frame and of its neighbors under the same light."""
    middle = window[number]
    allowed = SAME * float(middle.mean())
    same = [middle]
    for neighbor in range(number - HALO, number + HALO + 1):
        frame = window.get(neighbor)
        if frame is None or neighbor == number:
            continue
        if float(np.abs(frame - middle).mean()) <= allowed:
            same.append(frame)
    return np.asarray(np.mean(same, axis=0), np.float32)


def _forget(window: dict[int, Float32], waiting: list[int]) -> None:
    """Drop frames that no chosen frame needs any more."""
    needed = waiting[0] - HALO if waiting else np.inf
    for number in [number for number in window if number < needed]:
        del window[number]


def _small(linear: FloatArray) -> Float32:
    height, width = linear.shape
    scale = SIDE / max(height, width)
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    return np.asarray(cv2.resize(linear, size, interpolation=cv2.INTER_AREA), np.float32)


def _sharpness(linear: FloatArray) -> float:
    detail = cv2.Laplacian(linear.astype(np.float32), cv2.CV_32F)
    return float(np.sqrt((detail**2).mean()) / max(float(linear.mean()), 1e-6))


class _Opened:
    """A video that is open for reading from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> _Opened:
        self._capture: Any = cv2.VideoCapture(str(self.path))
        if not self._capture.isOpened():
            raise CaptureError(
                f"{self.path} cannot be read as a video. Convert it to MP4 (H.264).",
                code="unreadable-video",
                file=self.path,
            )
        return self

    def __exit__(self, *problem: object) -> None:
        self._capture.release()

    @property
    def count(self) -> int:
        """Number of frames that the file declares; it may be wrong."""
        return max(int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT)), 0)

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield number and RGB picture of each frame, turned upright."""
        number = 0
        while True:
            there, frame = self._capture.read()
            if not there:
                return
            yield number, frame[..., ::-1]
            number += 1
