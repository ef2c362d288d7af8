"""Wavefront OBJ of a textured mesh, with its material and pictures in files beside it."""

from __future__ import annotations

import io

import numpy as np

from photostereo.core.units import PixelSize
from photostereo.io.png import encode_png
from photostereo.results.textured import TexturedMesh

#: What lies beside ``mesh.obj``, and what it means.
TEXTURES = {
    "mesh.mtl": "The material of mesh.obj: which picture is its color, which its normals.",
    "mesh_albedo.png": "Albedo, sRGB; its 99th percentile is white.",
    "mesh_normal.png": "Normals in tangent space, OpenGL (green up).",
}


def encode_obj(mesh: TexturedMesh, size: PixelSize, *, stem: str = "mesh") -> dict[str, bytes]:
    """File name → content: ``STEM.obj``, ``STEM.mtl``, ``STEM_albedo.png``, ``STEM_normal.png``.

    Lengths are in millimetres (pixels, where the size of one is not known); y is up, z towards the camera.
    Texture coordinates run from the bottom left, as OBJ has them.
    """
    albedo, normal = f"{stem}_albedo.png", f"{stem}_normal.png"
    text = io.StringIO()
    text.write("# photostereo: x right, y up, z towards the camera; lengths in ")
    text.write("millimetres\n" if size.known else "pixels\n")
    text.write(f"mtllib {stem}.mtl\no {stem}\n")
    np.savetxt(text, mesh.vertices * size.millimetres, fmt="v %.9g %.9g %.9g")
    np.savetxt(text, np.stack([mesh.uv[:, 0], 1.0 - mesh.uv[:, 1]], axis=1), fmt="vt %.7f %.7f")
    np.savetxt(text, mesh.normals, fmt="vn %.6f %.6f %.6f")
    text.write("usemtl surface\ns 1\n")
    np.savetxt(text, np.repeat(mesh.faces + 1, 3, axis=1), fmt="f %d/%d/%d %d/%d/%d %d/%d/%d")
    material = (
        "# photostereo: the normal map is in tangent space, OpenGL convention (green up)\n"
        "newmtl surface\nKa 0 0 0\nKd 1 1 1\nKs 0 0 0\nillum 1\nPr 0.9\nPm 0\n"
        f"map_Kd {albedo}\nmap_Bump -bm 1 {normal}\nnorm {normal}\n"
    )
    return {
        f"{stem}.obj": text.getvalue().encode(),
        f"{stem}.mtl": material.encode(),
        albedo: encode_png(mesh.albedo, comment=TEXTURES["mesh_albedo.png"]),
        normal: encode_png(mesh.normal_map, comment=TEXTURES["mesh_normal.png"]),
    }
