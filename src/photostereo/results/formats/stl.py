"""Binary STL: geometry only, for slicers."""

import numpy as np

from photostereo.results.formats.format import MeshFormat, note_of
from photostereo.surface.mesh import Mesh

#: Bytes of the free text at the head of a binary STL.
HEAD = 80


def encode_stl(mesh: Mesh, unit: str, name: str = "") -> bytes:
    """Encode a mesh as a list of triangles with their normals; STL has no place for a name."""
    corners = mesh.vertices[mesh.faces].astype(np.float32)  # (F, 3, 3)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    triangles = np.zeros(
        len(corners), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("free", "<u2")]
    )
    triangles["normal"] = normals / np.where(length > 0, length, 1.0)
    triangles["corners"] = corners
    head = note_of(unit).encode().ljust(HEAD)[:HEAD]
    return head + np.uint32(len(corners)).tobytes() + triangles.tobytes()


FORMAT = MeshFormat("stl", "full mesh, for slicers", encode_stl)
