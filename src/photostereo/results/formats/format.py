"""The definition of an export format, and its input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.core.units import PixelSize
from photostereo.io.atomic import writing
from photostereo.io.names import folder_name
from photostereo.results.choice import USUAL, SurfaceChoice
from photostereo.results.textured import TRIANGLES, TexturedMesh, texture_mesh
from photostereo.surface.integrated import Surface
from photostereo.surface.mesh import MOST_TRIANGLES, Mesh, build_mesh, build_small_mesh

#: Content of a file, whole or in pieces.
Content = bytes | Iterable[bytes]
#: Description of the axes, for files that can hold it.
AXES = "x right, y up, z towards the camera"
#: Thickness of the base plate of a printable solid, as a share of the larger side of the object: strong enough to
#: handle, thin enough not to dominate. It only affects the look of a print.
BASE_SHARE = 0.02


@dataclass(eq=False)
class Job:
    """Input of an export. Meshes are built when a format first needs them."""

    folder: Path  #: Existing output folder.
    #: normals, mask, albedo: maps of the result; unit normals, zero if unknown.
    normals: NDArray[np.float32]
    mask: BoolArray
    albedo: NDArray[Any] | None
    size: PixelSize
    name: str = "surface"  #: Name of the object.
    surface: Surface | None = None  #: For formats that need one.
    capture: Capture | None = None
    choice: SurfaceChoice = USUAL  #: Options for meshes.
    flip_y: bool = False
    linear: bool = False
    tileable: bool = False
    stretch: bool = False
    texels: int | None = None
    control: Control = SILENT
    files: list[str] = field(default_factory=list)  #: Files written, relative to the folder.

    @property
    def stem(self) -> str:
        """Name of the object as a file name."""
        return folder_name(self.name)

    def write(self, name: str, content: Content) -> None:
        """Write one of the files."""
        (self.folder / name).parent.mkdir(exist_ok=True)
        write_content(self.folder / name, content)
        self.files.append(name)

    @cached_property
    def mesh(self) -> Mesh:
        """The full mesh with a color per vertex, in millimeters (in pixels if the pixel size is unknown)."""
        assert self.surface is not None
        side = max(cv2.boundingRect(self.surface.mask.view(np.uint8))[2:])
        base = BASE_SHARE * self.size.millimeters * side if self.choice.watertight else None
        shape: dict[str, Any] = {"pixel_size": self.size.millimeters, "base": base, "control": self.control}
        if (few := self.choice.decimate) is not None:
            return build_small_mesh(self.surface, self.normals, self.albedo, triangles=few, **shape)
        most = None if self.choice.full else MOST_TRIANGLES
        return build_mesh(self.surface, self.normals, self.albedo, triangles=most, **shape)

    @cached_property
    def textured(self) -> TexturedMesh:
        """A light mesh with albedo and normals as textures, in pixels."""
        assert self.surface is not None
        triangles = self.choice.decimate or TRIANGLES
        return texture_mesh(
            self.surface, self.normals, self.albedo, triangles=triangles, control=self.control
        )


@dataclass(frozen=True)
class Format:
    """An export format."""

    name: str  #: Name in commands.
    purpose: str  #: Short description for help texts.
    #: Writes the files of a :class:`Job`; returns their meanings by name.
    write: Callable[[Job], Mapping[str, str]]
    of_surface: bool = False  #: Whether it needs a surface.
    files: tuple[str, ...] = ()  #: Files that it writes into a result folder.
    #: Whether it uses the light mesh with textures (unless the mesh must be watertight).
    textured: bool = False
    #: Mesh formats only: encodes a mesh with colors, given mesh, unit and name.
    encode: Callable[[Mesh, str, str], Content] | None = None


def mesh_format(
    name: str,
    purpose: str,
    encode: Callable[[Mesh, str, str], Content],
    encode_textured: Callable[[TexturedMesh, PixelSize, str], Mapping[str, Content]] | None = None,
    beside: Mapping[str, str] = MappingProxyType({}),
    unit: str = "millimeters",
) -> Format:
    """Define a mesh format: the full mesh with a color per vertex or, if supported, the light mesh with textures.

    ``encode_textured`` returns the content of ``mesh.NAME`` and of the files in ``beside`` (name → meaning).
    """
    file = f"mesh.{name}"

    def write(job: Job) -> Mapping[str, str]:
        means = {file: describe_mesh(job.size, unit)}
        if encode_textured is None or job.choice.watertight:
            job.write(file, encode(job.mesh, job.size.unit, job.name))
            return means
        made = job.control.aside(partial(encode_textured, job.textured, job.size, job.name))
        for each, content in made.items():
            job.write(each, content)
        return {**means, **beside}

    textured = encode_textured is not None
    return Format(name, purpose, write, True, (file, *beside), textured=textured, encode=encode)


def write_content(path: Path, content: Content) -> None:
    with writing(path) as file:
        file.writelines([content] if isinstance(content, bytes) else content)


def describe_mesh(size: PixelSize, unit: str = "millimeters") -> str:
    """Describe the axes and the unit of a mesh file."""
    if not size.known:
        unit = (
            "pixels (the pixel size was not given)" if unit == "millimeters" else f"{unit} (1 mm per pixel)"
        )
    return f"{AXES}; lengths in {unit}."


def note_of(unit: str) -> str:
    """Return the comment for a mesh file."""
    return f"photostereo: {AXES}; unit: {unit}"
