"""The structure of image files (segments of JPEG, chunks of PNG, directories of TIFF), and the size that a header
declares, checked before anything is decoded.

Nothing is decoded, and nothing larger than :data:`LARGEST` is copied, whatever a header declares: a file of a megabyte
may claim thousands of values of a megabyte each, all in the same place.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.io.memory import require_memory
from photostereo.io.safe import DEFLATE_RATIO

Content = bytes | mmap.mmap

#: How files of each format begin.
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
JPEG_SIGNATURE = b"\xff\xd8"
TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

#: Entries of a TIFF directory beyond this are ignored; cameras write fewer than 200.
MOST_ENTRIES = 4096
#: Maximum number of bytes copied of a value. Color profiles, the largest values that are used, have up to a megabyte.
LARGEST = 1 << 20
#: Formats of the TIFF types; text and bytes, as ``s``, are not numbers.
_TYPES = {
    1: "s", 2: "s", 3: "H", 4: "I", 5: "II", 6: "s", 7: "s", 8: "h", 9: "i", 10: "ii", 11: "f", 12: "d", 13: "I",
    16: "Q", 17: "q", 18: "Q",
}  # fmt: skip
#: A marker: in entropy-coded data 0xFF is followed by 0 (a data byte), a restart marker, or 0xFF (padding).
_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
#: The last marker.
_END_OF_IMAGE = 0xD9
#: Markers that no length follows.
_WITHOUT_LENGTH = (0x01, 0xD8)


class HeaderError(ValueError):
    """A file that ends too early or contradicts itself."""


@dataclass(frozen=True)
class Part:
    """A segment of a JPEG file, a chunk of a PNG file, or a value of a TIFF directory."""

    #: the marker of a segment as one byte, the four letters of a chunk, or the format of a value, with its byte order
    kind: bytes
    #: position of its content in the file; only bytes within the file are ever copied
    start: int
    end: int

    def body(self, data: Content) -> bytes:
        """The content, at most :data:`LARGEST` bytes of it."""
        return bytes(data[self.start : min(self.end, self.start + LARGEST)])

    def number(self, data: Content) -> float | None:
        """The first number of a value; None if it is truncated, not a number, or implausible."""
        try:
            value, *below = struct.unpack_from(self.kind, data, self.start)
        except struct.error:
            return None
        if below:
            value = value / below[0] if below[0] else 0.0
        number_type = self.kind[1:2]
        lowest = -1e3 if number_type in b"ifd" else 0
        if number_type != b"s" and lowest <= value < 1e9:
            return float(value)
        return None


def jpeg_segments(data: Content) -> Iterator[Part]:
    """Yield the segments of a JPEG file, but not of thumbnails; raise :class:`HeaderError` if its end is missing."""
    place = len(JPEG_SIGNATURE)
    while True:
        match = _MARKER.search(data, place)
        if match is None:
            raise HeaderError("its end is missing")
        marker = match.group(1)
        place = match.end()
        if marker[0] == _END_OF_IMAGE:
            return
        if marker[0] in _WITHOUT_LENGTH:
            continue
        length = int.from_bytes(data[place : place + 2], "big")
        if length < 2:
            raise HeaderError("its header is damaged")
        if place + length > len(data):
            raise HeaderError("it ends in the middle of its header")
        yield Part(marker, place + 2, place + length)
        place += length


def png_chunks(data: Content) -> Iterator[Part]:
    """Yield the chunks of a PNG file; raise :class:`HeaderError` if its end is missing. The decoder checks checksums."""
    place = len(PNG_SIGNATURE)
    while place + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        if place + 12 + length > len(data):
            raise HeaderError(
                f"it ends in the middle of its chunk {kind.decode('ascii', 'replace')}"
            )
        if kind == b"IEND":
            return
        yield Part(kind, place + 8, place + 8 + length)
        place += 12 + length
    raise HeaderError("its end is missing")


def tiff_entries(data: Content, start: int | None = None) -> dict[int, Part]:
    """The entries of a directory of a TIFF or BigTIFF block by tag, by default of the first directory.

    If a tag is repeated, its first entry counts.
    """
    order = "<" if data[:2] == b"II" else ">"
    try:
        big = struct.unpack_from(order + "H", data, 2)[0] == 43
        offset, head = (order + "Q", 8) if big else (order + "I", 2)
        wide = struct.calcsize(offset)
        width = 4 + 2 * struct.calcsize(offset)
        if start is None:
            (start,) = struct.unpack_from(offset, data, 8 if big else 4)
        (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, start)
    except (struct.error, OverflowError) as error:
        raise HeaderError("its directory is missing or cut") from error
    if start < 8 or start + head + count * width > len(data):
        raise HeaderError("its directory is missing or cut")
    entries: dict[int, Part] = {}
    for position in range(start + head, start + head + min(count, MOST_ENTRIES) * width, width):
        tag, kind = struct.unpack_from(order + "HH", data, position)
        (number,) = struct.unpack_from(offset, data, position + 4)
        form = order + _TYPES.get(kind, "s")
        size = struct.calcsize(form) * number
        where = position + 4 + wide
        if size > wide:
            (where,) = struct.unpack_from(offset, data, where)
        entries.setdefault(tag, Part(form.encode(), where, where + size))
    return entries


def require_complete(data: Content) -> None:
    """Check that an image file is complete, before a decoder sees it.

    Some versions of OpenCV (and libjpeg by design) return a truncated photograph with the missing rows gray or black
    and only a line on standard error. Half a photograph is worse than none: least squares would mistake the black part
    for a shadow. In a TIFF file, only the directory is checked: most readers ignore a value that lies beyond the end, and
    without the tag for their type, 32-bit floats are read as integers.
    """
    if not len(data):
        raise HeaderError("the file is empty")
    if data[:8] == PNG_SIGNATURE:
        for _ in png_chunks(data):
            pass
    elif data[:2] == JPEG_SIGNATURE:
        for _ in jpeg_segments(data):
            pass
    elif data[:4] in TIFF_SIGNATURES:
        entries = tiff_entries(data).values()
        if not entries:
            raise HeaderError("its directory is missing or cut")
        total = 0
        for entry in entries:
            size = entry.end - entry.start
            if size > 4 and entry.end > len(data):
                raise HeaderError("a value of its directory lies beyond its end")
            total += size
        # Values may share bytes, but not so often that a decoder, which copies each of them, needs gigabytes.
        if total > 2 * len(data) + LARGEST:
            raise HeaderError("the values of its directory overlap")


#: No format packs more decoded bytes into one stored byte: Deflate, with one bit per pixel that becomes eight. Most damaged
#: or hostile headers are recognized by the length of the file alone; the others are compared with the available memory.
_MOST_RATIO = 8 * DEFLATE_RATIO
#: Every format may have a frame of fewer bytes than its header.
_SLACK = 1 << 16
#: Decoding needs about three copies of the picture: decoded, in RGB order, as intensities.
_COPIES = 3

#: TIFF's tags for width and height.
_TIFF_SIDES = (256, 257)
#: Channels by PNG's type of color.
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
#: Markers of JPEG segments that declare the size of the picture.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNM_HEADER = re.compile(rb"P([1-6])(?:\s|#[^\n]*\n)+(\d{1,9})(?:\s|#[^\n]*\n)+(\d{1,9})")


@dataclass(frozen=True)
class Declared:
    """Width and height in pixels, and decoded bytes per pixel."""

    width: int
    height: int
    depth: float

    @property
    def size(self) -> int:
        """Decoded bytes."""
        return int(self.width * self.height * self.depth)


def damaged_image(path: Path, problem: str) -> CaptureError:
    """Return the error that an image cannot be read; ``problem`` says why, as a part of a sentence."""
    return CaptureError(
        f"The image {path} cannot be read, because it is truncated, damaged or of an unknown kind: "
        f"{problem}. Copy or export it again; if that is not possible, leave it out together with "
        "its light.",
        code="damaged-image",
        file=path,
        problem=problem,
    )


def image_shape(path: Path, found: str) -> CaptureError:
    """Return the error that an image is not one picture; ``found`` says what it is."""
    return CaptureError(
        f"{path} has {found}; expected one picture, gray (Y) or RGB. Export a single picture.",
        code="image-shape",
        file=path,
        found=found,
    )


def require_plausible(declared: Declared, stored: int, path: Path) -> None:
    """Check a declared size against the file and the memory.

    Parameters
    ----------
    declared : Declared
        What the header says.
    stored : int
        Bytes of the file.
    path : Path
        The file, for the message.

    Raises
    ------
    CaptureError
        ``"damaged-image"``, ``"not-enough-memory"``
    """
    measures = f"{declared.width} × {declared.height} pixels"
    if declared.size > _MOST_RATIO * stored + _SLACK:
        problem = f"it declares {measures}, far more than its {stored} bytes can hold"
        raise damaged_image(path, problem)
    require_memory(
        _COPIES * declared.size, f"The image {path} of {measures}", "Scale the photographs down."
    )


def declared_size(data: Content) -> Declared | None:
    """Return the size that the header of a PNG, JPEG, TIFF, BMP, PGM or PPM file declares; None for other formats.

    It is 0 for a JPEG or TIFF file whose header is damaged; the decoder reports the damage.
    """
    if data[:8] == PNG_SIGNATURE:
        return _png_size(data)
    if data[:2] == JPEG_SIGNATURE:
        return _jpeg_size(data)
    if data[:4] in TIFF_SIGNATURES:
        return _tiff_size(data)
    if data[:2] == b"BM":
        # A negative height says that the rows are stored from the top.
        width = abs(int.from_bytes(data[18:22], "little", signed=True))
        height = abs(int.from_bytes(data[22:26], "little", signed=True))
        return Declared(width, height, 3)
    if match := _PNM_HEADER.match(data):
        kind, width, height = (int(group) for group in match.groups())
        return Declared(width, height, 3 if kind in (3, 6) else 2)
    return None


def _png_size(data: Content) -> Declared:
    width = int.from_bytes(data[16:20], "big")
    height = int.from_bytes(data[20:24], "big")
    if len(data) <= 25:
        return Declared(width, height, 1)
    bits = data[24]
    kind = data[25]
    return Declared(width, height, _PNG_CHANNELS.get(kind, 4) * max(bits / 8, 1))


def _jpeg_size(data: Content) -> Declared:
    with suppress(HeaderError):
        for part in jpeg_segments(data):
            if part.kind[0] in _JPEG_FRAMES and part.end - part.start >= 5:
                height, width = struct.unpack_from(">HH", data, part.start + 1)
                return Declared(width, height, 3)
    return Declared(0, 0, 3)


def _tiff_size(data: Content) -> Declared:
    with suppress(HeaderError, KeyError):
        entries = tiff_entries(data)
        width, height = (int(entries[tag].number(data) or 0) for tag in _TIFF_SIDES)
        return Declared(width, height, 3)
    return Declared(0, 0, 3)
