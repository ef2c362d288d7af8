"""Heights and normals as the pictures that other programs read: NPY, 16-bit PNG, 32-bit TIFF, EXR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.conventions import encode_normals
from photostereo.errors import MissingDependencyError, OutputError

Bool = NDArray[np.bool_]


def encode_heights(depth: ArrayLike, mask: Bool) -> tuple[NDArray[np.uint16], tuple[float, float]]:
    """Heights as 16-bit gray, and the range ``(low, high)`` that they span.

    Zero is outside the mask; inside, ``height = low + (value − 1) / 65534 · (high − low)``.

    Examples
    --------
    >>> picture, span = encode_heights(np.array([[0.0, 1.0, np.nan]]), np.array([[True, True, False]]))
    >>> picture.tolist(), span
    ([[1, 65535, 0]], (0.0, 1.0))
    """
    z = np.asarray(depth, dtype=np.float64)
    low, high = float(z[mask].min()), float(z[mask].max())
    picture = np.zeros(mask.shape, dtype=np.uint16)
    scale = 65534.0 / (high - low) if high > low else 0.0
    picture[mask] = 1 + np.rint((z[mask] - low) * scale)
    return picture, (low, high)


def decode_heights(picture: NDArray[np.uint16], span: tuple[float, float]) -> NDArray[np.float64]:
    """Undo :func:`encode_heights`; NaN outside the mask."""
    low, high = span
    z = low + (picture.astype(np.float64) - 1.0) / 65534.0 * (high - low)
    return np.where(picture > 0, z, np.nan)


def write_heights(folder: Path, depth: ArrayLike, mask: Bool, *, unit: float = 1.0) -> dict[str, Any]:
    """``depth.npy``, ``depth.png`` and ``depth.tiff``; the facts a reader needs.

    ``depth.npy`` (float32) is in pixels, as the normals mean it; PNG and TIFF are in the user's units, that
    is times ``unit``, NaN (TIFF) or 0 (PNG) outside the mask.
    """
    import tifffile

    from photostereo.capture.sixteen_bit import write_png

    z = np.asarray(depth, dtype=np.float64)
    picture, span = encode_heights(z * unit, mask)
    scaled = np.where(mask, z * unit, np.nan).astype(np.float32)
    try:
        np.save(folder / "depth.npy", np.where(mask, z, np.nan).astype(np.float32))
        tifffile.imwrite(folder / "depth.tiff", scaled)
        write_png(folder / "depth.png", picture)
    except OSError as problem:
        raise OutputError(f"The heights cannot be written to {folder}: {problem}.") from problem
    return {
        "files": ["depth.npy", "depth.png", "depth.tiff"],
        "range": [span[0], span[1]],
        "range_pixels": [float(z[mask].min()), float(z[mask].max())],
        "png": "height = low + (value - 1) / 65534 * (high - low); 0 is outside the mask",
    }


def write_normal_png(path: Path, normals: ArrayLike, mask: Bool, *, flip_y: bool = False) -> Path:
    """A 16-bit normal map, OpenGL convention, or DirectX with ``flip_y``."""
    from photostereo.capture.sixteen_bit import write_png

    write_png(path, encode_normals(np.asarray(normals, dtype=np.float32), mask, flip_y=flip_y))
    return path


def write_exr(path: Path, channels: dict[str, NDArray[np.generic]]) -> Path:
    """32-bit EXR with one plane per name, such as ``{"R": …, "G": …, "B": …}`` or ``{"Z": …}``.

    Raises
    ------
    MissingDependencyError
        Without the package OpenEXR (the extra ``exr``).
    """
    try:
        import OpenEXR
    except ImportError as problem:
        raise MissingDependencyError(
            'Writing EXR needs the package OpenEXR: pip install "photostereo[exr]"'
        ) from problem
    planes = {name: np.ascontiguousarray(plane, dtype=np.float32) for name, plane in channels.items()}
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    try:
        with OpenEXR.File(header, planes) as image:
            image.write(str(path))
    except (OSError, RuntimeError) as problem:
        raise OutputError(f"{path} cannot be written: {problem}.") from problem
    return path


def write_normals_exr(path: Path, normals: ArrayLike, mask: Bool, *, flip_y: bool = False) -> Path:
    """Signed normals in R, G, B = x, y, z (no ½ + ½ encoding), zero outside the mask."""
    n = np.where(mask[..., None], np.asarray(normals, dtype=np.float32), np.float32(0))
    sign = np.float32(-1 if flip_y else 1)
    return write_exr(path, {"R": n[..., 0], "G": sign * n[..., 1], "B": n[..., 2]})


def write_depth_exr(path: Path, depth: ArrayLike, mask: Bool, *, unit: float = 1.0) -> Path:
    """Heights, growing towards the camera, in the channel Z; NaN outside the mask."""
    z = np.where(mask, np.asarray(depth, dtype=np.float64) * unit, np.nan)
    return write_exr(path, {"Z": z})
