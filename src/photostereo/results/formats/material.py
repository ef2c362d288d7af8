"""Make a material for renderers and game engines from a flat sample: base color, normals, height, roughness, ambient
occlusion, with the usual file names.

The sample is the largest rectangle inside the mask. Tilt and bow of the whole sample, caused by the camera or the paper
and not by the material, are removed: the mean and the linear trend are subtracted from the slopes.
"""

from __future__ import annotations

import json
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
#: Minimum n_z: a normal in the image plane would have an infinite slope.
LEAST_N_Z = 0.05
#: In a flat sample, one rectangle fills at least this share of the mask, and slopes change by less than this over it. A
#: disk fills 0.64, the demo's owl 0.6, a sample that fills the frame 1. Both only decide whether a warning is given.
FLAT_SHARE, MOST_BOW = 0.7, 0.5


@dataclass(frozen=True, eq=False)
class Material:
    """The maps of a flat sample, all (h, w)."""

    albedo: Float64  #: (h, w, 3), linear, as measured
    normals: Float64  #: (h, w, 3), unit
    height: Float64  #: in pixels
    #: roughness, occlusion: in [0, 1]
    roughness: Float64
    occlusion: Float64
    tileable: bool  #: whether the maps wrap
    roughness_measured: bool  #: whether the roughness was measured from photographs
    texel: float = 1.0  #: the width of a texel in pixels of the sample; heights are in texels


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
    normals, albedo, mask : arrays
        Maps of the result; the albedo is linear.
    roughness : (H, W) array, optional
        From :func:`~photostereo.results.roughness.estimate_roughness`; otherwise 0.8 everywhere.
    tileable : bool
        Blend the edges so that copies of the material join seamlessly; it becomes about a fifth smaller on each side.
    stretch : bool
        Scale the albedo so that its 99th percentile is white. By default it keeps its measured values.
    size : int, optional
        Side in texels of a square from the middle of the sample. By default a texel is a pixel of the sample.

    Raises
    ------
    ParameterError
        If no rectangle of 32 × 32 pixels fits into the mask, or ``size`` is not between 32 and 8192.

    Examples
    --------
    >>> tilted = np.zeros((40, 50, 3)) + [0.6, 0.0, 0.8]
    >>> material = make_material(tilted, np.ones((40, 50)), np.ones((40, 50), bool))
    >>> bool(np.allclose(material.normals, [0.0, 0.0, 1.0]))
    True
    """
    box = tiling.largest_rectangle(mask)
    n = np.nan_to_num(np.asarray(normals, dtype=np.float64)[box])
    n = np.where(np.linalg.norm(n, axis=-1, keepdims=True) > 1e-6, n, [0.0, 0.0, 1.0])
    n_z = np.maximum(n[..., 2], LEAST_N_Z)
    measured_slopes = (-n[..., 0] / n_z, n[..., 1] / n_z)
    slopes = np.stack([flatten(slope) for slope in measured_slopes], axis=-1)
    bow = max(float(np.ptp(slope - flatten(slope))) for slope in measured_slopes)
    if n[..., 0].size < FLAT_SHARE * mask.sum() or bow > MOST_BOW:
        warnings.warn(
            PhotostereoWarning(Finding("material-not-flat", width=n.shape[1], height=n.shape[0])),
            stacklevel=2,
        )
    color = np.maximum(np.nan_to_num(np.asarray(albedo, dtype=np.float64)[box]), 0.0)
    color = color if color.ndim == 3 else np.repeat(color[..., None], 3, axis=2)
    white = float(np.percentile(color, 99.0))
    # An albedo above 1 cannot be stored, so its 99th percentile becomes white then, too.
    color = color / (white if (stretch and white > 0) or white > 1.0 else 1.0)
    measured = roughness is not None
    rough = np.asarray(roughness)[box] if measured else np.full(n.shape[:2], ASSUMED_ROUGHNESS)
    maps = np.concatenate([slopes, color, rough[..., None]], axis=-1)
    if size is not None:
        maps = tiling.middle_square(maps)
    if tileable:
        maps = tiling.make_tileable(maps)
    side, texel = len(maps), 1.0
    if size is not None:
        maps = tiling.resample_square(maps, size, wrap=tileable)
        texel = side / size
    if tileable:
        maps[..., :2] -= maps[..., :2].mean(axis=(0, 1))
    slope_col, slope_row = maps[..., 0], maps[..., 1]
    made = np.stack([-slope_col, slope_row, np.ones_like(slope_col)], axis=-1)
    made /= np.linalg.norm(made, axis=-1, keepdims=True)
    wrapped = tiling.integrate_periodic(slope_col, slope_row) if tileable else None
    height = integrate(made, method="simchony").depth if wrapped is None else wrapped
    return Material(
        albedo=np.clip(maps[..., 2:5], 0.0, None),
        normals=made,
        height=height,
        roughness=np.clip(maps[..., 5], 0.0, 1.0),
        occlusion=ambient_occlusion(height, made, wrap=tileable),
        tileable=tileable,
        roughness_measured=measured,
        texel=texel,
    )


def flatten(slope: Float64) -> Float64:
    """Subtract the mean and the linear trend (least squares) from a slope map."""
    row, col = (np.linspace(-1.0, 1.0, size) for size in slope.shape)
    # On a full grid 1, row and col are orthogonal, so three projections suffice.
    left = slope - slope.mean()
    left = left - np.outer(row, np.ones_like(col)) * (row @ left.mean(axis=1)) / (row @ row)
    return np.asarray(left - col[None, :] * (left.mean(axis=0) @ col) / (col @ col))


def encode_material(
    material: Material, size: PixelSize, name: str = "material"
) -> dict[str, bytes]:
    """Return the files of a material, name → content: a picture per map, named as engines expect, and ``NAME.json``."""
    size = replace(size, millimeters=size.millimeters * material.texel)
    rows, cols = material.height.shape
    everywhere = np.ones((rows, cols), dtype=bool)
    low, high = float(material.height.min()), float(material.height.max())
    shown = (material.height - low) / (high - low if high > low else 1.0)
    low, high = low * size.millimeters, high * size.millimeters
    unit = "mm" if size.known else "pixels"
    rule = f"height = low + value / 65535 * (high - low), in {unit}; low = {low:.9g}, high = {high:.9g}"
    occlusion, rough = (
        np.rint(255 * m).astype(np.uint8) for m in (material.occlusion, material.roughness)
    )
    packed = np.stack([occlusion, rough, np.zeros_like(rough)], axis=-1)
    color = np.rint(255 * srgb_from_linear(material.albedo)).astype(np.uint8)
    n = material.normals.astype(np.float32)
    maps: dict[str, tuple[NDArray[Any], str]] = {
        "BaseColor": (color, "Base color, sRGB."),
        "Normal_OpenGL": (encode_normals(n, everywhere), "Normals, OpenGL: green up."),
        "Normal_DirectX": (
            encode_normals(n, everywhere, flip_y=True),
            "Normals, DirectX: green down.",
        ),
        "Height": (np.rint(65535 * shown).astype(np.uint16), rule),
        "Roughness": (rough, "Perceptual roughness, linear; alpha is its square."),
        "AmbientOcclusion": (occlusion, "Ambient occlusion, linear; white is open."),
        "OcclusionRoughnessMetallic": (
            packed,
            "R ambient occlusion, G roughness, B metallic (0), linear.",
        ),
    }
    facts = {
        "pixels": [cols, rows],
        "size": [cols * size.millimeters, rows * size.millimeters],
        "unit": size.unit,
        "height_range": [low, high],
        "tileable": material.tileable,
        # Ratio of the mean step across the seam to that between neighbors: right to left, bottom to top.
        "seam": {
            kind: [round(tiling.seam_ratio(m, axis), 3) for axis in (1, 0)]
            for kind, (m, _) in maps.items()
        },
        "roughness": "measured from the photographs" if material.roughness_measured else "assumed",
        "maps": {f"{name}_{kind}.png": words for kind, (_, words) in maps.items()},
    }
    files = {
        f"{name}_{kind}.png": encode_png(m, size=size, comment=said)
        for kind, (m, said) in maps.items()
    }
    return files | {f"{name}.json": json_bytes(facts, indent=1)}


def write_material(job: Job) -> dict[str, str]:
    """Write the subfolder ``material/``; return the meanings of its files."""
    rough = None
    if job.capture is not None:
        if job.capture.frame != job.mask.shape:
            sizes = [f"{width} × {height}" for height, width in (job.capture.frame, job.mask.shape)]
            words = "The photographs are {} pixels, the result is {}: they are not from the same capture."
            raise ParameterError(words.format(*sizes), code="sizes-differ")
        rough = estimate_roughness(job.capture, job.normals)
    assert job.albedo is not None
    material = make_material(
        job.normals,
        job.albedo,
        job.mask,
        roughness=rough,
        tileable=job.tileable,
        stretch=job.stretch,
        size=job.texels,
    )
    files = encode_material(material, job.size, job.stem)
    for name, content in files.items():
        job.write(f"material/{name}", content)
    facts = f"{job.stem}.json"
    said = json.loads(files[facts])["maps"]
    said[facts] = "Size, heights, quality of the seams, meaning of each map."
    return {f"material/{name}": words for name, words in said.items()}


FORMAT = Format(write_material)
