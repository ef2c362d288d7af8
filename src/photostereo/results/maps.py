"""Write heights, normals and albedo as NPY, PNG, TIFF and EXR; read normal maps.

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
from photostereo.core.errors import EMPTY_MASK, CaptureError, MissingDependencyError
from photostereo.core.units import PixelSize
from photostereo.io.atomic import replacing_file, unwritable, write_array, write_bytes, writing
from photostereo.io.images import decode_image
from photostereo.io.png import encode_png
from photostereo.masks.reading import read_mask
from photostereo.priors.entry import prior_files
from photostereo.solver.reconstruction import Reconstruction


def describe_heights(size: PixelSize | None, outside: str) -> str:
    """Describe a file of heights in a sentence.

    With ``size`` None, they are in pixels by intent.
    """
    unit = "pixels"
    if size is not None:
        unit = "mm" if size.known else "pixels (the size of a pixel was not given)"
    return (
        f"Heights in {unit}, growing toward the camera; rows run down; {outside} outside the mask."
    )


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
    z = np.asarray(depth, dtype=np.float64)[mask]
    low = float(z.min())
    high = float(z.max())
    scale = 65534.0 / (high - low) if high > low else 0.0
    picture = np.zeros(mask.shape, dtype=np.uint16)
    picture[mask] = 1 + np.rint((z - low) * scale)
    return picture, (low, high)


def write_heights(
    folder: Path, depth: ArrayLike, mask: BoolArray, size: PixelSize
) -> dict[str, Any]:
    """Write heights as ``depth.npy``, ``depth.png`` and ``depth.tiff``.

    Parameters
    ----------
    folder : path
        An existing folder.
    depth : (H, W) array
        Heights in pixels.
    mask : (H, W) array
        The object.
    size : PixelSize
        Width of a pixel: TIFF and PNG are in millimeters if it is known.

    Returns
    -------
    dict
        ``files`` (name → meaning), ``range`` (in the units of the pictures), ``range_pixels``, and
        ``png``, the rule that decodes the PNG.
    """
    z = np.where(mask, np.asarray(depth, dtype=np.float64), np.nan)
    lengths = z * size.millimeters
    picture, (low, high) = encode_heights(lengths, mask)
    rule = "height = low + (value - 1) / 65534 * (high - low)"
    comment = f"{describe_heights(size, '0')} {rule}; low = {low:.9g}, high = {high:.9g}"
    meaning = describe_heights(size, "NaN")
    write_array(folder / "depth.npy", z.astype(np.float32))
    write_tiff(folder / "depth.tiff", lengths.astype(np.float32), size=size, comment=meaning)
    write_bytes(folder / "depth.png", encode_png(picture, size=size, comment=comment))
    return {
        "files": {
            "depth.npy": describe_heights(None, "NaN"),
            "depth.png": comment,
            "depth.tiff": meaning,
        },
        "range": [low, high],
        "range_pixels": [float(z[mask].min()), float(z[mask].max())],
        "png": f"{rule}; 0 is outside the mask",
    }


def write_tiff(path: Path, picture: NDArray[Any], *, size: PixelSize, comment: str) -> None:
    """Write numbers as TIFF, with the size of a pixel if it is known.

    Parameters
    ----------
    path : path
        The file.
    picture : (H, W) or (H, W, C) array
        Stored as it is.
    size : PixelSize
        Width of a pixel.
    comment : str
        The meaning of the numbers.
    """
    import tifffile  # takes 0.1 s, and not every result has heights

    tags: dict[str, Any] = {"description": comment, "software": "photostereo"}
    if size.known:
        tags["resolution"] = (size.per_centimeter, size.per_centimeter)
        tags["resolutionunit"] = tifffile.RESUNIT.CENTIMETER
    with writing(path) as file:
        tifffile.imwrite(file, picture, metadata=None, **tags)


def write_normal_png(
    path: Path,
    normals: ArrayLike,
    mask: BoolArray,
    *,
    flip_y: bool = False,
    size: PixelSize | None = None,
    control: Control = SILENT,
) -> Path:
    """Write a 16-bit normal map.

    Parameters
    ----------
    path : path
        The file.
    normals : (H, W, 3) array
        Unit vectors.
    mask : (H, W) array
        The object.
    flip_y : bool
        Use the DirectX convention instead of OpenGL's.
    size : PixelSize, optional
        Width of a pixel, stored if it is known.
    control : Control
        Can cancel.
    """

    def encode() -> bytes:
        picture = encode_normals(np.asarray(normals, dtype=np.float32), mask, flip_y=flip_y)
        return encode_png(picture, size=size, comment=describe_normals(flip_y, signed=False))

    write_bytes(path, control.aside(encode))
    return path


def read_normal_map(
    png_path: str | Path, mask_path: str | Path | None = None, flip_y: bool = False
) -> tuple[Float32, BoolArray]:
    """Read a normal map.

    Parameters
    ----------
    png_path : path
        A picture of 8 or 16 bits, R, G, B = (x, y, z + 1) / 2.
    mask_path : path, optional
        A mask; by default the alpha channel or, without one, every pixel that has a normal.
    flip_y : bool
        The picture has the DirectX convention.

    Returns
    -------
    normals : (H, W, 3) array
        Unit vectors, zero outside the mask.
    mask : (H, W) array
        The object.
    """
    source = Path(png_path)
    picture = decode_image(source, alpha=True)
    if picture.ndim != 3 or picture.shape[2] not in (3, 4):
        raise CaptureError(
            f"{source} is a gray picture; a normal map has three channels, x, y, z in R, G, B.",
            code="normal-map-is-gray",
            file=source,
        )
    if picture.dtype not in (np.uint8, np.uint16):
        raise CaptureError(
            f"{source} holds {picture.dtype} values; save the normal map as 8- or 16-bit PNG.",
            code="normal-map-type",
            file=source,
            dtype=picture.dtype,
        )
    colors = np.ascontiguousarray(picture[..., :3])
    top = float(np.iinfo(picture.dtype).max)
    # Other programs leave the background black, or gray: the code of the zero vector.
    empty = (np.abs(colors / top - 0.5) < 0.02).all(axis=-1) | (colors == 0).all(axis=-1)
    if mask_path is not None:
        inside, _ = read_mask(Path(mask_path), (colors.shape[0], colors.shape[1]))
    elif picture.shape[2] == 4:
        inside = picture[..., 3] > top / 2
    else:
        inside = ~empty
    if not inside.any():
        raise CaptureError(
            f"The mask of {source} {EMPTY_MASK}",
            code="empty-mask",
            file=mask_path or source,
            name=str(source),
        )
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
    """Write a 32-bit EXR; needs the extra ``exr``.

    Parameters
    ----------
    path : path
        The file.
    channels : dict
        Pictures (H, W) by the name of their channel, such as ``{"R": …, "G": …, "B": …}``.
    size : PixelSize, optional
        Width of a pixel, stored if it is known.
    comment : str
        The meaning of the numbers.
    """
    try:
        import OpenEXR
    except ImportError as problem:
        raise MissingDependencyError(
            'Writing EXR needs the package OpenEXR: pip install "photostereo[exr]"',
            code="needs-openexr",
        ) from problem
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
        raise unwritable(path, problem) from problem
    return path


#: Meaning of the arrays, for ``summary.json``.
ARRAYS = {
    "normals.npy": "Unit normals: x right, y up, z toward the camera; 0 outside the mask.",
    "albedo.npy": "Linear albedo in the units of the photographs; 0 outside the mask.",
    "mask.npy": "True inside the object.",
    "extras.npz": (
        "Further results of the method, by name: map_* are maps of the object, "
        "array_* are other arrays."
    ),
}
#: Meaning of ``albedo.png``.
ALBEDO = "Albedo, sRGB; its 99th percentile is white; black outside the mask."


def write_pictures(
    folder: Path,
    result: Reconstruction,
    *,
    flip_y: bool = False,
    size: PixelSize | None = None,
    control: Control = SILENT,
) -> dict[str, str]:
    """Write ``normals.png`` and ``albedo.png``.

    Parameters
    ----------
    folder : path
        An existing folder.
    result : Reconstruction
        The result.
    flip_y : bool
        Write the normals in the DirectX convention.
    size : PixelSize, optional
        Width of a pixel, stored if it is known.
    control : Control
        Can cancel.

    Returns
    -------
    dict
        The meaning of each file, including the arrays beside them.
    """
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
    meanings = ARRAYS | {f"{name}.npy": meaning for name, meaning in prior_files().items()}
    arrays = {name: meaning for name, meaning in meanings.items() if (folder / name).is_file()}
    return {**arrays, "normals.png": describe_normals(flip_y, signed=False), "albedo.png": ALBEDO}


def picture_of_albedo(albedo: NDArray[Any], mask: BoolArray) -> NDArray[np.uint8]:
    """Encode the albedo for display: 8-bit sRGB, the 99th percentile is white."""
    inside = albedo[mask]
    white = float(np.percentile(inside, 99)) if inside.size else 1.0
    picture = np.empty(albedo.shape, np.uint8)
    for rows in row_bands(*mask.shape):
        picture[rows] = np.rint(255 * srgb_from_linear(albedo[rows] / max(white, 1e-12)))
    return picture
