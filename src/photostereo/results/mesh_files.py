"""Meshes to files through trimesh: PLY, OBJ, STL and GLB, with a color per vertex.

Meshes are in millimetres (pixels, where the size of one is not known); glTF knows metres only, so a GLB is
scaled. x is right, y up, z towards the camera, which is also how glTF and OBJ have it. PLY and STL have no
rule, and programs with z up show them lying on their back, as a printer wants them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.core.conventions import linear_from_srgb
from photostereo.core.errors import ParameterError, did_you_mean
from photostereo.io.atomic import write_bytes

if TYPE_CHECKING:
    import trimesh

#: What each format keeps besides the geometry.
FORMATS = {
    "ply": "normals, colors (sRGB)",
    "glb": "normals, colors (linear, as glTF wants them)",
    "obj": "normals, colors (sRGB, as most readers expect)",
    "stl": "geometry only",
}

#: What a glTF buffer view holds: vertex data, or indices.
ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963

#: A sentence about the axes, for files with room for it.
AXES = "x right, y up, z towards the camera"

#: Bytes of the free text at the head of a binary STL.
STL_HEAD = 80


def check_format(name: str) -> str:
    """The format in lower case without a dot, or an error that lists the known ones."""
    plain = name.lower().strip().lstrip(".")
    if plain not in FORMATS:
        raise ParameterError(
            f'Unknown mesh format "{name}"; known: {", ".join(FORMATS)}.' + did_you_mean(plain, FORMATS)
        )
    return plain


def write_mesh(mesh: trimesh.Trimesh, path: str | Path, *, unit: str = "mm") -> Path:
    """Write a mesh with its vertex colors; the format is the suffix of the path.

    Parameters
    ----------
    mesh : trimesh.Trimesh
        In millimetres, or in pixels, of which glTF takes one for a millimetre.
    path : path
    unit : {"mm", "pixel"}
        What the comment in the file says.

    Raises
    ------
    ParameterError
        If the suffix is not a known format.
    OutputError
        If the file cannot be written.
    """
    target = Path(path)
    kind = check_format(target.suffix or target.name)
    note = f"photostereo: {AXES}; unit: {unit}"
    data: Any
    if kind == "ply":
        data = _ply(mesh, note)
    elif kind == "obj":
        data = f"# {note}\n" + mesh.export(
            file_type="obj", include_normals=True, include_color=True, digits=9
        )
    elif kind == "stl":
        data = note.encode().ljust(STL_HEAD)[:STL_HEAD] + mesh.export(file_type="stl")[STL_HEAD:]
    else:
        data = _glb(mesh)
    write_bytes(target, data.encode("utf-8") if isinstance(data, str) else data)
    return target


def _ply(mesh: trimesh.Trimesh, note: str) -> bytes:
    """Binary PLY with a normal and a color per vertex."""
    columns = [("x y z", "<f4", "float", mesh.vertices), ("nx ny nz", "<f4", "float", mesh.vertex_normals)]
    if mesh.visual.kind == "vertex":
        columns.append(("red green blue alpha", "u1", "uchar", mesh.visual.vertex_colors))
    head = [
        "ply",
        "format binary_little_endian 1.0",
        f"comment {note}",
        f"element vertex {len(mesh.vertices)}",
    ]
    head += [f"property {kind} {name}" for names, _, kind, _ in columns for name in names.split()]
    head += [f"element face {len(mesh.faces)}", "property list uchar int vertex_indices", "end_header", ""]
    fields = [(names, code, len(names.split())) for names, code, _, _ in columns]
    vertices = np.empty(len(mesh.vertices), dtype=fields)
    for names, _, _, values in columns:
        vertices[names] = values
    faces = np.empty(len(mesh.faces), dtype=[("count", "u1"), ("corners", "<i4", 3)])
    faces["count"], faces["corners"] = 3, mesh.faces
    return b"".join(["\n".join(head).encode(), vertices.tobytes(), faces.tobytes()])


def _glb(mesh: trimesh.Trimesh) -> bytes:
    """Binary glTF in metres with linear vertex colors and a matte, two-sided material.

    Without a material glTF means polished metal, which most viewers draw black.
    """
    import trimesh

    colors = None
    if mesh.visual.kind == "vertex":
        colors = np.array(mesh.visual.vertex_colors)
        linear = linear_from_srgb(colors[:, :3].astype(np.float64) / 255.0)
        colors[:, :3] = np.rint(255.0 * linear)
    # Not mesh.copy(), which would forget the normals of the map.
    copy = trimesh.Trimesh(
        np.asarray(mesh.vertices) / 1000.0,
        mesh.faces,
        vertex_normals=mesh.vertex_normals,
        vertex_colors=colors,
        process=False,
    )

    def complete(tree: dict[str, Any]) -> None:
        tree["asset"]["extras"] = {"axes": AXES, "unit": "metre"}
        tree["materials"] = [
            {
                "name": "matte",
                "pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 0.9},
                "doubleSided": True,
            }
        ]
        for entry in tree["meshes"]:
            for primitive in entry["primitives"]:
                primitive["material"] = 0
                uses = [(index, ARRAY_BUFFER) for index in primitive["attributes"].values()]
                for accessor, target in [*uses, (primitive["indices"], ELEMENT_ARRAY_BUFFER)]:
                    view = tree["accessors"][accessor]["bufferView"]
                    tree["bufferViews"][view]["target"] = target

    data = copy.export(file_type="glb", include_normals=True, tree_postprocessor=complete)
    return bytes(data)
