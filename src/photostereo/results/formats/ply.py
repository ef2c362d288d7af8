"""Binary PLY with a normal and a color per vertex.

PLY does not define axes: programs with z up show the object lying on its back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.results.formats.format import MeshFormat, note_of
from photostereo.surface.mesh import Mesh

#: Vertices or triangles encoded at a time.
AT_ONCE = 100_000


def ply_pieces(mesh: Mesh, unit: str, name: str = "") -> Iterator[bytes]:
    """Yield the content of the file in pieces: a mesh of two million triangles takes 50 MB.

    PLY has no place for a name.
    """
    properties = ["float x", "float y", "float z", "float nx", "float ny", "float nz"]
    fields: list[tuple[str, str, int]] = [("at", "<f4", 3), ("normal", "<f4", 3)]
    attributes: dict[str, NDArray[Any]] = {"at": mesh.vertices, "normal": mesh.vertex_normals}
    if mesh.vertex_colors is not None:
        properties += ["uchar red", "uchar green", "uchar blue", "uchar alpha"]
        fields.append(("color", "u1", 4))
        attributes["color"] = mesh.vertex_colors
    count = len(mesh.vertices)
    head = [
        "ply",
        "format binary_little_endian 1.0",
        f"comment {note_of(unit)}",
        f"element vertex {count}",
        *(f"property {name}" for name in properties),
        f"element face {len(mesh.faces)}",
        "property list uchar int vertex_indices",
        "end_header",
        "",
    ]
    yield "\n".join(head).encode()
    for first in range(0, count, AT_ONCE):
        vertices = np.empty(min(AT_ONCE, count - first), fields)
        for name, values in attributes.items():
            vertices[name] = values[first : first + AT_ONCE]
        yield vertices.tobytes()
    for first in range(0, len(mesh.faces), AT_ONCE):
        corners = mesh.faces[first : first + AT_ONCE]
        triangles = np.full(len(corners), 3, [("count", "u1"), ("corners", "<i4", 3)])
        triangles["corners"] = corners
        yield triangles.tobytes()


FORMAT = MeshFormat("ply", "full mesh, for MeshLab and CloudCompare", ply_pieces)
