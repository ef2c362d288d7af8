"""Write heights, normals and albedo as NPY, PNG, 32-bit TIFF and EXR; read normal maps from other tools.

The metadata of every picture describe its numbers and, if the pixel size is known, its resolution:
TIFF in pixels per centimeter, EXR in pixels per inch, PNG in pixels per meter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import (
    BoolArray,
    Float32,
    decode_normals,
    encode_normals,
    row_bands,
    srgb_from_linear,
)
from photostereo.core.errors import CaptureError, MissingDependencyError, OutputError
from photostereo.core.units import PixelSize
from photostereo.io.atomic import replacing_file, write_array, write_bytes, writing
from photostereo.io.images import decode_image
from photostereo.io.png import encode_png
from photostereo.masks.reading import read_mask
from photostereo.solver.reconstruction import Reconstruction


def describe_heights(size: PixelSize | None, outside: str) -> str:
    """Describe a file of heights in a sentence; with ``size`` None, they are in pixels by intent."""
    unit = "mm" if size is not None and size.known else "pixels"
    unknown = " (the size of a pixel was not given)" if size is not None and not size.known else ""
    return f"Heights in {unit}{unknown}, growing toward the camera; rows run down; {outside} outside the mask."


def describe_normals(flip_y: bool, *, signed: bool) -> str:
    """Describe a picture of normals in a sentence."""
    green = "down (DirectX)" if flip_y else "up (OpenGL)"
    numbers = "R, G, B are x, y, z, signed" if signed else "R, G, B are (x, y, z + 1) / 2"
    return f"Normals: {numbers}; x right, green {green}, z toward the camera; 0 outside the mask."


def encode_heights(
    depth: ArrayLike, mask: BoolArray
) -> tuple[NDArray[np.uint16], tuple[float, float]]:
    """Encode heights as 16-bit gray; also return their range ``(low, high)``.

    Zero is outside the mask; inside, ``height = low + (value − 1) / 65534 · (high − low)``.
    """
    z = np.asarray(depth, dtype=np.float64)
    low, high = float(z[mask].min()), float(z[mask].max())
    picture = np.zeros(mask.shape, dtype=np.uint16)
    scale = 65534.0 / (high - low) if high > low else 0.0
    picture[mask] = 1 + np.rint((z[mask] - low) * scale)
    return picture, (low, high)


def write_heights(
    folder: Path, depth: ArrayLike, mask: BoolArray, size: PixelSize
) -> dict[str, Any]:
    """Write ``depth.npy``, in pixels like the normals, ``depth.png`` and ``depth.tiff``; return facts about them."""
    import tifffile  # takes 0.1 s, and not every result has heights

    z = np.where(mask, np.asarray(depth, dtype=np.float64), np.nan)
    lengths = z * size.millimeters
    picture, span = encode_heights(lengths, mask)
    rule = "height = low + (value - 1) / 65534 * (high - low)"
    comment = f"{describe_heights(size, '0')} {rule}; low = {span[0]:.9g}, high = {span[1]:.9g}"
    said = describe_heights(size, "NaN")
    about: dict[str, Any] = {"description": said, "software": "photostereo"}
    if size.known:
        about["resolution"] = (size.per_centimeter, size.per_centimeter)
        about["resolutionunit"] = tifffile.RESUNIT.CENTIMETER
    write_array(folder / "depth.npy", z.astype(np.float32))
    with writing(folder / "depth.tiff") as file:
        tifffile.imwrite(file, lengths.astype(np.float32), metadata=None, **about)
    write_bytes(folder / "depth.png", encode_png(picture, size=size, comment=comment))
    return {
        "files": {
            "depth.npy": describe_heights(None, "NaN"),
            "depth.png": comment,
            "depth.tiff": said,
        },
        "range": [span[0], span[1]],
        "range_pixels": [float(z[mask].min()), float(z[mask].max())],
        "png": f"{rule}; 0 is outside the mask",
    }


def write_normal_png(
    path: Path,
    normals: ArrayLike,
    mask: BoolArray,
    *,
    flip_y: bool = False,
    size: PixelSize | None = None,
    control: Control = SILENT,
) -> Path:
    """Write a 16-bit normal map in the OpenGL convention, or DirectX with ``flip_y``."""

    def encoded() -> bytes:
        picture = encode_normals(np.asarray(normals, dtype=np.float32), mask, flip_y=flip_y)
        return encode_png(picture, size=size, comment=describe_normals(flip_y, signed=False))

    write_bytes(path, control.aside(encoded))
    return path


def read_normal_map(
    png_path: str | Path, mask_path: str | Path | None = None, flip_y: bool = False
) -> tuple[Float32, BoolArray]:
    """Read unit normals (H, W, 3) and the mask, by default the alpha channel or every pixel that has a normal."""
    source = Path(png_path)
    picture = decode_image(source, alpha=True)
    if picture.ndim != 3 or picture.shape[2] not in (3, 4):
        raise CaptureError(code="normal-map-is-gray", file=source)
    if picture.dtype not in (np.uint8, np.uint16):
        raise CaptureError(code="normal-map-type", file=source, dtype=picture.dtype)
    colors = np.ascontiguousarray(picture[..., :3])
    top = float(np.iinfo(picture.dtype).max)
    empty = (np.abs(colors / top - 0.5) < 0.02).all(axis=-1) | (colors == 0).all(axis=-1)
    if mask_path is not None:
        inside, _ = read_mask(Path(mask_path), (colors.shape[0], colors.shape[1]))
    elif picture.shape[2] == 4:
        inside = picture[..., 3] > top / 2
    else:
        inside = ~empty
    if not inside.any():
        raise CaptureError(code="empty-mask", file=mask_path or source, name=str(source))
    normals = np.asarray(decode_normals(colors, flip_y=flip_y), dtype=np.float32)
    normals[empty | ~inside] = 0
    return normals, np.asarray(inside, dtype=np.bool_)


def write_exr(
    path: Path,
    channels: dict[str, NDArray[np.generic]],
    *,
    size: PixelSize | None = None,
    comment: str = "",
) -> Path:
    """Write a 32-bit EXR with one plane per name, such as ``{"R": …, "G": …, "B": …}``; needs the extra ``exr``."""
    try:
        import OpenEXR
    except ImportError as problem:
        raise MissingDependencyError(code="needs-openexr") from problem
    planes = {
        name: np.ascontiguousarray(plane, dtype=np.float32) for name, plane in channels.items()
    }
    header: dict[str, Any] = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    if size is not None and size.known:
        header["xDensity"] = size.per_inch
    if comment:
        header["comments"] = comment
    try:
        with replacing_file(path, force=True) as partial, OpenEXR.File(header, planes) as image:
            image.write(str(partial))
    except (OSError, RuntimeError) as problem:
        raise OutputError(code="cannot-write", file=path, reason=str(problem)) from problem
    return path


#: Meaning of the arrays, for ``summary.json``.
ARRAYS = {
    "normals.npy": "Unit normals: x right, y up, z toward the camera; 0 outside the mask.",
    "albedo.npy": "Linear albedo in the units of the photographs; 0 outside the mask.",
    "mask.npy": "True inside the object.",
    "dictionary.npy": "The learned atoms, one per row: the patches of x, y and z in turn, each in row-major order.",
    "extras.npz": "Further results of the method, by name: map_* are maps of the object, array_* are other arrays.",
}
ALBEDO = "Albedo, sRGB; its 99th percentile is white; black outside the mask."


def write_pictures(
    folder: Path,
    result: Reconstruction,
    *,
    flip_y: bool = False,
    size: PixelSize | None = None,
    control: Control = SILENT,
) -> dict[str, str]:
    """Write ``normals.png`` and ``albedo.png``; return the meaning of each file, including the arrays beside them."""
    write_normal_png(
        folder / "normals.png",
        result.normals,
        result.mask,
        flip_y=flip_y,
        size=size,
        control=control,
    )

    def albedo() -> bytes:
        return encode_png(picture_of_albedo(result.albedo, result.mask), size=size, comment=ALBEDO)

    write_bytes(folder / "albedo.png", control.aside(albedo))
    arrays = {name: said for name, said in ARRAYS.items() if (folder / name).is_file()}
    return {**arrays, "normals.png": describe_normals(flip_y, signed=False), "albedo.png": ALBEDO}


def picture_of_albedo(albedo: NDArray[Any], mask: BoolArray) -> NDArray[np.uint8]:
    """Encode the albedo for display: 8-bit sRGB, the 99th percentile is white."""
    inside = albedo[mask]
    top = float(np.percentile(inside, 99)) if inside.size else 1.0
    picture = np.empty(albedo.shape, np.uint8)
    for rows in row_bands(*mask.shape):
        picture[rows] = np.rint(255 * srgb_from_linear(albedo[rows] / max(top, 1e-12)))
    return picture
