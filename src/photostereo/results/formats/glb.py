"""Binary glTF (GLB): meters, y up, one file with its pictures inside.

References
----------
Khronos Group, "glTF 2.0 Specification", 2021 (ISO/IEC 12113:2022),
https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.core.conventions import linear_from_srgb
from photostereo.core.units import PixelSize
from photostereo.io.json_text import json_text
from photostereo.io.png import encode_png
from photostereo.results.formats.format import AXES, Format, Job, describe_mesh
from photostereo.results.textured import TexturedMesh

if TYPE_CHECKING:
    from photostereo.surface.mesh import Mesh

ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
UNSIGNED_BYTE, UNSIGNED_SHORT, UNSIGNED_INT, FLOAT = 5121, 5123, 5125, 5126
LINEAR, LINEAR_MIPMAP_LINEAR, CLAMP_TO_EDGE = 9729, 9987, 33071
#: Of the material of a mesh: matte.
ROUGHNESS = 0.9


def encode_glb(mesh: TexturedMesh, size: PixelSize, *, name: str = "surface") -> bytes:
    """A mesh with albedo and normals as textures, in meters; a pixel of unknown size is taken for a millimeter."""
    book = _Binary()
    attributes = {
        "POSITION": book.accessor(mesh.vertices * size.meters, bounds=True),
        "NORMAL": book.accessor(mesh.normals),
        # The fourth number says which way the bitangent N × T points: +1, towards decreasing v, up.
        "TANGENT": book.accessor(np.pad(mesh.tangents, ((0, 0), (0, 1)), constant_values=1.0)),
        "TEXCOORD_0": book.accessor(mesh.uv),
    }
    indices = book.indices(mesh.faces, len(mesh.vertices))
    images = [
        {"name": label, "mimeType": "image/png", "bufferView": book.view(encode_png(picture))}
        for label, picture in ((f"{name}_albedo", mesh.albedo), (f"{name}_normal", mesh.normal_map))
    ]
    facts = {
        "pixel_size_in_metres": size.meters,
        "pixel_size_known": size.known,
        "normal_map": "tangent space, OpenGL (green up)",
    }
    sampler = {"magFilter": LINEAR, "minFilter": LINEAR_MIPMAP_LINEAR}
    textures = {
        "images": images,
        "textures": [{"source": 0, "sampler": 0}, {"source": 1, "sampler": 0}],
        "samplers": [{**sampler, "wrapS": CLAMP_TO_EDGE, "wrapT": CLAMP_TO_EDGE}],
    }
    material = {
        "pbrMetallicRoughness": {"baseColorTexture": {"index": 0}},
        "normalTexture": {"index": 1},
    }
    return _document(book, attributes, indices, name, facts, material, textures)


def encode_colored_glb(mesh: Mesh, unit: str, name: str = "surface") -> bytes:
    """A mesh in millimeters with a color per vertex, linear as glTF wants it."""
    book = _Binary()
    attributes = {
        "POSITION": book.accessor(mesh.vertices / 1000.0, bounds=True),
        "NORMAL": book.accessor(mesh.vertex_normals),
    }
    if mesh.vertex_colors is not None:
        colors = mesh.vertex_colors.copy()
        linear = linear_from_srgb(colors[:, :3].astype(np.float64) / 255.0)
        colors[:, :3] = np.rint(255.0 * linear)
        attributes["COLOR_0"] = book.accessor(colors)
    indices = book.indices(mesh.faces, len(mesh.vertices))
    return _document(book, attributes, indices, name, {}, {"pbrMetallicRoughness": {}}, {})


def _document(
    book: _Binary,
    attributes: Mapping[str, int],
    indices: int,
    name: str,
    facts: Mapping[str, Any],
    material: Mapping[str, Any],
    textures: Mapping[str, Any],
) -> bytes:
    """A file with one object. Its material is matte: without one glTF means polished metal, which looks black."""
    matte = {**material["pbrMetallicRoughness"], "metallicFactor": 0.0, "roughnessFactor": ROUGHNESS}
    primitive = {"attributes": dict(attributes), "indices": indices, "material": 0, "mode": 4}
    tree = {
        "asset": {
            "version": "2.0",
            "generator": f"photostereo {__version__}",
            "extras": {"axes": AXES, "unit": "metre", **facts},
        },
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": name, "mesh": 0}],
        "meshes": [{"name": name, "primitives": [primitive]}],
        "materials": [{**material, "name": name, "pbrMetallicRoughness": matte, "doubleSided": True}],
        **textures,
        "accessors": book.accessors,
        "bufferViews": book.views,
        "buffers": [{"byteLength": len(book.data)}],
    }
    return pack_glb(tree, bytes(book.data))


def pack_glb(tree: Mapping[str, Any], binary: bytes) -> bytes:
    """The two chunks of a GLB container, each padded to four bytes."""
    text = json_text(tree, indent=None).encode("utf-8", "backslashreplace")
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    total = 12 + 8 + len(text) + 8 + len(binary)
    return b"".join(
        [
            struct.pack("<4sII", b"glTF", 2, total),
            struct.pack("<I4s", len(text), b"JSON"),
            text,
            struct.pack("<I4s", len(binary), b"BIN\0"),
            binary,
        ]
    )


class _Binary:
    """The buffer of a GLB file as it grows, with the list of what lies where."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def view(self, content: bytes, target: int | None = None) -> int:
        self.data += b"\0" * (-len(self.data) % 4)
        entry = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(content)}
        self.views.append(entry if target is None else {**entry, "target": target})
        self.data += content
        return len(self.views) - 1

    def accessor(self, values: NDArray[Any], *, bounds: bool = False) -> int:
        """Attributes of the vertices: vectors of numbers, or colors of bytes."""
        bytewise = values.dtype == np.uint8
        stored = np.ascontiguousarray(values, dtype="u1" if bytewise else "<f4")
        entry: dict[str, Any] = {
            "bufferView": self.view(stored.tobytes(), ARRAY_BUFFER),
            "componentType": UNSIGNED_BYTE if bytewise else FLOAT,
            "count": len(stored),
            "type": f"VEC{stored.shape[1]}",
        }
        if bytewise:
            entry["normalized"] = True
        if bounds:  # of the stored numbers, as the standard asks
            entry["min"] = [float(value) for value in stored.min(axis=0)]
            entry["max"] = [float(value) for value in stored.max(axis=0)]
        self.accessors.append(entry)
        return len(self.accessors) - 1

    def indices(self, faces: NDArray[np.integer], vertices: int) -> int:
        short = vertices < 65535
        stored = np.ascontiguousarray(faces.ravel(), dtype="<u2" if short else "<u4")
        self.accessors.append(
            {
                "bufferView": self.view(stored.tobytes(), ELEMENT_ARRAY_BUFFER),
                "componentType": UNSIGNED_SHORT if short else UNSIGNED_INT,
                "count": stored.size,
                "type": "SCALAR",
            }
        )
        return len(self.accessors) - 1


def _write(job: Job) -> dict[str, str]:
    if job.choice.watertight:
        content = encode_colored_glb(job.mesh, job.size.unit, job.name)
    else:
        mesh = job.textured
        content = job.control.aside(lambda: encode_glb(mesh, job.size, name=job.name))
    job.write("mesh.glb", content)
    return {"mesh.glb": describe_mesh(job.size, "meters")}


FORMAT = Format(
    "glb",
    "a light mesh with textures, in meters (Blender, web viewers, game engines)",
    _write,
    of_surface=True,
    files=("mesh.glb",),
    textured=True,
    encode=encode_colored_glb,
)
