"""Make a material for renderers and game engines from a flat sample.

Its maps are base color, normals, height, roughness and ambient occlusion, with the usual file
names.

The sample is the largest rectangle inside the mask. Tilt and bow of the whole sample, caused by the
camera or the paper and not by the material, are removed: the mean and the linear trend are
subtracted from the slopes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import BoolArray, Float64, encode_normals, srgb_from_linear
from photostereo.core.errors import ParameterError, PhotostereoWarning
from photostereo.core.findings import Finding
from photostereo.core.units import PixelSize
from photostereo.io.json_text import json_bytes
from photostereo.io.png import encode_png
from photostereo.results import tiling
from photostereo.results.formats.format import Format, Job
from photostereo.results.occlusion import ambient_occlusion
from photostereo.results.roughness import estimate_roughness
from photostereo.surface.integration import integrate

#: Roughness without photographs: a matte surface.
ASSUMED_ROUGHNESS = 0.8
#: Seams that stand out more than this (see :func:`.seam_visibility`) are reported. On a rendered
#: weave, blended seams, which anyone sees, have 2.8, and cut ones, which nobody finds, 1.4.
VISIBLE = 1.6
#: Minimum n_z: a normal in the image plane would have an infinite slope.
LEAST_N_Z = 0.05
#: In a flat sample, one rectangle fills at least this share of the mask: a disk fills 0.64, the
#: demo's owl 0.6, a sample that fills the frame 1. It only decides whether a warning is given.
FLAT_SHARE = 0.7
#: In a flat sample, slopes change by less than this over it. It only decides about the same
#: warning.
MOST_BOW = 0.5


@dataclass(frozen=True, eq=False)
class Material:
    """The maps of a flat sample, all (h, w)."""

    albedo: Float64  #: (h, w, 3), linear, as measured
    normals: Float64  #: (h, w, 3), unit
    height: Float64  #: in pixels
    roughness: Float64  #: perceptual, in [0, 1]
    occlusion: Float64  #: in [0, 1]; 1 is open
    tileable: bool  #: whether the maps wrap
    roughness_measured: bool  #: whether the roughness was measured from photographs
    texel: float = 1.0  #: the width of a texel in pixels of the sample; heights are in texels
    #: how much the seams of a tile stand out: 1 is not at all
    seam_visibility: float | None = None


def make_material(
    normals: ArrayLike,
    albedo: ArrayLike,
    mask: BoolArray,
    *,
    roughness: ArrayLike | None = None,
    tileable: bool = False,
    stretch: bool = False,
    size: int | None = None,
) -> Material:
    """Make a material from a flat sample.

    Parameters
    ----------
    normals : (H, W, 3) array
        Normals of the result.
    albedo : (H, W) or (H, W, 3) array
        Linear.
    mask : (H, W) array
        The object.
    roughness : (H, W) array, optional
        From :func:`~photostereo.results.roughness.estimate_roughness`; otherwise 0.8 everywhere.
    tileable : bool
        Cut and join the sample so that copies of the material continue seamlessly; it becomes
        smaller.
    stretch : bool
        Scale the albedo so that its 99th percentile is white. By default it keeps its measured
        values.
    size : int, optional
        Side in texels of a square from the middle of the sample. By default a texel is a pixel of
        the sample.

    Raises
    ------
    ParameterError
        If no rectangle of 32 × 32 pixels fits into the mask, or ``size`` is not between 32 and
        8192.

    Examples
    --------
    >>> tilted = np.zeros((40, 50, 3)) + [0.6, 0.0, 0.8]
    >>> material = make_material(tilted, np.ones((40, 50)), np.ones((40, 50), bool))
    >>> bool(np.allclose(material.normals, [0.0, 0.0, 1.0]))
    True
    """
    box = tiling.largest_rectangle(mask)
    slopes, bow = _flat_slopes(np.asarray(normals)[box])
    rows, cols = slopes.shape[:2]
    if rows * cols < FLAT_SHARE * mask.sum() or bow > MOST_BOW:
        warnings.warn(
            PhotostereoWarning(Finding("material-not-flat", width=cols, height=rows)),
            stacklevel=2,
        )
    color = _base_color(np.asarray(albedo)[box], stretch)
    rough = np.full((rows, cols), ASSUMED_ROUGHNESS)
    if roughness is not None:
        rough = np.asarray(roughness)[box]
    maps = np.concatenate([slopes, color, rough[..., None]], axis=-1)
    # All maps go through the same cuts and resampling, so that they still fit one another.
    if size is not None:
        maps = tiling.middle_square(maps)
    visibility = None
    if tileable:
        maps, visibility = tiling.make_tileable(maps, square=size is not None)
    texel = 1.0
    if size is not None:
        side = len(maps)
        maps = tiling.resample_square(maps, size, wrap=tileable)
        texel = side / size
    if tileable:
        # A mean slope would be a step at every edge of the tile.
        maps[..., :2] -= maps[..., :2].mean(axis=(0, 1))
    slope_col = maps[..., 0]
    slope_row = maps[..., 1]
    n = np.stack([-slope_col, slope_row, np.ones_like(slope_col)], axis=-1)
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    height = _integrated(slope_col, slope_row, n, tileable)
    return Material(
        albedo=np.clip(maps[..., 2:5], 0.0, None),
        normals=n,
        height=height,
        roughness=np.clip(maps[..., 5], 0.0, 1.0),
        occlusion=ambient_occlusion(height, n, wrap=tileable),
        tileable=tileable,
        roughness_measured=roughness is not None,
        texel=texel,
        seam_visibility=visibility,
    )


def _integrated(slope_col: Float64, slope_row: Float64, normals: Float64, wrap: bool) -> Float64:
    """Return heights in pixels, periodic with ``wrap``."""
    if wrap:
        return tiling.integrate_periodic(slope_col, slope_row)
    return integrate(normals, method="simchony").depth


def _flat_slopes(normals: NDArray[Any]) -> tuple[Float64, float]:
    """Return ∂z/∂col and ∂z/∂row (h, w, 2) without tilt and bow, and the bow."""
    n = np.nan_to_num(normals.astype(np.float64))
    n = np.where(np.linalg.norm(n, axis=-1, keepdims=True) > 1e-6, n, [0.0, 0.0, 1.0])
    n_z = np.maximum(n[..., 2], LEAST_N_Z)
    slopes = (-n[..., 0] / n_z, n[..., 1] / n_z)
    flat = [flatten(slope) for slope in slopes]
    bows = [np.ptp(slope - level) for slope, level in zip(slopes, flat, strict=True)]
    return np.stack(flat, axis=-1), float(max(bows))


def _base_color(albedo: NDArray[Any], stretch: bool) -> Float64:
    """Return the linear base color (h, w, 3), scaled to the full range with ``stretch``."""
    color = np.maximum(np.nan_to_num(albedo.astype(np.float64)), 0.0)
    if color.ndim == 2:
        color = np.repeat(color[..., None], 3, axis=2)
    white = float(np.percentile(color, 99.0))
    # An albedo above 1 cannot be stored, so its 99th percentile becomes white then, too.
    if white > 1.0 or (stretch and white > 0.0):
        color = color / white
    return color


def flatten(slope: Float64) -> Float64:
    """Subtract the mean and the linear trend (least squares) from a slope map."""
    row = np.linspace(-1.0, 1.0, slope.shape[0])
    col = np.linspace(-1.0, 1.0, slope.shape[1])
    # On a full grid 1, row and col are orthogonal, so three projections suffice.
    rest = slope - slope.mean()
    rest = rest - np.outer(row, np.ones_like(col)) * (row @ rest.mean(axis=1)) / (row @ row)
    return np.asarray(rest - col[None, :] * (rest.mean(axis=0) @ col) / (col @ col))


def encode_material(
    material: Material, size: PixelSize, name: str = "material"
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Encode a material: a picture per map, named as engines expect, and ``NAME.json``.

    Parameters
    ----------
    material : Material
        The maps.
    size : PixelSize
        Width of a pixel of the sample.
    name : str
        Beginning of the file names.

    Returns
    -------
    files : dict
        File name → content.
    meanings : dict
        File name → meaning of its numbers.
    """
    size = replace(size, millimeters=size.millimeters * material.texel)
    rows, cols = material.height.shape
    low = float(material.height.min())
    high = float(material.height.max())
    height = (material.height - low) / (high - low if high > low else 1.0)
    low *= size.millimeters
    high *= size.millimeters
    unit = "mm" if size.known else "pixels"
    maps = _pictures(material, height)
    meanings = {
        "BaseColor": "Base color, sRGB.",
        "Normal_OpenGL": "Normals, OpenGL: green up.",
        "Normal_DirectX": "Normals, DirectX: green down.",
        "Height": f"height = low + value / 65535 * (high - low), in {unit}; "
        f"low = {low:.9g}, high = {high:.9g}",
        "Roughness": "Perceptual roughness, linear; alpha is its square.",
        "AmbientOcclusion": "Ambient occlusion, linear; white is open.",
        "OcclusionRoughnessMetallic": "R ambient occlusion, G roughness, B metallic (0), linear.",
    }
    files = {
        f"{name}_{kind}.png": encode_png(picture, size=size, comment=meanings[kind])
        for kind, picture in maps.items()
    }
    meanings = {f"{name}_{kind}.png": meaning for kind, meaning in meanings.items()}
    entry = {
        "pixels": [cols, rows],
        "size": [cols * size.millimeters, rows * size.millimeters],
        "unit": size.unit,
        "height_range": [low, high],
        "tileable": material.tileable,
        # Ratio of the mean step across the seam to that between neighbors: right to left, bottom to
        # top.
        "seam": {
            kind: [round(tiling.seam_ratio(picture, axis), 3) for axis in (1, 0)]
            for kind, picture in maps.items()
        },
        "seam_visibility": material.seam_visibility,
        "roughness": "measured from the photographs" if material.roughness_measured else "assumed",
        "maps": meanings,
    }
    files[f"{name}.json"] = json_bytes(entry, indent=1)
    about = {f"{name}.json": "Size, heights, quality of the seams, meaning of each map."}
    return files, meanings | about


def _pictures(material: Material, height: Float64) -> dict[str, NDArray[Any]]:
    """Return the maps as pictures, by the name that engines expect; ``height`` is in [0, 1]."""
    everywhere = np.ones(height.shape, dtype=bool)
    n = material.normals.astype(np.float32)
    occlusion = np.rint(255 * material.occlusion).astype(np.uint8)
    roughness = np.rint(255 * material.roughness).astype(np.uint8)
    metallic = np.zeros_like(roughness)
    return {
        "BaseColor": np.rint(255 * srgb_from_linear(material.albedo)).astype(np.uint8),
        "Normal_OpenGL": encode_normals(n, everywhere),
        "Normal_DirectX": encode_normals(n, everywhere, flip_y=True),
        "Height": np.rint(65535 * height).astype(np.uint16),
        "Roughness": roughness,
        "AmbientOcclusion": occlusion,
        "OcclusionRoughnessMetallic": np.stack([occlusion, roughness, metallic], axis=-1),
    }


def write_material(job: Job) -> dict[str, str]:
    """Write the subfolder ``material/``; return the meanings of its files."""
    result = job.result
    roughness = None
    if job.capture is None:
        job.notes.append(
            f"Roughness is assumed to be {ASSUMED_ROUGHNESS}; "
            "give the photographs to estimate it from highlights."
        )
    else:
        _check_frames(job.capture.frame, result.mask.shape)
        roughness = estimate_roughness(job.capture, result.normals)
    material = make_material(
        result.normals,
        result.albedo,
        result.mask,
        roughness=roughness,
        tileable=job.tileable,
        stretch=job.stretch,
        size=job.texels,
    )
    if material.seam_visibility is not None and material.seam_visibility > VISIBLE:
        job.notes.append(
            f"The seams of the material stand out (visibility {material.seam_visibility:.1f}, "
            "where 1 is not at all): photograph a larger sample, or one that is more alike "
            "everywhere."
        )
    files, meanings = encode_material(material, job.size, job.stem)
    for name, content in files.items():
        job.write(f"material/{name}", content)
    return {f"material/{name}": meaning for name, meaning in meanings.items()}


def _check_frames(photographs: tuple[int, int], result: tuple[int, ...]) -> None:
    """Raise an error if photographs and result differ in size."""
    if photographs != result:
        raise ParameterError(
            f"The photographs are {photographs[1]} × {photographs[0]} pixels, "
            f"the result is {result[1]} × {result[0]}: they are not from the same capture.",
            code="sizes-differ",
        )


FORMAT = Format(
    title="Material",
    purpose="maps of a flat sample, for renderers and game engines",
    write=write_material,
)
