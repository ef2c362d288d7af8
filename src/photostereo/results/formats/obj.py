"""Wavefront OBJ; a textured mesh has its material and pictures in files beside it.

Lengths are in millimeters (in pixels if the pixel size is unknown); y is up, z toward the camera.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.units import PixelSize
from photostereo.io.names import folder_name
from photostereo.io.png import encode_png
from photostereo.results.formats.format import MeshFormat, note_of
from photostereo.results.textured import TexturedMesh
from photostereo.surface.mesh import Mesh

#: Files beside ``mesh.obj``, and their meanings.
TEXTURES = {
    "mesh.mtl": "Material of mesh.obj: refers to the pictures of color and normals.",
    "mesh_albedo.png": "Albedo, sRGB; its 99th percentile is white.",
    "mesh_normal.png": "Normals in tangent space, OpenGL (green up).",
}


def encode_obj(mesh: TexturedMesh, size: PixelSize, name: str = "surface") -> dict[str, bytes]:
    """Return ``mesh.obj``, its material and its pictures, name → content.

    Parameters
    ----------
    mesh : TexturedMesh
        The mesh; its texture coordinates, from the top left, are written from the bottom left.
    size : PixelSize
        Width of a pixel.
    name : str
        Name of the object and its material.
    """
    label = folder_name(name)
    text = _head(size.unit, label, "mtllib mesh.mtl\n")
    np.savetxt(text, mesh.vertices * size.millimeters, fmt="v %.9g %.9g %.9g")
    np.savetxt(text, np.stack([mesh.uv[:, 0], 1.0 - mesh.uv[:, 1]], axis=1), fmt="vt %.7f %.7f")
    np.savetxt(text, mesh.normals, fmt="vn %.6f %.6f %.6f")
    text.write(f"usemtl {label}\ns 1\n")
    _faces(text, mesh.faces, "%d/%d/%d", 3)
    material = (
        "# photostereo: the normal map is in tangent space, OpenGL convention (green up)\n"
        f"newmtl {label}\nKa 0 0 0\nKd 1 1 1\nKs 0 0 0\nillum 1\nPr 0.9\nPm 0\n"
        "map_Kd mesh_albedo.png\nmap_Bump -bm 1 mesh_normal.png\nnorm mesh_normal.png\n"
    )
    return {
        "mesh.obj": text.getvalue().encode(),
        "mesh.mtl": material.encode(),
        "mesh_albedo.png": encode_png(mesh.albedo, comment=TEXTURES["mesh_albedo.png"]),
        "mesh_normal.png": encode_png(mesh.normal_map, comment=TEXTURES["mesh_normal.png"]),
    }


def encode_colored_obj(mesh: Mesh, unit: str, name: str = "surface") -> bytes:
    """Encode a mesh with a color per vertex, in sRGB as most readers expect."""
    text = _head(unit, folder_name(name))
    columns: list[NDArray[Any]] = [mesh.vertices]
    if mesh.vertex_colors is not None:
        columns.append(mesh.vertex_colors[:, :3] / 255.0)
    form = "v" + " %.9g" * 3 + " %.6f" * (3 * len(columns) - 3)
    np.savetxt(text, np.concatenate(columns, axis=1), fmt=form)
    np.savetxt(text, mesh.vertex_normals, fmt="vn %.9g %.9g %.9g")
    _faces(text, mesh.faces, "%d//%d", 2)
    return text.getvalue().encode()


def _head(unit: str, label: str, library: str = "") -> io.StringIO:
    """Return the first lines of a file."""
    text = io.StringIO()
    text.write(f"# {note_of(unit)}\n{library}o {label}\n")
    return text


def _faces(text: io.StringIO, faces: NDArray[Any], corner: str, times: int) -> None:
    """Write triangles; ``corner`` has the number of a vertex ``times`` times."""
    np.savetxt(text, np.repeat(faces + 1, times, axis=1), fmt=f"f {corner} {corner} {corner}")


FORMAT = MeshFormat(
    name="obj",
    purpose="mesh with textures, for Blender and older programs",
    encode=encode_colored_obj,
    encode_textured=encode_obj,
    beside=TEXTURES,
)
