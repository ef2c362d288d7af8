"""What an export format is, and what it is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.io.atomic import writing
from photostereo.io.names import folder_name
from photostereo.results.choice import USUAL, SurfaceChoice
from photostereo.results.textured import TRIANGLES, TexturedMesh, texture_mesh
from photostereo.surface.integrated import Surface
from photostereo.surface.mesh import MOST_TRIANGLES, Mesh, build_mesh, build_small_mesh

#: A file, at once or piece by piece.
Content = bytes | Iterable[bytes]
#: A sentence about the axes, for files with room for it.
AXES = "x right, y up, z towards the camera"
#: The plate of a printable solid is this share of the larger side of the object thick: strong enough to handle, thin
#: enough not to dominate. Only the look of a print depends on it.
BASE_SHARE = 0.02


@dataclass(eq=False)
class Job:
    """A result on its way into files. Meshes are built when a format first asks for them."""

    folder: Path  #: Where the files go; it exists.
    #: normals, mask, albedo: Unit normals, zero if unknown.
    normals: NDArray[np.float32]
    mask: NDArray[np.bool_]
    albedo: NDArray[Any] | None
    size: PixelSize
    name: str = "surface"  #: What the object is called.
    surface: Surface | None = None  #: Given to formats that show one.
    capture: Capture | None = None
    choice: SurfaceChoice = USUAL  #: How meshes are made.
    flip_y: bool = False
    linear: bool = False
    tileable: bool = False
    stretch: bool = False
    texels: int | None = None
    control: Control = SILENT
    files: list[str] = field(default_factory=list)  #: What was written, relative to the folder.

    @property
    def stem(self) -> str:
        """The name of the object as a file name."""
        return folder_name(self.name)

    def write(self, name: str, content: Content) -> None:
        """Write one of the files."""
        (self.folder / name).parent.mkdir(exist_ok=True)
        write_content(self.folder / name, content)
        self.files.append(name)

    @cached_property
    def mesh(self) -> Mesh:
        """The full mesh with a color per vertex, in millimeters (pixels, if their size is not known)."""
        assert self.surface is not None
        side = max(np.ptp(np.flatnonzero(self.surface.mask.any(axis=axis))) for axis in (0, 1)) + 1
        base = BASE_SHARE * self.size.millimeters * int(side) if self.choice.watertight else None
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
    """One format."""

    name: str  #: As people ask for it.
    purpose: str  #: What it is for, in a few words.
    #: Writes the files of a :class:`Job`; returns what each of them means, by name.
    write: Callable[[Job], Mapping[str, str]]
    of_surface: bool = False  #: Whether it needs a surface.
    files: tuple[str, ...] = ()  #: The files that it leaves in the folder of a solve.
    #: Whether it shows the light mesh with textures, unless that has to be watertight.
    textured: bool = False
    #: Of a mesh format: mesh, unit and name to the file of a mesh with colors.
    encode: Callable[[Mesh, str, str], Content] | None = None


def mesh_format(
    name: str,
    purpose: str,
    encode: Callable[[Mesh, str, str], Content],
    encode_textured: Callable[[TexturedMesh, PixelSize, str], Mapping[str, Content]] | None = None,
    beside: Mapping[str, str] = MappingProxyType({}),
    unit: str = "millimeters",
) -> Format:
    """A format of meshes: the full one with a color per vertex or, if it can, the light one with textures.

    ``encode_textured`` gives the content of ``mesh.NAME`` and of the files ``beside`` it, whose meanings are given.
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
    """What the numbers of a mesh file mean."""
    if not size.known:
        unit = (
            "pixels (the size of one was not given)"
            if unit == "millimeters"
            else f"{unit} (1 mm for a pixel)"
        )
    return f"{AXES}; lengths in {unit}."


def note_of(unit: str) -> str:
    """The comment in a mesh file."""
    return f"photostereo: {AXES}; unit: {unit}"
