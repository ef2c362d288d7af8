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
    """Yield the content of the file in pieces: a mesh of two million triangles takes 50 MB."""
    names = ["float x", "float y", "float z", "float nx", "float ny", "float nz"]
    fields: list[tuple[str, str, int]] = [("at", "<f4", 3), ("normal", "<f4", 3)]
    values: list[NDArray[Any]] = [mesh.vertices, mesh.vertex_normals]
    if mesh.vertex_colors is not None:
        names += ["uchar red", "uchar green", "uchar blue", "uchar alpha"]
        fields, values = [*fields, ("color", "u1", 4)], [*values, mesh.vertex_colors]
    faces = mesh.faces
    head = ["ply", "format binary_little_endian 1.0", f"comment {note_of(unit)}"]
    head += [f"element vertex {len(values[0])}", *(f"property {name}" for name in names)]
    head += [
        f"element face {len(faces)}",
        "property list uchar int vertex_indices",
        "end_header",
        "",
    ]
    yield "\n".join(head).encode()
    for first in range(0, len(values[0]), AT_ONCE):
        vertices = np.empty(min(AT_ONCE, len(values[0]) - first), fields)
        for (name, _, _), value in zip(fields, values, strict=True):
            vertices[name] = value[first : first + AT_ONCE]
        yield vertices.tobytes()
    for first in range(0, len(faces), AT_ONCE):
        corners = faces[first : first + AT_ONCE]
        triangles = np.full(len(corners), 3, [("count", "u1"), ("corners", "<i4", 3)])
        triangles["corners"] = corners
        yield triangles.tobytes()


FORMAT = MeshFormat("ply", ply_pieces)
