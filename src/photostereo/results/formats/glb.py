"""Binary glTF (GLB): meters, y up, one file with its pictures inside.

References
----------
Khronos Group, "glTF 2.0 Specification", 2021 (ISO/IEC 12113:2022),
https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.core.conventions import linear_from_srgb
from photostereo.core.units import PixelSize
from photostereo.io.json_text import json_text
from photostereo.io.png import encode_png
from photostereo.results.formats.format import AXES, MeshFormat
from photostereo.results.textured import TexturedMesh
from photostereo.surface.mesh import Mesh

ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
#: glTF codes of the component types.
COMPONENTS = {"|u1": 5121, "<u2": 5123, "<u4": 5125, "<f4": 5126}
LINEAR, LINEAR_MIPMAP_LINEAR, CLAMP_TO_EDGE = 9729, 9987, 33071
#: Roughness of a mesh material: matte.
ROUGHNESS = 0.9


def encode_glb(mesh: TexturedMesh, size: PixelSize, name: str = "surface") -> bytes:
    """Encode a mesh with albedo and normals as textures, in meters; a pixel of unknown size is 1 mm."""
    book = _Binary()
    # The fourth number is the sign of the bitangent N × T: +1, towards decreasing v, up.
    tangents = np.pad(mesh.tangents, ((0, 0), (0, 1)), constant_values=1.0)
    more = {"TANGENT": tangents.astype("<f4"), "TEXCOORD_0": mesh.uv.astype("<f4")}
    primitive = book.primitive(mesh.vertices * size.meters, mesh.normals, mesh.faces, more)
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
    return book.encoded(primitive, name, facts, material, textures)


def encode_colored_glb(mesh: Mesh, unit: str, name: str = "surface") -> bytes:
    """Encode a mesh in millimeters with a color per vertex, linear as glTF requires."""
    book, more = _Binary(), {}
    if mesh.vertex_colors is not None:
        more["COLOR_0"] = mesh.vertex_colors.copy()
        linear = linear_from_srgb(more["COLOR_0"][:, :3].astype(np.float64) / 255.0)
        more["COLOR_0"][:, :3] = np.rint(255.0 * linear)
    primitive = book.primitive(mesh.vertices / 1000.0, mesh.vertex_normals, mesh.faces, more)
    return book.encoded(primitive, name, {}, {"pbrMetallicRoughness": {}}, {})


class _Binary:
    """The growing buffer of a GLB file, with its views and accessors."""

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

    def accessor(self, values: NDArray[Any], target: int = ARRAY_BUFFER, **facts: Any) -> int:
        entry = {
            "bufferView": self.view(values.tobytes(), target),
            "componentType": COMPONENTS[values.dtype.str],
            "count": len(values),
            "type": "SCALAR" if values.ndim == 1 else f"VEC{values.shape[1]}",
        }
        self.accessors.append({**entry, **facts})
        return len(self.accessors) - 1

    def primitive(
        self,
        vertices: NDArray[Any],
        normals: NDArray[Any],
        faces: NDArray[np.integer],
        more: Mapping[str, NDArray[Any]],
    ) -> dict[str, Any]:
        """Add triangles with vertex attributes; byte attributes are colors."""
        stored = vertices.astype("<f4")
        # Bounds of the stored float32 values, as the standard requires.
        bounds = {"min": stored.min(axis=0).tolist(), "max": stored.max(axis=0).tolist()}
        attributes = {
            "POSITION": self.accessor(stored, **bounds),
            "NORMAL": self.accessor(normals.astype("<f4")),
        }
        for name, values in more.items():
            colors = {"normalized": True} if values.dtype == np.uint8 else {}
            attributes[name] = self.accessor(values, **colors)
        numbers = faces.ravel().astype("<u2" if len(vertices) < 65535 else "<u4")
        indices = self.accessor(numbers, ELEMENT_ARRAY_BUFFER)
        return {"attributes": attributes, "indices": indices, "material": 0, "mode": 4}

    def encoded(
        self,
        primitive: Mapping[str, Any],
        name: str,
        facts: Mapping[str, Any],
        material: Mapping[str, Any],
        textures: Mapping[str, Any],
    ) -> bytes:
        """Return a file with one object. Its material is matte: the default of glTF is metal, which looks black."""
        matte = {
            **material["pbrMetallicRoughness"],
            "metallicFactor": 0.0,
            "roughnessFactor": ROUGHNESS,
        }
        extras = {"axes": AXES, "unit": "metre", **facts}
        tree = {
            "asset": {
                "version": "2.0",
                "generator": f"photostereo {__version__}",
                "extras": extras,
            },
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [{"name": name, "mesh": 0}],
            "meshes": [{"name": name, "primitives": [primitive]}],
            "materials": [
                {**material, "name": name, "pbrMetallicRoughness": matte, "doubleSided": True}
            ],
            **textures,
            "accessors": self.accessors,
            "bufferViews": self.views,
            "buffers": [{"byteLength": len(self.data)}],
        }
        # Two chunks, each padded to four bytes.
        text = json_text(tree, indent=None).encode("utf-8", "backslashreplace")
        text += b" " * (-len(text) % 4)
        binary = bytes(self.data) + b"\0" * (-len(self.data) % 4)
        head = struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(text) + 8 + len(binary))
        chunks = struct.pack("<I4s", len(text), b"JSON"), struct.pack("<I4s", len(binary), b"BIN\0")
        return b"".join([head, chunks[0], text, chunks[1], binary])


FORMAT = MeshFormat(
    "glb",
    encode_colored_glb,
    lambda mesh, size, name: {"mesh.glb": encode_glb(mesh, size, name)},
    unit="meters",
)
