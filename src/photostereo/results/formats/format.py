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
from photostereo.core.conventions import BoolArray, Float32, row_bands
from photostereo.core.units import PixelSize
from photostereo.io.atomic import writing
from photostereo.io.names import folder_name
from photostereo.results.choice import USUAL, SurfaceChoice
from photostereo.results.textured import TRIANGLES, TexturedMesh, texture_mesh
from photostereo.solver.reconstruction import Reconstruction
from photostereo.surface.integrated import Surface
from photostereo.surface.integration import integrate
from photostereo.surface.mesh import MOST_TRIANGLES, Mesh, build_mesh, build_small_mesh

#: Content of a file, whole or in pieces.
Content = bytes | Iterable[bytes]
#: Description of the axes, for files that can hold it.
AXES = "x right, y up, z toward the camera"
#: Thickness of the base plate of a printable solid, as a share of the larger side of the object:
#: strong enough to handle, thin enough not to dominate. It only affects the look of a print.
BASE_SHARE = 0.02


@dataclass(eq=False)
class Job:
    """What to export, and where to.

    The surface and its meshes are made when a format needs them.
    """

    folder: Path  #: Existing output folder.
    result: Reconstruction  #: The result to export.
    choice: SurfaceChoice = USUAL  #: Pixel size, and options for surface and meshes.
    name: str = ""  #: Name of the object; by default that of the capture.
    integrated: Surface | None = None  #: The surface, if it has been integrated already.
    capture: Capture | None = None  #: The photographs, from which a material gets its roughness.
    flip_y: bool = False  #: Write normal maps in the DirectX convention.
    linear: bool = False  #: Write linear intensities to PTM and relight.
    tileable: bool = False  #: Make a material that tiles seamlessly.
    stretch: bool = False  #: Scale the base color of a material to its full range.
    texels: int | None = None  #: Side of a square material.
    control: Control = SILENT  #: Receives progress and can cancel.
    files: list[str] = field(default_factory=list)  #: Files written, relative to the folder.
    notes: list[str] = field(default_factory=list)  #: Sentences for the user.

    def __post_init__(self) -> None:
        self.name = self.name or self.result.capture

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
    def surface(self) -> Surface:
        """The integrated surface."""
        if self.integrated is not None:
            return self.integrated
        return integrate(
            self.result.normals,
            self.result.mask,
            method=self.choice.method,
            control=self.control,
            **self.choice.options,
        )

    @cached_property
    def unit_normals(self) -> Float32:
        """Normals (H, W, 3) that are unit where known and zero elsewhere."""
        return unit_or_zero(self.result.normals, self.surface.mask)

    @cached_property
    def mesh(self) -> Mesh:
        """The full mesh with a color per vertex.

        It is in millimeters, or in pixels if the size of a pixel is unknown.
        """
        few = self.choice.decimate
        base = None
        if self.choice.watertight:
            side = max(cv2.boundingRect(self.surface.mask.view(np.uint8))[2:])
            base = BASE_SHARE * self.size.millimeters * side
        if few is not None:
            return build_small_mesh(
                self.surface,
                self.unit_normals,
                self.result.albedo,
                pixel_size=self.size.millimeters,
                base=base,
                triangles=few,
                control=self.control,
            )
        return build_mesh(
            self.surface,
            self.unit_normals,
            self.result.albedo,
            pixel_size=self.size.millimeters,
            base=base,
            triangles=None if self.choice.full else MOST_TRIANGLES,
            control=self.control,
        )

    @cached_property
    def textured(self) -> TexturedMesh:
        """A light mesh with albedo and normals as textures, in pixels."""
        return texture_mesh(
            self.surface,
            self.unit_normals,
            self.result.albedo,
            triangles=self.choice.decimate or TRIANGLES,
            control=self.control,
        )


@dataclass(frozen=True)
class Format:
    """An export format."""

    title: str  #: Name of the format for people: ``"PTM"``.
    purpose: str  #: What it holds, and for which programs.
    #: Writes the files of a job; returns their meanings by name.
    write: Callable[[Job], Mapping[str, str]]
    of_surface: bool = False  #: Whether it needs a surface.
    files: tuple[str, ...] = ()  #: Files that it writes into a result folder.


@dataclass(frozen=True)
class MeshFormat:
    """A format of the full mesh with a color per vertex, or of the light mesh with textures."""

    name: str  #: Extension of the file.
    purpose: str  #: What it holds, and for which programs.
    #: Encodes a mesh with colors, given mesh, unit and name.
    encode: Callable[[Mesh, str, str], Content]
    #: Returns the content of ``mesh.NAME`` and of the files in ``beside``, if textures are
    #: supported.
    encode_textured: Callable[[TexturedMesh, PixelSize, str], Mapping[str, Content]] | None = None
    beside: Mapping[str, str] = field(default_factory=dict)  #: Further files, name → meaning.
    unit: str = "millimeters"
    of_surface: ClassVar = True

    @property
    def title(self) -> str:
        """Name of the format for people."""
        return self.name.upper()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that it writes into a result folder."""
        return f"mesh.{self.name}", *self.beside

    def write(self, job: Job) -> Mapping[str, str]:
        """Write the files of a job and return their meanings by name."""
        file = f"mesh.{self.name}"
        meanings = {file: describe_mesh(job.size, self.unit)}
        if self.encode_textured is None or job.choice.watertight:
            job.write(file, self.encode(job.mesh, job.size.unit, job.name))
            return meanings
        encode = partial(self.encode_textured, job.textured, job.size, job.name)
        # Compressing the pictures takes seconds: beside, so that the work can be canceled.
        for name, content in job.control.aside(encode).items():
            job.write(name, content)
        return {**meanings, **self.beside}


def write_content(path: Path, content: Content) -> None:
    """Write a file, whole or not at all."""
    with writing(path) as file:
        file.writelines([content] if isinstance(content, bytes) else content)


def describe_mesh(size: PixelSize, unit: str) -> str:
    """Describe the axes and the unit of a mesh file."""
    if not size.known:
        unit = {
            "millimeters": "pixels (the pixel size was not given)",
            "meters": "meters (1 mm per pixel)",
        }[unit]
    return f"{AXES}; lengths in {unit}."


def note_of(unit: str) -> str:
    """Return the comment for a mesh file."""
    return f"photostereo: {AXES}; unit: {unit}"


def unit_or_zero(normals: NDArray[Any], mask: BoolArray) -> Float32:
    """Return unit normals, zero where unknown or outside; the same array if they already are."""
    bands = list(row_bands(*mask.shape))
    if normals.dtype == np.float32 and all(
        _is_unit_or_zero(normals[rows], mask[rows]) for rows in bands
    ):
        return normals
    unit = np.zeros(normals.shape, dtype=np.float32)
    for rows in bands:
        n = np.nan_to_num(np.asarray(normals[rows], dtype=np.float32), posinf=0.0, neginf=0.0)
        length = np.linalg.norm(n, axis=-1, keepdims=True)
        usable = mask[rows, :, None] & (length > 1e-6)
        np.divide(n, length, out=unit[rows], where=usable)
    return unit


def _is_unit_or_zero(normals: NDArray[Any], mask: BoolArray) -> bool:
    squared = np.einsum("ijk,ijk->ij", normals, normals)
    return bool(np.all((squared == 0) | (mask & (np.abs(squared - 1) < 1e-6))))
