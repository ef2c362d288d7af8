"""A light mesh that looks like the full surface, with albedo and normals as textures.

The textures are aligned with the photograph: the texture coordinates of a vertex are its pixel. The
normal map is in tangent space, the frame that viewers build at every point from the interpolated
normal N of the mesh and its tangent T (the direction of increasing u): n = x T + y B + z N with
B = N × T, green up (OpenGL, as glTF requires).

A renderer that interpolates the frame over the triangles thus shades every texel with the normal of
the photometric map, even if the geometry is simplified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import (
    BoolArray,
    Float32,
    Float64,
    FloatArray,
    encode_normals,
    row_bands,
    srgb_from_linear,
)
from photostereo.io.memory import give_back_memory
from photostereo.runtime.loops import njit
from photostereo.surface.integrated import Surface
from photostereo.surface.mesh import albedo_shape, build_small_mesh, geometric_normals, white_of

#: Triangles of a light mesh, which phones and web viewers draw without delay.
TRIANGLES = 50_000
#: Largest side of a texture that all current graphics cards support.
TEXTURE_SIDE = 4096


@dataclass(frozen=True, eq=False)
class TexturedMesh:
    """A mesh with its textures."""

    vertices: Float64  #: (V, 3), in pixels; x right, y up, z toward the camera.
    faces: NDArray[np.int64]  #: (F, 3), counterclockwise as seen from the camera.
    normals: Float64  #: (V, 3), unit normals of the light mesh.
    tangents: Float64  #: (V, 3), unit tangents, along increasing u.
    uv: Float64  #: (V, 2), texture coordinates from the top left corner of the textures.
    albedo: NDArray[np.uint8]  #: (h, w, 3), sRGB.
    normal_map: NDArray[np.uint8]  #: (h, w, 3), tangent space, green up.


def texture_mesh(
    surface: Surface,
    normals: ArrayLike,
    albedo: ArrayLike | None = None,
    *,
    triangles: int = TRIANGLES,
    texture_side: int = TEXTURE_SIDE,
    control: Control = SILENT,
) -> TexturedMesh:
    """Build a mesh of at most about ``triangles`` triangles, with albedo and normals as textures.

    Parameters
    ----------
    surface : Surface
        Heights, which become triangles.
    normals : (H, W, 3) array
        Normals of the map; an unknown normal takes the value of its nearest neighbor.
    albedo : (H, W) or (H, W, 3) array, optional
        Linear; the 99th percentile becomes white. Without it, the mesh is light gray.
    triangles : int
        A surface with fewer is not reduced.
    texture_side : int
        Larger textures are reduced to this many texels along their longer side.
    control : Control
        Can cancel.

    Examples
    --------
    >>> from photostereo.surface import integrate
    >>> flat = np.zeros((4, 6, 3)) + [0.0, 0.0, 1.0]
    >>> mesh = texture_mesh(integrate(flat), flat)
    >>> mesh.normal_map.shape, mesh.normal_map[0, 0].tolist()
    ((4, 6, 3), [128, 128, 255])
    """
    light = build_small_mesh(surface, None, triangles=triangles, control=control)
    control.check()
    vertices = light.vertices
    faces = light.faces.astype(np.int64)
    normal = geometric_normals(vertices, faces)
    tangent = tangents_of(normal)
    cols, rows = pixels_of(surface, vertices)
    left, top, width, height = cv2.boundingRect(surface.mask.view(np.uint8))
    uv = np.stack([(cols - left + 0.5) / width, (rows - top + 0.5) / height], axis=1)
    scale = min(1.0, texture_side / max(height, width))
    size = (max(1, round(height * scale)), max(1, round(width * scale)))
    crop = np.s_[top : top + height, left : left + width]
    inside = surface.mask[crop]
    texels = uv * np.array([size[1], size[0]]) - 0.5
    give_back_memory()
    albedo_map = _resized_albedo(albedo, surface.mask, crop, size, control)
    map_normals = _resized(_complete_normals(np.asarray(normals)[crop], inside), size)
    control.check()
    # The y component of the vertex tangents is zero.
    frame = np.full((*size, 5), np.nan, dtype=np.float32)
    interpolate(texels, faces, np.concatenate([normal, tangent[:, ::2]], axis=1), frame)
    control.check()
    return TexturedMesh(
        vertices=vertices,
        faces=faces,
        normals=normal,
        tangents=tangent,
        uv=uv,
        albedo=albedo_map,
        normal_map=bake_normals(map_normals, frame, control),
    )


def tangents_of(normals: Float64) -> Float64:
    """Return unit tangents along +u = +x on the surface.

    They are orthogonal to the normal, with no y component.
    """
    along = np.stack([normals[:, 2], np.zeros(len(normals)), -normals[:, 0]], axis=1)
    length = np.linalg.norm(along, axis=1, keepdims=True)
    return np.where(length > 1e-9, along / np.maximum(length, 1e-9), [1.0, 0.0, 0.0])


def bake_normals(
    normals: FloatArray, frame: FloatArray, control: Control = SILENT
) -> NDArray[np.uint8]:
    """Encode normals in the frames of a mesh, as an 8-bit map (h, w, 3).

    Parameters
    ----------
    normals : (h, w, 3) array
        Normals of the map.
    frame : (h, w, 5) array
        Normal, and x and z of the tangent, of the mesh; NaN where it has no triangle.
    control : Control
        Can cancel.
    """
    frame = _padded(frame, np.isfinite(frame[..., 0]))
    picture = np.empty(normals.shape, dtype=np.uint8)
    for rows in row_bands(*normals.shape[:2]):
        control.check()
        # Arithmetic on three planes is several times faster than on vectors.
        n = np.array(np.moveaxis(frame[rows, :, :3], -1, 0), np.float32)
        unit = np.array(np.moveaxis(normals[rows], -1, 0), np.float32)
        t = np.stack([frame[rows, :, 3], np.zeros_like(n[0]), frame[rows, :, 4]])
        _normalize(n)
        t -= _dot(t, n) * n
        _normalize(t)
        _normalize(unit)
        b = np.stack(
            [n[1] * t[2] - n[2] * t[1], n[2] * t[0] - n[0] * t[2], n[0] * t[1] - n[1] * t[0]]
        )
        # A normal that faces away from the light mesh cannot be encoded: project it onto the
        # surface.
        local = np.stack([_dot(unit, t), _dot(unit, b), np.maximum(_dot(unit, n), 0.0)])
        _normalize(local)
        picture[rows] = encode_normals(
            np.moveaxis(local, 0, -1), np.ones(local.shape[1:], bool), bits=8
        )
    return picture


def pixels_of(surface: Surface, vertices: Float64) -> tuple[Float64, Float64]:
    """Return fractional columns and rows of the pixels that see vertices (V, 3) given in pixels."""
    x, y, z = vertices.T
    if surface.camera is not None:
        camera = surface.camera
        return camera.cx + camera.fx * x / -z, camera.cy - camera.fy * y / -z
    height, width = surface.mask.shape
    return x + 0.5 * (width - 1), 0.5 * (height - 1) - y


def _resized_albedo(
    albedo: ArrayLike | None,
    mask: BoolArray,
    crop: tuple[slice, slice],
    size: tuple[int, int],
    control: Control,
) -> NDArray[np.uint8]:
    if albedo is None:
        linear = np.full(size, 0.6)
    else:
        values = np.asarray(albedo)
        if values.shape not in (mask.shape, (*mask.shape, 3)):
            raise albedo_shape(values, mask)
        linear = np.maximum(values[crop], 0.0).astype(np.float32, copy=False)
        np.nan_to_num(linear, copy=False, posinf=0.0)
        padded = control.aside(partial(_padded, linear, mask[crop]))
        linear = control.aside(lambda: _resized(padded, size) / np.float32(white_of(values, mask)))
    picture = np.empty(linear.shape, dtype=np.uint8)
    for rows in row_bands(*size):
        control.check()
        picture[rows] = np.rint(255.0 * srgb_from_linear(linear[rows]))
    return picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)


def _complete_normals(normals: NDArray[Any], inside: BoolArray) -> FloatArray:
    """Return normals (h, w, 3) in single precision.

    An unknown one is that of its nearest neighbor.
    """
    normals = normals.astype(np.float32, copy=False)
    length = np.einsum("ijk,ijk->ij", normals, normals)
    usable = inside & (length > 1e-12) & np.isfinite(length)
    if usable.all():
        return normals
    return _padded(np.where(usable[..., None], normals, np.float32(0.0)), usable)


def _padded(values: FloatArray, usable: BoolArray) -> FloatArray:
    """Fill the other pixels with the nearest usable value, in place.

    Filtering then mixes in no background.
    """
    if usable.all() or not usable.any():
        return values
    missing = ~usable
    # Usable pixels are numbered row by row from 1; the others have the label of the nearest.
    label = cv2.distanceTransformWithLabels(
        missing.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )[1][missing]
    nearest = np.flatnonzero(usable)[label - 1]
    values[missing] = values.reshape(usable.size, -1)[nearest].reshape(-1, *values.shape[2:])
    return values


def _resized(values: FloatArray, size: tuple[int, int]) -> FloatArray:
    if values.shape[:2] == size:
        return values
    return np.asarray(cv2.resize(values, (size[1], size[0]), interpolation=cv2.INTER_AREA))


def _dot(a: Float32, b: Float32) -> Float32:
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def _normalize(planes: Float32) -> None:
    planes /= np.maximum(np.sqrt(_dot(planes, planes)), np.float32(1e-12))


@njit(cache=True)  # type: ignore[untyped-decorator]
def interpolate(
    points: Float64, faces: NDArray[np.int64], values: Float64, result: FloatArray
) -> None:
    """Interpolate vertex values over triangles.

    Parameters
    ----------
    points : (V, 2) array
        Columns and rows of the vertices, in texels.
    faces : (F, 3) array
        Triangles.
    values : (V, k) array
        Values of the vertices.
    result : (h, w, k) array
        Output; texels outside all triangles are not written.
    """
    height, width, depth = result.shape
    for number in range(faces.shape[0]):
        one, two, three = faces[number]
        ax, ay = points[one]
        # The other two corners, relative to the first.
        bx = points[two, 0] - ax
        by = points[two, 1] - ay
        cx = points[three, 0] - ax
        cy = points[three, 1] - ay
        area = bx * cy - by * cx
        if area == 0.0:
            continue
        west = max(0, math.ceil(ax + min(0.0, bx, cx) - 1e-6))
        east = min(width - 1, math.floor(ax + max(0.0, bx, cx) + 1e-6))
        top = max(0, math.ceil(ay + min(0.0, by, cy) - 1e-6))
        bottom = min(height - 1, math.floor(ay + max(0.0, by, cy) + 1e-6))
        for row in range(top, bottom + 1):
            for col in range(west, east + 1):
                b = ((col - ax) * cy - (row - ay) * cx) / area
                c = (bx * (row - ay) - by * (col - ax)) / area
                a = 1.0 - b - c
                if a >= -1e-9 and b >= -1e-9 and c >= -1e-9:
                    for k in range(depth):
                        result[row, col, k] = (
                            a * values[one, k] + b * values[two, k] + c * values[three, k]
                        )
