"""Binary STL: geometry only, for slicers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from photostereo.results.formats.format import Format, Job, describe_mesh, note_of

if TYPE_CHECKING:
    import trimesh

#: Bytes of the free text at the head of a binary STL.
HEAD = 80


def encode_stl(mesh: trimesh.Trimesh, unit: str, name: str = "") -> bytes:
    """The content of the file."""
    return note_of(unit).encode().ljust(HEAD)[:HEAD] + bytes(mesh.export(file_type="stl"))[HEAD:]


def _write(job: Job) -> dict[str, str]:
    job.write("mesh.stl", encode_stl(job.mesh, job.size.unit))
    return {"mesh.stl": describe_mesh(job.size)}


FORMAT = Format(
    "stl", "the full mesh for slicers", _write, of_surface=True, files=("mesh.stl",), encode=encode_stl
)
