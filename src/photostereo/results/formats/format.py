"""The definition of an export format, and its input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32
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
AXES = "x right, y up, z toward the camera"
#: Thickness of the base plate of a printable solid, as a share of the larger side of the object: strong enough to
#: handle, thin enough not to dominate. It only affects the look of a print.
BASE_SHARE = 0.02


@dataclass(eq=False)
class Job:
    """Input of an export. Meshes are built when a format first needs them."""

    folder: Path  #: Existing output folder.
    #: normals, mask, albedo: maps of the result; unit normals, zero if unknown.
    normals: Float32
    mask: BoolArray
    albedo: NDArray[Any] | None
    name: str = "surface"  #: Name of the object.
    surface: Surface | None = None  #: For formats that need one.
    capture: Capture | None = None
    choice: SurfaceChoice = USUAL  #: Pixel size, and options for meshes.
    flip_y: bool = False
    linear: bool = False
    tileable: bool = False
    stretch: bool = False
    texels: int | None = None
    control: Control = SILENT
    files: list[str] = field(default_factory=list)  #: Files written, relative to the folder.

    @property
    def size(self) -> PixelSize:
        """Width of a pixel."""
        return self.choice.pixel_size

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
        shape: dict[str, Any] = {
            "pixel_size": self.size.millimeters,
            "base": base,
            "control": self.control,
        }
        if (few := self.choice.decimate) is not None:
            return build_small_mesh(self.surface, self.normals, self.albedo, triangles=few, **shape)
        most = None if self.choice.full else MOST_TRIANGLES
        return build_mesh(self.surface, self.normals, self.albedo, triangles=most, **shape)

    @cached_property
    def textured(self) -> TexturedMesh:
        """A light mesh with albedo and normals as textures, in pixels."""
        assert self.surface is not None
        how: Any = {"triangles": self.choice.decimate or TRIANGLES, "control": self.control}
        return texture_mesh(self.surface, self.normals, self.albedo, **how)


@dataclass(frozen=True)
class Format:
    """An export format; ``write`` writes the files of a job and returns their meanings by name."""

    write: Callable[[Job], Mapping[str, str]]
    of_surface: bool = False  #: Whether it needs a surface.
    files: tuple[str, ...] = ()  #: Files that it writes into a result folder.


@dataclass(frozen=True)
class MeshFormat:
    """A format of the full mesh with a color per vertex or, if supported, of the light mesh with textures."""

    name: str
    encode: Callable[
        [Mesh, str, str], Content
    ]  #: Encodes a mesh with colors, given mesh, unit and name.
    #: Returns the content of ``mesh.NAME`` and of the files in ``beside`` (name → meaning).
    encode_textured: Callable[[TexturedMesh, PixelSize, str], Mapping[str, Content]] | None = None
    beside: Mapping[str, str] = field(default_factory=dict)
    unit: str = "millimeters"
    of_surface: ClassVar = True

    @property
    def files(self) -> tuple[str, ...]:
        """Files that it writes into a result folder."""
        return f"mesh.{self.name}", *self.beside

    def write(self, job: Job) -> Mapping[str, str]:
        """Write the files of a job and return their meanings by name."""
        means = {self.files[0]: describe_mesh(job.size, self.unit)}
        if self.encode_textured is None or job.choice.watertight:
            job.write(self.files[0], self.encode(job.mesh, job.size.unit, job.name))
            return means
        made = job.control.aside(partial(self.encode_textured, job.textured, job.size, job.name))
        for each, content in made.items():
            job.write(each, content)
        return {**means, **self.beside}


def write_content(path: Path, content: Content) -> None:
    with writing(path) as file:
        file.writelines([content] if isinstance(content, bytes) else content)


def describe_mesh(size: PixelSize, unit: str) -> str:
    """Describe the axes and the unit of a mesh file."""
    unknown = {
        "millimeters": "pixels (the pixel size was not given)",
        "meters": "meters (1 mm per pixel)",
    }
    return f"{AXES}; lengths in {unit if size.known else unknown[unit]}."


def note_of(unit: str) -> str:
    """Return the comment for a mesh file."""
    return f"photostereo: {AXES}; unit: {unit}"
