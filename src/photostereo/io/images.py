"""Decode a photograph in any supported format to its stored numbers, without rounding.

``decode_image`` returns the numbers as stored (8 or 16 bits, or float) in RGB order; they are converted to linear
intensities on one scale by :mod:`photostereo.photographs.developed`.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError
from photostereo.io import headers
from photostereo.io.exr_and_raw import READERS
from photostereo.io.safe import DEFLATE_RATIO, explained, opened, read_bytes

PLAIN_SUFFIXES = frozenset({".png", ".tif", ".tiff", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm"})
IMAGE_SUFFIXES = PLAIN_SUFFIXES | READERS.keys()

#: TIFF's tag for the orientation.
_ORIENTATION = 0x0112
#: TIFF's numbers for zlib.
_DEFLATED = (8, 32946, 50013)
#: Strips that cannot hold more bytes than this are harmless.
_STRIP_BYTES = 1 << 28
#: Bytes that a strip may hold beyond the picture, as some writers pad the last one.
_PADDING = 1 << 16
#: What to do if a photograph is not there.
_MISSING = "Check the name in the list of photographs, or restore it."


def is_image(path: Path) -> bool:
    """Whether the name is that of a photograph in a supported format, and not of a hidden file."""
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which ``cat.2.png`` comes before ``cat.10.png``."""
    parts = re.findall(r"\d+|\D+", name.casefold())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def unreadable_folder(folder: Path, error: OSError) -> CaptureError:
    """Return the error that a folder cannot be listed."""
    return CaptureError(
        f"The folder {folder} cannot be read: {error.strerror}. Check its name and permissions.",
        code="unreadable-folder",
        file=folder,
        strerror=error.strerror,
    )


def list_images(folder: Path) -> list[Path]:
    """The photographs in a folder, in natural order of their names."""
    try:
        return sorted(
            (path for path in folder.iterdir() if is_image(path) and path.is_file()),
            key=lambda path: natural_key(path.name),
        )
    except OSError as error:
        raise unreadable_folder(folder, error) from error


def decode_image(
    path: Path, *, alpha: bool = False, seen: Callable[[bytes], None] | None = None
) -> NDArray[Any]:
    """Return the stored numbers of one PNG, TIFF, JPEG, BMP, PGM or PPM file; EXR, HEIC and camera RAW with their extras.

    Orientation tags and color profiles are ignored: all photographs are treated alike.

    Parameters
    ----------
    path : Path
        The file.
    alpha : bool
        Also return the fourth channel, if there is one.
    seen : callable, optional
        Is called with the bytes of the file, for its digest (not for EXR and RAW, which are read by their libraries).

    Returns
    -------
    (H, W), (H, W, 3) or (H, W, 4) array
        In RGB order, of uint8, uint16, uint32 or float32.
    """
    if read := READERS.get(path.suffix.lower()):
        with opened(path, "image", remedy=_MISSING):
            pass  # their libraries need a path; check here that the file can be read
        return read(path)
    # Reading the bytes ourselves makes file names in any script work on every platform.
    data = read_bytes(path, "image", remedy=_MISSING)
    if seen is not None:
        seen(data)
    try:
        headers.require_complete(data)
    except headers.HeaderError as fault:
        raise headers.damaged_image(path, str(fault)) from fault
    if data.startswith(headers.TIFF_SIGNATURES):
        return _decode_tiff(data, path, alpha)
    declared = headers.declared_size(data)
    if declared is None:
        raise headers.damaged_image(
            path, "it is not an image in a supported format (PNG, TIFF, JPEG, BMP, PGM, PPM)"
        )
    headers.require_plausible(declared, len(data), path)
    return _decode_with_opencv(data, path, alpha)


def _decode_with_opencv(data: bytes, path: Path, alpha: bool) -> NDArray[Any]:
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        image = None
    if image is None:
        _require_no_limit(data, path)
        raise headers.damaged_image(path, "its content is not that of an image")
    if image.ndim == 3 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    elif image.ndim == 3 and image.shape[2] == 4:
        image = cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA if alpha else cv2.COLOR_BGRA2RGB)
    return _checked(image, path, alpha)


def _require_no_limit(data: bytes, path: Path) -> None:
    """Raise an error if OpenCV refuses an image because of an environment variable, perhaps of another program."""
    declared = headers.declared_size(data)
    if declared is None:
        return
    sizes = {
        "OPENCV_IO_MAX_IMAGE_PIXELS": declared.width * declared.height,
        "OPENCV_IO_MAX_IMAGE_WIDTH": declared.width,
        "OPENCV_IO_MAX_IMAGE_HEIGHT": declared.height,
    }
    for name, size in sizes.items():
        limit = os.environ.get(name, "")
        if limit.isdecimal() and size > int(limit):
            raise CaptureError(
                f"OpenCV refuses to read {path}, of {declared.width} × {declared.height} pixels, "
                f"because the environment variable {name} is {limit}. Unset it.",
                code="opencv-limit",
                file=path,
                variable=name,
                limit=limit,
            )


def _decode_tiff(data: bytes, path: Path, alpha: bool) -> NDArray[Any]:
    import tifffile

    with (
        explained(lambda problem: headers.damaged_image(path, problem)),
        tifffile.TiffFile(io.BytesIO(data)) as file,
    ):
        page = file.pages[0]
        strips = zip(page.dataoffsets, page.databytecounts, strict=True)
        ends = [start + size for start, size in strips]
        if not ends or max(ends) > len(data):
            raise headers.damaged_image(path, "its pixels end too early")
        width = page.imagewidth
        height = page.imagelength
        depth = int(page.size) * page.dtype.itemsize / max(width * height, 1)
        headers.require_plausible(headers.Declared(width, height, depth), len(data), path)
        if page.compression in _DEFLATED:
            _require_small_strips(page, data, path)
        try:
            image = np.asarray(page.asarray())
        except ValueError as error:
            # tifffile needs another package for some compressions (LZW, JPEG, SGILOG); OpenCV has them built in.
            if "imagecodecs" not in str(error) and "not supported" not in str(error):
                raise
            return _decode_with_opencv(_unturned(data, page), path, alpha)
        if page.photometric == tifffile.PHOTOMETRIC.PALETTE:
            return _decode_with_opencv(_unturned(data, page), path, alpha)
        axes = page.axes
        inverted = page.photometric == tifffile.PHOTOMETRIC.MINISWHITE
    if inverted and np.issubdtype(image.dtype, np.unsignedinteger):
        image = np.iinfo(image.dtype).max - image
    if axes.startswith("S") and image.ndim == 3:
        image = np.moveaxis(image, 0, -1)
    if image.dtype == np.bool_:
        image = image.astype(np.uint8) * np.uint8(255)
    return _checked(image, path, alpha)


def _require_small_strips(page: Any, data: bytes, path: Path) -> None:
    """Check that no strip holds more than the whole picture: tifffile would unpack all of it."""
    size = int(page.size) * page.dtype.itemsize
    for start, count in zip(page.dataoffsets, page.databytecounts, strict=True):
        if count * DEFLATE_RATIO <= _STRIP_BYTES:
            continue
        strip = data[start : start + count]
        unpacked = zlib.decompressobj().decompress(strip, size + _STRIP_BYTES)
        if len(unpacked) > size + _PADDING:
            raise headers.damaged_image(path, "a strip contains more than the whole picture")


def _unturned(data: bytes, page: Any) -> bytes:
    """Reset the orientation tag, which OpenCV applies in TIFF files but in no others."""
    tag = page.tags.get(_ORIENTATION)
    if tag is None or tag.dtype.value != 3:
        return data
    upright = bytearray(data)
    struct.pack_into(page.parent.byteorder + "H", upright, tag.valueoffset, 1)
    return bytes(upright)


def _checked(image: NDArray[Any], path: Path, alpha: bool) -> NDArray[Any]:
    """Gray as (H, W), color as (H, W, 3) or with alpha (H, W, 4), of a number type with a known scale."""
    if image.ndim == 3:
        if image.shape[2] <= 2:
            image = image[..., 0]
        else:
            image = image[..., : 4 if alpha else 3]
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] not in (3, 4)):
        raise headers.image_shape(path, f"the shape {image.shape}")
    if image.dtype in (np.float16, np.float64):
        image = image.astype(np.float32)
    if image.dtype not in (np.uint8, np.uint16, np.uint32, np.float32):
        raise CaptureError(
            f"{path} contains numbers of type {image.dtype}, whose scale is not known. Export it "
            "as 8- or 16-bit unsigned integers or 32-bit float.",
            code="image-type",
            file=path,
            type=str(image.dtype),
        )
    return image
