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

#: glTF codes of the targets of a buffer view: vertex attributes, indices.
ARRAY_BUFFER = 34962
ELEMENT_ARRAY_BUFFER = 34963
#: glTF codes of the component types.
COMPONENTS = {"|u1": 5121, "<u2": 5123, "<u4": 5125, "<f4": 5126}
#: glTF codes of the filters and the wrapping of a texture.
LINEAR = 9729
LINEAR_MIPMAP_LINEAR = 9987
CLAMP_TO_EDGE = 33071
#: Roughness of a mesh material: matte.
ROUGHNESS = 0.9


def encode_glb(mesh: TexturedMesh, size: PixelSize, name: str = "surface") -> bytes:
    """Encode a mesh with albedo and normals as textures, in meters.

    Parameters
    ----------
    mesh : TexturedMesh
        The mesh.
    size : PixelSize
        Width of a pixel; a pixel of unknown size is 1 mm.
    name : str
        Name of the object, its material and its pictures.
    """
    binary = _Binary()
    # The fourth number is the sign of the bitangent N × T: +1, towards decreasing v, up.
    tangents = np.pad(mesh.tangents, ((0, 0), (0, 1)), constant_values=1.0)
    attributes = {"TANGENT": tangents.astype("<f4"), "TEXCOORD_0": mesh.uv.astype("<f4")}
    primitive = binary.primitive(mesh.vertices * size.meters, mesh.normals, mesh.faces, attributes)
    images = [
        {"name": label, "mimeType": "image/png", "bufferView": binary.view(encode_png(picture))}
        for label, picture in ((f"{name}_albedo", mesh.albedo), (f"{name}_normal", mesh.normal_map))
    ]
    extras = {
        "pixel_size_in_meters": size.meters,
        "pixel_size_known": size.known,
        "normal_map": "tangent space, OpenGL (green up)",
    }
    sampler = {
        "magFilter": LINEAR,
        "minFilter": LINEAR_MIPMAP_LINEAR,
        "wrapS": CLAMP_TO_EDGE,
        "wrapT": CLAMP_TO_EDGE,
    }
    textures = {
        "images": images,
        "textures": [{"source": 0, "sampler": 0}, {"source": 1, "sampler": 0}],
        "samplers": [sampler],
    }
    material = {
        "pbrMetallicRoughness": {"baseColorTexture": {"index": 0}},
        "normalTexture": {"index": 1},
    }
    return binary.encoded(primitive, name, extras, material, textures)


def encode_colored_glb(mesh: Mesh, unit: str, name: str = "surface") -> bytes:
    """Encode a mesh in millimeters with a color per vertex, linear as glTF requires."""
    binary = _Binary()
    attributes = {}
    if mesh.vertex_colors is not None:
        colors = mesh.vertex_colors.copy()
        linear = linear_from_srgb(colors[:, :3].astype(np.float64) / 255.0)
        colors[:, :3] = np.rint(255.0 * linear)
        attributes["COLOR_0"] = colors
    vertices = mesh.vertices / 1000.0
    primitive = binary.primitive(vertices, mesh.vertex_normals, mesh.faces, attributes)
    return binary.encoded(primitive, name, {}, {"pbrMetallicRoughness": {}}, {})


class _Binary:
    """The growing buffer of a GLB file, with its views and accessors."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def view(self, content: bytes, target: int | None = None) -> int:
        """Append bytes, aligned to four; return the number of their view."""
        self.data += b"\0" * (-len(self.data) % 4)
        entry = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(content)}
        if target is not None:
            entry["target"] = target
        self.views.append(entry)
        self.data += content
        return len(self.views) - 1

    def accessor(self, values: NDArray[Any], target: int = ARRAY_BUFFER, **entries: Any) -> int:
        """Append an array, with further entries of its accessor; return its number."""
        entry = {
            "bufferView": self.view(values.tobytes(), target),
            "componentType": COMPONENTS[values.dtype.str],
            "count": len(values),
            "type": "SCALAR" if values.ndim == 1 else f"VEC{values.shape[1]}",
        }
        self.accessors.append(entry | entries)
        return len(self.accessors) - 1

    def primitive(
        self,
        vertices: NDArray[Any],
        normals: NDArray[Any],
        faces: NDArray[np.integer],
        more: Mapping[str, NDArray[Any]],
    ) -> dict[str, Any]:
        """Add triangles, and return their entry.

        Parameters
        ----------
        vertices, normals : (V, 3) arrays
            Positions in meters, and unit normals.
        faces : (F, 3) array
            Triangles.
        more : mapping of arrays
            Further vertex attributes by name; those of bytes are colors.
        """
        positions = vertices.astype("<f4")
        attributes = {
            # Bounds of the stored float32 values, as the standard requires.
            "POSITION": self.accessor(
                positions,
                min=positions.min(axis=0).tolist(),
                max=positions.max(axis=0).tolist(),
            ),
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
        extras: Mapping[str, Any],
        material: Mapping[str, Any],
        textures: Mapping[str, Any],
    ) -> bytes:
        """Return a file with one object.

        Its material is matte: the default of glTF is metal, which looks black.

        Parameters
        ----------
        primitive : mapping
            From :meth:`primitive`.
        name : str
            Name of the object and its material.
        extras : mapping
            Entries about the file that glTF does not define.
        material, textures : mappings
            Entries of the material, and of the file.
        """
        matte = {
            **material["pbrMetallicRoughness"],
            "metallicFactor": 0.0,
            "roughnessFactor": ROUGHNESS,
        }
        tree = {
            "asset": {
                "version": "2.0",
                "generator": f"photostereo {__version__}",
                "extras": {"axes": AXES, "unit": "meter", **extras},
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


FORMAT = MeshFormat(
    name="glb",
    purpose="mesh with textures, for Blender, web viewers and game engines",
    encode=encode_colored_glb,
    encode_textured=lambda mesh, size, name: {"mesh.glb": encode_glb(mesh, size, name)},
    unit="meters",
)
