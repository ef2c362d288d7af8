"""A triangle mesh of an integrated surface, with the normals of the map and the colors of the albedo.

Vertices are ``(x right, y up, z towards the camera)``, a right-handed frame, in the user's units.
Orthographic pixels lie at ``(col, −row)`` around the middle of the picture; a camera puts each on its
viewing ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import srgb_from_linear
from photostereo.core.errors import MissingDependencyError, ParameterError
from photostereo.surface.adaptive import triangulate_adaptively
from photostereo.surface.integrated import Surface
from photostereo.surface.triangles import boundary_edges, split_pinched, triangulate

if TYPE_CHECKING:
    import trimesh

Float64 = NDArray[np.float64]
Faces = NDArray[np.int64]

#: A mesh has at most about so many triangles, unless it is asked for in full.
MOST_TRIANGLES = 2_000_000


def build_mesh(
    surface: Surface,
    normals: ArrayLike,
    albedo: ArrayLike | None = None,
    *,
    pixel_size: float = 1.0,
    base: float | None = None,
    triangles: int | None = MOST_TRIANGLES,
) -> trimesh.Trimesh:
    """The mesh of a surface.

    Parameters
    ----------
    surface : Surface
    normals : (H, W, 3) array
        Become the vertex normals; where one is unknown, the normal of the mesh is used.
    albedo : (H, W) or (H, W, 3) array, optional
        Linear; becomes vertex colors, sRGB-encoded, the 99th percentile being white.
    pixel_size : float
        Width of a pixel in the units of the mesh (at the mean distance, with a camera).
    base : float, optional
        Makes a watertight solid for printing: walls down to a flat plate so far (in the units of the mesh)
        below the lowest point. Tears become walls too, so that a solid does not fall apart along them.
    triangles : int, optional
        A surface with more than so many is adapted: coarser where it bends little
        (:mod:`~photostereo.surface.adaptive`). None keeps every pixel.

    Returns
    -------
    trimesh.Trimesh
        Without triangles across tears (unless ``base`` is given) or outside the mask, facing the camera.

    Raises
    ------
    ParameterError
        If no three neighboring pixels make a triangle.

    Examples
    --------
    >>> from photostereo.surface import build_mesh, integrate
    >>> flat = np.zeros((3, 4, 3)) + [0.0, 0.0, 1.0]
    >>> mesh = build_mesh(integrate(flat), flat, pixel_size=0.5, base=1.0)
    >>> mesh.is_watertight, round(float(mesh.volume), 9)
    (True, 1.5)
    """
    import trimesh

    if not (np.isfinite(pixel_size) and pixel_size > 0):
        raise ParameterError(f"pixel_size must be positive; it is {pixel_size}.")
    if base is not None and not (np.isfinite(base) and base > 0):
        raise ParameterError(f"The thickness of the base must be positive; it is {base}.")
    most = triangles if triangles is None or base is None else triangles // 2
    if most is None or 2 * np.count_nonzero(surface.mask) <= most:
        faces, pixels = triangulate(surface, across_tears=base is not None)
    else:
        faces, pixels, _ = triangulate_adaptively(surface, most, across_tears=base is not None)
    if len(faces) == 0:
        raise ParameterError(
            "The mask has no three neighboring pixels, so there is no triangle to make a mesh of "
            f"({np.count_nonzero(surface.mask)} pixels in {surface.parts} parts)."
        )
    # Two fans that touch in a point need two vertices: many programs refuse such a mesh otherwise.
    faces, origin = split_pinched(faces, pixels.size)
    pixels = pixels[origin]
    vertices = vertex_positions(surface, pixels) * pixel_size
    given = np.asarray(normals).reshape(-1, 3)[pixels].astype(np.float64)
    vertex_normals = complete_normals(given, vertices, faces)
    colors = None if albedo is None else vertex_colors(np.asarray(albedo), surface.mask, pixels)
    if base is not None:
        vertices, faces = close_below(vertices, faces, base)
        down = np.zeros_like(vertex_normals)
        down[:, 2] = -1.0
        vertex_normals = np.concatenate([vertex_normals, down])
        colors = None if colors is None else np.concatenate([colors, colors])
    return trimesh.Trimesh(
        vertices, faces, vertex_normals=vertex_normals, vertex_colors=colors, process=False, validate=False
    )


def vertex_positions(surface: Surface, pixels: NDArray[np.int64]) -> Float64:
    """Points (V, 3) of pixels (row · W + col), in pixels."""
    height, width = surface.mask.shape
    rows, cols = np.divmod(pixels, width)
    z = surface.depth.ravel()[pixels]
    if surface.camera is not None:
        return np.asarray(surface.camera.rays(rows, cols) * -z[:, None])
    return np.stack([cols - 0.5 * (width - 1), 0.5 * (height - 1) - rows, z], axis=1)


def geometric_normals(vertices: Float64, faces: Faces) -> Float64:
    """Area-weighted vertex normals of a mesh; (0, 0, 1) for a vertex of no area."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    total = np.zeros_like(vertices)
    for corner in range(3):
        for axis in range(3):
            total[:, axis] += np.bincount(faces[:, corner], across[:, axis], len(vertices))
    length = np.linalg.norm(total, axis=1)
    total[length == 0] = (0.0, 0.0, 1.0)
    return np.asarray(total / np.where(length > 0, length, 1.0)[:, None])


def complete_normals(given: Float64, vertices: Float64, faces: Faces) -> Float64:
    """Unit normals: the given ones, and the mesh's own where those are zero or not finite."""
    length = np.linalg.norm(given, axis=1)
    known = np.isfinite(length) & (length > 1e-6)
    result = geometric_normals(vertices, faces) if not known.all() else np.empty_like(given)
    result[known] = given[known] / length[known, None]
    return result


def vertex_colors(
    albedo: NDArray[np.generic], inside: NDArray[np.bool_], pixels: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """sRGB-encoded RGBA colors (V, 4) of pixels from a linear albedo, gray or RGB."""
    if albedo.shape not in (inside.shape, (*inside.shape, 3)):
        raise ParameterError(f"The albedo is {albedo.shape}, but the mask is {inside.shape} pixels.")
    white = white_of(albedo, inside)
    flat = np.asarray(albedo.reshape(inside.size, -1)[pixels], dtype=np.float64)
    flat = np.nan_to_num(np.maximum(flat, 0.0), posinf=0.0) / white
    colors = np.full((pixels.size, 4), 255, dtype=np.uint8)
    colors[:, :3] = np.rint(255.0 * srgb_from_linear(flat))
    return colors


def white_of(albedo: NDArray[np.generic], inside: NDArray[np.bool_]) -> float:
    """The albedo that is shown as white: its 99th percentile on the object."""
    known = np.maximum(albedo[inside], 0.0)
    white = float(np.percentile(np.nan_to_num(known, copy=False, posinf=0.0), 99.0))
    return white if white > 0 else 1.0


def close_below(vertices: Float64, faces: Faces, thickness: float) -> tuple[Float64, Faces]:
    """A solid: the surface, a flat copy of it below, and walls between their boundaries."""
    count = len(vertices)
    plate = vertices.copy()
    plate[:, 2] = vertices[:, 2].min() - thickness
    edges = boundary_edges(faces, count)
    one, two = edges[:, 0], edges[:, 1]
    walls = np.concatenate(
        [np.stack([one, one + count, two], axis=1), np.stack([two, one + count, two + count], axis=1)]
    )
    solid = np.concatenate([faces, faces[:, ::-1] + count, walls])
    return np.concatenate([vertices, plate]), solid


def decimate_mesh(mesh: trimesh.Trimesh, triangles: int) -> trimesh.Trimesh:
    """A mesh of about so many triangles (quadric edge collapse); normals and colors come from the nearest
    vertex.

    A mesh that is already smaller is returned unchanged.

    Raises
    ------
    ParameterError
        If fewer than four triangles are asked for.

    References
    ----------
    M. Garland, P. Heckbert, "Surface Simplification Using Quadric Error Metrics", SIGGRAPH 1997,
    doi:10.1145/258734.258849.
    """
    if triangles < 4:
        raise ParameterError(f"A mesh cannot have {triangles} triangles: decimate to four or more.")
    if triangles >= len(mesh.faces):
        return mesh
    try:
        from fast_simplification import simplify
    except ImportError as problem:
        raise MissingDependencyError(
            "Decimation needs the package fast-simplification: pip install fast-simplification"
        ) from problem
    import trimesh
    from scipy.spatial import KDTree

    # Single precision inside the library: keep coordinates small.
    middle = np.asarray(mesh.bounds).mean(axis=0)
    scale = float(np.ptp(mesh.bounds, axis=0).max()) or 1.0
    points = ((np.asarray(mesh.vertices) - middle) / scale).astype(np.float64)
    fewer, faces = simplify(points, np.asarray(mesh.faces), target_count=triangles)
    used, packed = np.unique(faces, return_inverse=True)
    fewer = np.asarray(fewer, dtype=np.float64)[used]
    nearest = KDTree(points).query(fewer)[1]
    colors = mesh.visual.vertex_colors[nearest] if mesh.visual.kind == "vertex" else None
    return trimesh.Trimesh(
        fewer * scale + middle,
        packed.reshape(-1, 3),
        vertex_normals=np.asarray(mesh.vertex_normals)[nearest],
        vertex_colors=colors,
        process=False,
        validate=False,
    )
