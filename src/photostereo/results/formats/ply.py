"""Binary PLY with a normal and a color per vertex.

PLY has no rule for axes: programs with z up show the object lying on its back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from photostereo.results.formats.format import Format, Job, describe_mesh, note_of

if TYPE_CHECKING:
    import trimesh


def encode_ply(mesh: trimesh.Trimesh, unit: str, name: str = "") -> bytes:
    """The content of the file."""
    content = bytes(mesh.export(file_type="ply", vertex_normal=True))
    head, line, body = content.partition(b"format binary_little_endian 1.0\n")
    return head + line + f"comment {note_of(unit)}\n".encode() + body


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
