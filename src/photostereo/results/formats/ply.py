"""Binary PLY with a normal and a color per vertex.

PLY has no rule for axes: programs with z up show the object lying on its back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from photostereo.results.formats.format import Format, Job, describe_mesh, note_of

if TYPE_CHECKING:
    import trimesh


def encode_ply(mesh: trimesh.Trimesh, unit: str, name: str = "") -> bytes:
    """The content of the file."""
    columns = [("x y z", "<f4", "float", mesh.vertices), ("nx ny nz", "<f4", "float", mesh.vertex_normals)]
    if mesh.visual.kind == "vertex":
        columns.append(("red green blue alpha", "u1", "uchar", mesh.visual.vertex_colors))
    head = [
        "ply",
        "format binary_little_endian 1.0",
        f"comment {note_of(unit)}",
        f"element vertex {len(mesh.vertices)}",
    ]
    head += [f"property {kind} {axis}" for axes, _, kind, _ in columns for axis in axes.split()]
    head += [f"element face {len(mesh.faces)}", "property list uchar int vertex_indices", "end_header", ""]
    vertices = np.empty(
        len(mesh.vertices), dtype=[(axes, code, len(axes.split())) for axes, code, _, _ in columns]
    )
    for axes, _, _, values in columns:
        vertices[axes] = values
    faces = np.empty(len(mesh.faces), dtype=[("count", "u1"), ("corners", "<i4", 3)])
    faces["count"], faces["corners"] = 3, mesh.faces
    return b"".join(["\n".join(head).encode(), vertices.tobytes(), faces.tobytes()])


def _write(job: Job) -> dict[str, str]:
    job.write("mesh.ply", encode_ply(job.mesh, job.size.unit))
    return {"mesh.ply": describe_mesh(job.size)}


FORMAT = Format(
    "ply",
    "the full mesh with normals and colors (MeshLab, CloudCompare)",
    _write,
    of_surface=True,
    files=("mesh.ply",),
    encode=encode_ply,
)
