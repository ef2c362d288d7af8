"""PNG files that say what they mean: the resolution and a line of text beside the pixels."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from numpy.typing import NDArray

from photostereo.core.errors import OutputError
from photostereo.core.units import PixelSize


def encode_png(picture: NDArray[Any], *, size: PixelSize | None = None, comment: str = "") -> bytes:
    """A gray or RGB picture of 8 or 16 bits as PNG, with its resolution (pHYs) and a comment (iTXt).

    Examples
    --------
    >>> import numpy as np
    >>> data = encode_png(np.zeros((2, 2), np.uint8), size=PixelSize.of("0.1mm"), comment="heights")
    >>> b"pHYs" in data, b"heights" in data
    (True, True)
    """
    import cv2

    stored = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".png", stored)
    if not done:
        raise OutputError(f"A picture of shape {picture.shape} could not be encoded as PNG.")
    plain = bytes(data.tobytes())
    chunks = b""
    if size is not None and size.known:
        chunks += _chunk(b"pHYs", struct.pack(">IIB", size.per_metre, size.per_metre, 1))
    if comment:
        # Keyword, no compression, no language, no translated keyword, UTF-8 text.
        chunks += _chunk(b"iTXt", b"Description\0\0\0\0\0" + comment.encode())
    head = 8 + 25  # the signature and the header chunk, whose length is fixed
    return plain[:head] + chunks + plain[head:]


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
