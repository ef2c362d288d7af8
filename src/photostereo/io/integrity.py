"""Is an image file complete? Looked at before decoding, because decoders disagree about what to do otherwise.

Some versions of OpenCV (and libjpeg by design) return a truncated photograph with the missing rows gray or
black and only a line on stderr. Half a photograph is worse than none: least squares would take the black part
for a shadow.
"""

from __future__ import annotations

import re
from typing import Literal

from photostereo.io.declared import PNG_SIGNATURE

# Bytes per value of the types that are not bytes.
_TIFF_SIZES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}

# In the entropy-coded part 0xFF is followed by 0 (a data byte), a restart marker, or another 0xFF (padding).
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")


def fault_of_png(data: bytes) -> str | None:
    """What is wrong with the bytes of a PNG file, or None. Walks the chunks; checksums are left to libpng.

    >>> fault_of_png(PNG_SIGNATURE + b"\\0\\0\\0\\x0dIHDR")
    'it ends in the middle of its chunk IHDR'
    """
    position = len(PNG_SIGNATURE)
    while position + 8 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        kind = data[position + 4 : position + 8]
        end = position + 12 + length
        if end > len(data):
            return f"it ends in the middle of its chunk {kind.decode('ascii', 'replace')}"
        if kind == b"IEND":
            return None
        position = end
    return "its end is missing"


def fault_of_jpeg(data: bytes) -> str | None:
    """What is wrong with the bytes of a JPEG file, or None. Walks the segments to the end-of-image marker.

    Searching for the last marker alone would be fooled by the thumbnail that cameras put into the header.
    """
    position = 2
    while True:
        found = _JPEG_MARKER.search(data, position)
        if found is None:
            return "its end is missing"
        marker = found.group(1)[0]
        position = found.end()
        if marker == 0xD9:
            return None
        if marker == 0x01 or marker == 0xD8:  # the two other markers without a length
            continue
        length = int.from_bytes(data[position : position + 2], "big")
        if length < 2 or position + length > len(data):
            return "it ends in the middle of its header" if length >= 2 else "its header is damaged"
        position += length


def fault_of_tiff(data: bytes) -> str | None:
    """What is wrong with the directory of a TIFF file, or None; where its pixels end is not looked at.

    A value that lies beyond the end of the file would merely be missing for most readers, and without the tag
    that says so, 32-bit floats are read as integers.
    """
    order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"
    big = int.from_bytes(data[2:4], order) == 43
    wide, start = (8, 8) if big else (4, 4)
    count_size, entry_size = (8, 20) if big else (2, 12)
    offset = int.from_bytes(data[start : start + wide], order)
    entries = int.from_bytes(data[offset : offset + count_size], order)
    first = offset + count_size
    if offset < 8 or entries == 0 or first + entries * entry_size > len(data):
        return "its directory is missing or cut"
    for entry in range(first, first + entries * entry_size, entry_size):
        kind = int.from_bytes(data[entry + 2 : entry + 4], order)
        count = int.from_bytes(data[entry + 4 : entry + 4 + wide], order)
        size = count * _TIFF_SIZES.get(kind, 1)
        where = int.from_bytes(data[entry + 4 + wide : entry + 4 + 2 * wide], order)
        if size > wide and where + size > len(data):
            return "a value of its directory lies beyond its end"
    return None
