"""The walker of JPEG segments, PNG chunks and TIFF directories, on files made by others and on hostile ones."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile

from photostereo.core.errors import CaptureError
from photostereo.io.camera import Shot, read_shot
from photostereo.io.headers import (
    PNG_SIGNATURE,
    Declared,
    HeaderError,
    declared_size,
    jpeg_segments,
    png_chunks,
    require_complete,
    tiff_entries,
)
from photostereo.io.images import decode_image
from photostereo.photographs.protocol import Pictures

IMAGE = np.arange(30 * 40, dtype=np.uint16).reshape(30, 40)


def encoded(suffix: str) -> bytes:
    return cv2.imencode(suffix, (IMAGE % 256).astype(np.uint8))[1].tobytes()


def test_png_chunks_are_those_that_were_written():
    data = encoded(".png")
    parts = list(png_chunks(data))
    assert parts[0].kind == b"IHDR" and {part.kind for part in parts} >= {b"IHDR", b"IDAT"}
    assert struct.unpack(">II", parts[0].body(data)[:8]) == (40, 30)
    assert parts[-1].end + 4 + 12 == len(data)  # a checksum, and the empty last chunk


def test_jpeg_segments_lead_to_the_end():
    data = encoded(".jpg")
    kinds = [part.kind[0] for part in jpeg_segments(data)]
    assert kinds[0] == 0xE0 and 0xC0 in kinds and kinds[-1] == 0xDA
    declared = declared_size(data)
    assert declared is not None and (declared.height, declared.width) == (30, 40)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_tiff_entries_are_those_that_were_written(tmp_path, big, order):
    tifffile.imwrite(tmp_path / "a.tif", IMAGE, bigtiff=big, byteorder=order, software="x" * 50)
    data = (tmp_path / "a.tif").read_bytes()
    entries = tiff_entries(data)
    assert (entries[256].number(data), entries[257].number(data), entries[258].number(data)) == (
        40,
        30,
        16,
    )
    assert entries[305].body(data)[:50] == b"x" * 50


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_every_cut_is_noticed(tmp_path, suffix):
    data = encoded(suffix)
    require_complete(data)
    path = tmp_path / f"a{suffix}"
    for length in np.linspace(0, len(data) - 13, 25).astype(int):
        path.write_bytes(data[:length])
        with pytest.raises(CaptureError) as caught:
            decode_image(path)
        assert caught.value.code == "damaged-image" and caught.value.file == path
        assert isinstance(read_shot(path), Shot)


def test_thousands_of_values_in_one_place_take_no_memory(tmp_path):
    """4,080 tags of 1 MB each, all at one offset of a file of 1 MB."""
    tags = [(256, 64), (257, 64), *((1000 + k, None) for k in range(4080))]
    body = struct.pack("<H", len(tags))
    for tag, value in tags:
        body += (
            struct.pack("<HHII", tag, 3, 1, value)
            if value
            else struct.pack("<HHII", tag, 7, 1 << 20, 8)
        )
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + body + b"\0" * (1 << 20))
    tracemalloc.start()
    read_shot(path)
    with pytest.raises(CaptureError) as caught:
        decode_image(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == "damaged-image" and peak < 10_000_000


def test_a_directory_beyond_the_end():
    with pytest.raises(HeaderError):
        tiff_entries(b"II*\0" + struct.pack("<I", 5000))


def test_small_headers():
    assert [part.kind.hex() for part in jpeg_segments(b"\xff\xd8\xff\xe0\0\x04ab\xff\xd9")] == [
        "e0"
    ]
    with pytest.raises(HeaderError, match="it ends in the middle of its chunk IHDR"):
        list(png_chunks(PNG_SIGNATURE + b"\0\0\0\x0dIHDR"))
    assert declared_size(b"P5 640 480 255 ...") == Declared(width=640, height=480, depth=2)
    assert Pictures().head(Path("no-such-file.png")) == Shot()


def test_a_strip_that_holds_more_than_its_picture_is_refused(tmp_path):
    """300 kB that unpack to 300 MB, in a picture of 10 × 10 pixels."""
    path = tmp_path / "strip.tif"
    tifffile.imwrite(path, np.zeros((10, 10), np.float32), rowsperstrip=10)
    content, packed = bytearray(path.read_bytes()), zlib.compress(bytes(300 << 20), 9)
    with tifffile.TiffFile(path) as file:
        tags = {tag.name: tag for tag in file.pages[0].tags.values()}
    values = {"Compression": 8, "StripOffsets": len(content), "StripByteCounts": len(packed)}
    for name, value in values.items():
        struct.pack_into(
            {3: "<H", 4: "<I"}[int(tags[name].dtype)], content, tags[name].valueoffset, value
        )
    path.write_bytes(bytes(content) + packed)
    with pytest.raises(CaptureError, match="more than the whole picture") as error:
        decode_image(path)
    assert error.value.code == "damaged-image"


def test_a_limit_of_opencv_from_outside_is_named(tmp_path):
    """Another program may have set it for all; the photograph is not damaged."""
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((40, 50), np.uint8))
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from photostereo.core.errors import CaptureError\n"
        "from photostereo.io.images import decode_image\n"
        "try:\n"
        "    decode_image(Path(sys.argv[1]))\n"
        "except CaptureError as problem:\n"
        "    sys.stdout.write(f'{problem.code} {problem.values}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.png")],
        env={**os.environ, "OPENCV_IO_MAX_IMAGE_PIXELS": "1000"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("opencv-limit") and "OPENCV_IO_MAX_IMAGE_PIXELS" in done.stdout
