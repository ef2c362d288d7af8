"""Triangle meshes of an integrated surface.

Normals are those of the normal map, colors those of the albedo.

Vertices are ``(x right, y up, z toward the camera)``, a right-handed frame, in the user's units.
Orthographic pixels lie at ``(col, −row)`` around the middle of the picture; a camera puts each on
its viewing ray.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float64, srgb_from_linear
from photostereo.core.errors import MissingDependencyError, ParameterError
from photostereo.surface.integrated import Surface
from photostereo.surface.triangles import Faces, Squares, boundary_edges, split_pinched, triangulate

#: Larger meshes are simplified unless the full one is requested: viewers become slow above a few
#: million triangles.
MOST_TRIANGLES = 2_000_000
#: Quadric simplification starts from a quadtree mesh with this many times the requested triangles:
#: ten times faster than from every pixel, with 0.8 to 1.3 times its error (2: 0.6 to 2.2; 8: 0.7 to
#: 1.5, and up to twice the time).
HEAD_START = 4
#: Above this number the quadtree alone makes the mesh: quadrics would take seconds, and cannot be
#: canceled.
MOST_BY_QUADRICS = 250_000
#: Maximum number of pixels used to find white; enough for a percentile. Not tuned.
WHITE_SAMPLE = 500_000
#: Normals shorter than this are unknown.
SHORTEST = 1e-6


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh; ``to_trimesh`` converts it for use with trimesh."""

    vertices: Float64  #: (V, 3) points
    faces: Faces  #: (F, 3) their numbers, counterclockwise as seen from outside
    given_normals: Float64 | None  #: (V, 3) unit normals
    vertex_colors: NDArray[np.uint8] | None  #: (V, 4) sRGB-encoded RGBA
    full_triangles: int  #: triangles of the mesh of every pixel
    tolerance: float = 0.0  #: height error of a simplified mesh relative to that, in pixels

    @property
    def vertex_normals(self) -> Float64:
        """Return the given normals, or those of the mesh."""
        if self.given_normals is None:
            return geometric_normals(self.vertices, self.faces)
        return self.given_normals

    @property
    def is_watertight(self) -> bool:
        """Whether every edge belongs to two triangles."""
        return len(boundary_edges(self.faces, len(self.vertices))) == 0

    def to_trimesh(self) -> Any:
        """Convert to a ``trimesh.Trimesh``; the package trimesh must be installed."""
        import trimesh

        return trimesh.Trimesh(
            self.vertices,
            self.faces,
            vertex_normals=self.vertex_normals,
            vertex_colors=self.vertex_colors,
            process=False,
            validate=False,
        )


def build_mesh(
    surface: Surface,
    normals: ArrayLike | None,
    albedo: ArrayLike | None = None,
    *,
    pixel_size: float = 1.0,
    base: float | None = None,
    triangles: int | None = MOST_TRIANGLES,
    control: Control = SILENT,
) -> Mesh:
    """Build the mesh of a surface.

    Parameters
    ----------
    surface : Surface
        Heights; one vertex per pixel of its mask.
    normals : (H, W, 3) array, optional
        Vertex normals; if one is unknown, the normal of the mesh is used.
    albedo : (H, W) or (H, W, 3) array, optional
        Linear albedo for the sRGB-encoded vertex colors; its 99th percentile is white.
    pixel_size : float
        Width of a pixel in the units of the mesh (at the mean distance, with a camera).
    base : float, optional
        Makes a watertight solid for printing: walls down to a flat plate this far (in the units of
        the mesh) below the lowest point. Tears become walls too, so that a solid does not fall
        apart along them.
    triangles : int, optional
        A larger mesh is simplified to about this many triangles: coarser where the surface bends
        little (:mod:`~photostereo.surface.adaptive`). None keeps every pixel.
    control : Control
        Can cancel the work.

    Returns
    -------
    Mesh
        Without triangles across tears (unless ``base`` is given) or outside the mask, facing the
        camera.

    Raises
    ------
    ParameterError
        If no three neighboring pixels make a triangle.

    Examples
    --------
    >>> from photostereo.surface import build_mesh, integrate
    >>> flat = np.zeros((3, 4, 3)) + [0.0, 0.0, 1.0]
    >>> mesh = build_mesh(integrate(flat), flat, pixel_size=0.5, base=1.0)
    >>> mesh.is_watertight, len(mesh.faces)
    (True, 44)
    """
    if not (np.isfinite(pixel_size) and pixel_size > 0):
        raise ParameterError(
            f"The pixel size must be positive; it is {pixel_size}.", code="bad-pixel-size"
        )
    if base is not None and not (np.isfinite(base) and base > 0):
        raise ParameterError(
            f"The thickness of the base must be positive; it is {base}.",
            code="bad-base",
            base=base,
        )
    solid = base is not None
    squares = Squares(surface, across_tears=solid)
    full = squares.count
    if full == 0:
        inside = int(np.count_nonzero(surface.mask))
        raise ParameterError(
            "No three neighboring pixels lie inside the mask, so there is no triangle to build a "
            "mesh from.",
            code="no-triangles",
            pixels=inside,
            parts=surface.parts,
        )
    control.check()
    tolerance = 0.0
    most = triangles
    if most is not None and solid:
        most //= 2  # the plate has as many triangles as the surface
    if most is None or full <= most:
        faces, pixels = triangulate(squares)
    else:
        from photostereo.surface.adaptive import triangulate_adaptively  # loads Numba

        faces, pixels, tolerance = triangulate_adaptively(squares, most, control)
    control.check()
    # Two fans that touch in a point need two vertices: otherwise many programs reject the mesh.
    suspect = squares.near_partial().ravel()[pixels]
    del squares
    faces, origin = split_pinched(faces, suspect)
    pixels = pixels[origin]
    control.check()
    vertices = vertex_positions(surface, pixels)
    vertices *= pixel_size
    vertex_normals = None
    if normals is not None:
        vertex_normals = np.asarray(normals).reshape(-1, 3)[pixels].astype(np.float64)
        vertex_normals = complete_normals(vertex_normals, vertices, faces)
    control.check()
    colors = None
    if albedo is not None:
        colors = control.aside(partial(vertex_colors, np.asarray(albedo), surface.mask, pixels))
    control.check()
    del pixels, origin, suspect
    mesh = Mesh(vertices, faces, vertex_normals, colors, full, tolerance)
    return mesh if base is None else close_below(mesh, base)


def build_small_mesh(
    surface: Surface,
    normals: ArrayLike | None,
    albedo: ArrayLike | None = None,
    *,
    triangles: int,
    pixel_size: float = 1.0,
    base: float | None = None,
    control: Control = SILENT,
) -> Mesh:
    """Build a mesh of about ``triangles`` triangles, with quadrics unless there are very many.

    Parameters
    ----------
    surface, normals, albedo, control
        As for :func:`build_mesh`.
    triangles : int
        Target number of triangles, at least 4.
    pixel_size : float
        As for :func:`build_mesh`.
    base : float, optional
        As for :func:`build_mesh`.
    """
    triangles_at_start = max(triangles, 4)
    if triangles <= MOST_BY_QUADRICS:
        triangles_at_start *= HEAD_START
    start = build_mesh(
        surface,
        normals,
        albedo,
        pixel_size=pixel_size,
        base=base,
        triangles=triangles_at_start,
        control=control,
    )
    control.check()
    return decimate_mesh(start, triangles) if triangles <= MOST_BY_QUADRICS else start


def vertex_positions(surface: Surface, pixels: NDArray[np.int64]) -> Float64:
    """Return points (V, 3) of pixels (row · W + col), in pixels."""
    height, width = surface.mask.shape
    rows, cols = np.divmod(pixels, width)
    z = surface.depth.ravel()[pixels]
    if surface.camera is not None:
        return np.asarray(surface.camera.rays(rows, cols) * -z[:, None])
    return np.stack([cols - 0.5 * (width - 1), 0.5 * (height - 1) - rows, z], axis=1)


def geometric_normals(vertices: Float64, faces: NDArray[np.integer]) -> Float64:
    """Return area-weighted vertex normals of a mesh; (0, 0, 1) for a vertex without area."""
    # The cross product of two edges is the normal times twice the area: its sum is the weighted
    # mean.
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    total = np.zeros_like(vertices)
    for corner in range(3):
        for axis in range(3):
            total[:, axis] += np.bincount(faces[:, corner], across[:, axis], len(vertices))
    length = np.linalg.norm(total, axis=1)
    total[length == 0] = (0.0, 0.0, 1.0)
    return np.asarray(total / np.where(length > 0, length, 1.0)[:, None])


def complete_normals(normals: Float64, vertices: Float64, faces: Faces) -> Float64:
    """Return unit vertex normals (V, 3), those of the mesh where ``normals`` has none.

    Parameters
    ----------
    normals : (V, 3) array
        Zero or not finite if unknown. If none is, they are made unit in place.
    vertices, faces : arrays
        The mesh.
    """
    length = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    usable = np.isfinite(length) & (length > SHORTEST)
    if usable.all():
        normals /= length[:, None]
        return normals
    result = geometric_normals(vertices, faces)
    result[usable] = normals[usable] / length[usable, None]
    return result


def vertex_colors(
    albedo: NDArray[np.generic], inside: BoolArray, pixels: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return sRGB-encoded RGBA colors (V, 4) of pixels.

    Parameters
    ----------
    albedo : (H, W) or (H, W, 3) array
        Linear; its 99th percentile on the object becomes white.
    inside : (H, W) array
        The object.
    pixels : (V,) array
        row · W + col of every vertex.
    """
    if albedo.shape not in (inside.shape, (*inside.shape, 3)):
        raise albedo_shape(albedo, inside)
    white = white_of(albedo, inside)
    flat = np.asarray(albedo.reshape(inside.size, -1)[pixels], dtype=np.float32)
    linear = np.nan_to_num(np.maximum(flat, 0.0), posinf=0.0) / np.float32(white)
    colors = np.full((pixels.size, 4), 255, dtype=np.uint8)
    colors[:, :3] = np.rint(255.0 * srgb_from_linear(linear))
    return colors


def white_of(albedo: NDArray[np.generic], inside: BoolArray) -> float:
    """Return the albedo shown as white: its 99th percentile on the object."""
    values = albedo[inside]
    values = np.maximum(values[:: 1 + len(values) // WHITE_SAMPLE], 0.0)
    white = float(np.percentile(np.nan_to_num(values, copy=False, posinf=0.0), 99.0))
    return white if white > 0 else 1.0


def close_below(mesh: Mesh, thickness: float) -> Mesh:
    """Make a solid: the surface, a flat copy below it, and walls between their boundaries."""
    count = len(mesh.vertices)
    plate = mesh.vertices.copy()
    plate[:, 2] = plate[:, 2].min() - thickness
    one, two = boundary_edges(mesh.faces, count).T
    faces = [
        mesh.faces,
        mesh.faces[:, ::-1] + count,
        np.stack([one, one + count, two], axis=1),
        np.stack([two, one + count, two + count], axis=1),
    ]
    normals = mesh.given_normals
    if normals is not None:
        down = np.zeros_like(normals)
        down[:, 2] = -1.0
        normals = np.concatenate([normals, down])
    colors = mesh.vertex_colors
    if colors is not None:
        colors = np.concatenate([colors, colors])
    return Mesh(
        vertices=np.concatenate([mesh.vertices, plate]),
        faces=np.concatenate(faces),
        given_normals=normals,
        vertex_colors=colors,
        full_triangles=2 * mesh.full_triangles,
        tolerance=mesh.tolerance,
    )


def decimate_mesh(mesh: Mesh, triangles: int) -> Mesh:
    """Reduce a mesh to about ``triangles`` triangles by quadric edge collapse.

    Normals and colors come from the nearest vertex. A smaller mesh is returned unchanged.

    M. Garland, P. Heckbert, "Surface Simplification Using Quadric Error Metrics", SIGGRAPH 1997,
    doi:10.1145/258734.258849.
    """
    if triangles < 4:
        raise ParameterError(
            f"A mesh needs at least four triangles; {triangles} were requested.",
            code="too-few-triangles",
            triangles=triangles,
        )
    if triangles >= len(mesh.faces):
        return mesh
    try:
        from fast_simplification import simplify
    except ImportError as problem:
        raise MissingDependencyError(
            "Simplifying a mesh needs the package fast-simplification: pip install "
            "fast-simplification",
            code="no-fast-simplification",
        ) from problem
    # The library uses single precision: keep coordinates small.
    low = mesh.vertices.min(axis=0)
    high = mesh.vertices.max(axis=0)
    middle = 0.5 * (low + high)
    scale = float((high - low).max()) or 1.0
    points = (mesh.vertices - middle) / scale
    corners, faces = simplify(points, mesh.faces, target_count=triangles)
    numbers, faces = np.unique(faces, return_inverse=True)
    corners = np.asarray(corners, dtype=np.float64)[numbers]
    normals = mesh.given_normals
    colors = mesh.vertex_colors
    if normals is not None or colors is not None:
        from scipy.spatial import KDTree

        nearest = KDTree(points).query(corners)[1]
        if normals is not None:
            normals = normals[nearest]
        if colors is not None:
            colors = colors[nearest]
    return replace(
        mesh,
        vertices=corners * scale + middle,
        faces=faces.reshape(-1, 3).astype(np.int32),
        given_normals=normals,
        vertex_colors=colors,
    )


def albedo_shape(albedo: NDArray[Any], mask: BoolArray) -> ParameterError:
    """Return the error that an albedo does not fit its mask."""
    return ParameterError(
        f"The albedo has {albedo.shape} pixels, but the mask has {mask.shape}.",
        code="albedo-shape",
        albedo=albedo.shape,
        mask=mask.shape,
    )
