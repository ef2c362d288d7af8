"""Binary glTF (GLB) of a textured mesh: metres, y up, one file with its pictures inside.

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
from photostereo.core.units import PixelSize
from photostereo.io.json_text import json_text
from photostereo.io.png import encode_png
from photostereo.results.mesh_files import ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER
from photostereo.results.textured import TexturedMesh

FLOAT, UNSIGNED_SHORT, UNSIGNED_INT = 5126, 5123, 5125
LINEAR, LINEAR_MIPMAP_LINEAR, CLAMP_TO_EDGE = 9729, 9987, 33071


def encode_glb(
    mesh: TexturedMesh, size: PixelSize, *, name: str = "surface", roughness: float = 0.9
) -> bytes:
    """A GLB file of a textured mesh.

    Parameters
    ----------
    mesh : TexturedMesh
    size : PixelSize
        The file is in metres; a pixel of unknown size is taken for a millimetre.
    name : str
        Of the object and its material.
    roughness : float
        Of the matte material, 0 to 1.
    """
    book = _Binary()
    attributes = {
        "POSITION": book.accessor(mesh.vertices * size.metres, "VEC3", bounds=True),
        "NORMAL": book.accessor(mesh.normals, "VEC3"),
        # The fourth number says which way the bitangent N × T points: +1, towards decreasing v, up.
        "TANGENT": book.accessor(np.pad(mesh.tangents, ((0, 0), (0, 1)), constant_values=1.0), "VEC4"),
        "TEXCOORD_0": book.accessor(mesh.uv, "VEC2"),
    }
    indices = book.indices(mesh.faces, len(mesh.vertices))
    images = [
        {"name": label, "mimeType": "image/png", "bufferView": book.view(encode_png(picture))}
        for label, picture in ((f"{name}_albedo", mesh.albedo), (f"{name}_normal", mesh.normal_map))
    ]
    tree = {
        "asset": {
            "version": "2.0",
            "generator": f"photostereo {__version__}",
            "extras": {
                "axes": "x right, y up, z towards the camera",
                "unit": "metre",
                "pixel_size_in_metres": size.metres,
                "pixel_size_known": size.known,
                "normal_map": "tangent space, OpenGL (green up)",
            },
        },
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": name, "mesh": 0}],
        "meshes": [
            {
                "name": name,
                "primitives": [{"attributes": attributes, "indices": indices, "material": 0, "mode": 4}],
            }
        ],
        "materials": [
            {
                "name": name,
                "pbrMetallicRoughness": {
                    "baseColorTexture": {"index": 0},
                    "metallicFactor": 0.0,
                    "roughnessFactor": roughness,
                },
                "normalTexture": {"index": 1},
                "doubleSided": True,
            }
        ],
        "textures": [{"source": 0, "sampler": 0}, {"source": 1, "sampler": 0}],
        "samplers": [
            {
                "magFilter": LINEAR,
                "minFilter": LINEAR_MIPMAP_LINEAR,
                "wrapS": CLAMP_TO_EDGE,
                "wrapT": CLAMP_TO_EDGE,
            }
        ],
        "images": images,
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

    def accessor(self, values: NDArray[Any], kind: str, *, bounds: bool = False) -> int:
        stored = np.ascontiguousarray(values, dtype="<f4")
        entry: dict[str, Any] = {
            "bufferView": self.view(stored.tobytes(), ARRAY_BUFFER),
            "componentType": FLOAT,
            "count": len(stored),
            "type": kind,
        }
        if bounds:  # of the stored numbers, as the standard asks
            entry["min"] = [float(value) for value in stored.min(axis=0)]
            entry["max"] = [float(value) for value in stored.max(axis=0)]
        self.accessors.append(entry)
        return len(self.accessors) - 1

    def indices(self, faces: NDArray[np.int64], vertices: int) -> int:
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
