"""The size that the header of an image file declares, checked before anything is decoded.

A few damaged (or hostile) bytes of a header ask a decoder for gigabytes. No format packs more than a certain number
of decoded bytes into one stored byte, so most such files are recognized by their length alone; the others are compared
with the available memory.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.io.headers import JPEG_SIGNATURE, PNG_SIGNATURE, Content, HeaderError, jpeg_segments
from photostereo.io.memory import require_memory
from photostereo.io.safe import DEFLATE_RATIO

#: A JPEG block of 64 values takes a bit at least, that is 512 values to a byte, in up to four channels.
_JPEG_RATIO = 2048
#: Run lengths of Windows bitmaps: 255 values in two bytes.
_BMP_RATIO = 128
#: Every format may have a frame of fewer bytes than its header.
_SLACK = 1 << 16
#: Decoding holds the picture about three times: decoded, in RGB order, as intensities.
_COPIES = 3

_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNM_HEADER = re.compile(rb"P([1-6])(?:\s|#[^\n]*\n)+(\d{1,9})(?:\s|#[^\n]*\n)+(\d{1,9})")


@dataclass(frozen=True)
class Declared:
    """Width and height in pixels, decoded bytes per pixel, and decoded bytes that a stored byte can give."""

    width: int
    height: int
    depth: float
    ratio: float

    @property
    def size(self) -> int:
        """Decoded bytes."""
        return int(self.width * self.height * self.depth)


def require_plausible(declared: Declared, stored: int, path: Path) -> None:
    """Check a declared size against the file and the memory; raises a :class:`CaptureError` ``"damaged-image"``."""
    measures = f"{declared.width} × {declared.height} pixels"
    if declared.size > declared.ratio * stored + _SLACK:
        raise CaptureError(
            f"The image {path} is damaged: it declares {measures}, far more than its {stored} bytes can hold. "
            "Copy or export it again; if that is not possible, leave it out together with its light.",
            code="damaged-image",
            file=path,
        )
    require_memory(_COPIES * declared.size, f"The image {path} of {measures}", "Scale the photographs down.")


def declared_size(data: Content) -> Declared | None:
    """What the header of a PNG, JPEG, BMP, PGM or PPM file declares; None for other formats.

    >>> declared_size(b"P5 640 480 255 ...")
    Declared(width=640, height=480, depth=2, ratio=2)
    """
    if data[:8] == PNG_SIGNATURE:
        width, height = (int.from_bytes(data[start : start + 4], "big") for start in (16, 20))
        bits, kind = (data[24], data[25]) if len(data) > 25 else (8, 0)
        return Declared(width, height, _PNG_CHANNELS.get(kind, 4) * max(bits / 8, 1), 8 * DEFLATE_RATIO)
    if data[:2] == JPEG_SIGNATURE:
        return _declared_jpeg(data)
    if data[:2] == b"BM":
        signed = (int.from_bytes(data[start : start + 4], "little", signed=True) for start in (18, 22))
        width, height = (abs(side) for side in signed)
        runs = int.from_bytes(data[30:34], "little") in (1, 2)
        return Declared(
            width, height, 3, 3 * _BMP_RATIO if runs else 24
        )  # one bit a pixel becomes three bytes
    found = _PNM_HEADER.match(data)
    if found:
        kind, width, height = (int(group) for group in found.groups())
        depth = 3 if kind in (3, 6) else 2
        return Declared(width, height, depth, 16 if kind in (1, 4) else 2)
    return None


def _declared_jpeg(data: Content) -> Declared:
    """From the first frame header; without one the size is 0 and the decoder reports the damage."""
    try:
        for part in jpeg_segments(data):
            if part.kind[0] in _JPEG_FRAMES and part.end - part.start >= 5:
                height, width = struct.unpack_from(">HH", data, part.start + 1)
                return Declared(width, height, 3, _JPEG_RATIO)
    except HeaderError:
        pass
    return Declared(0, 0, 3, _JPEG_RATIO)
