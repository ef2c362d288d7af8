"""Options for depth and meshes, and the names of the export formats.

Settings and help texts hold them, so this module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from photostereo.core.units import PixelSize

#: Each is a module in :mod:`photostereo.results.formats`. To add a format, write the module and
#: list it here.
FORMAT_NAMES = (
    "glb",
    "obj",
    "ply",
    "stl",
    "tiff",
    "exr",
    "material",
    "ptm",
    "relight",
    "slope",
    "gradient",
    "curvature",
    "contrast",
)

#: Least side of a material in texels: enough to show a pattern.
LEAST_TEXELS = 32
#: Largest side of a material in texels: a limit of graphics cards.
MOST_TEXELS = 8192


@dataclass(frozen=True)
class SurfaceChoice:
    """Options for depth and meshes."""

    method: str = "poisson"  #: or ``"robust"``, ``"simchony"``
    #: Mesh formats: ``"ply"``, ``"glb"``, ``"obj"``, ``"stl"``. PLY and STL hold every pixel, up to
    #: two million triangles; beyond that they are adapted to the surface. GLB and OBJ hold a light
    #: mesh with albedo and normals as textures; a watertight solid has colors instead.
    formats: tuple[str, ...] = ("ply", "glb")
    #: Width of a pixel, ``"0.1mm"``; a plain number is in millimeters. Without it, lengths are in
    #: pixels.
    pixel_size: PixelSize = field(default_factory=PixelSize)
    #: Target number of triangles of every mesh; by default 50,000 for GLB and OBJ, all for PLY and
    #: STL.
    decimate: int | None = None
    full: bool = False  #: PLY and STL with every pixel, whatever the number of triangles.
    watertight: bool = False  #: Close the mesh with a base plate, for printing.
    exr: bool = False  #: Also write ``normals.exr`` and ``depth.exr``.
    #: Further options of :func:`photostereo.integrate`.
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pixel_size", PixelSize.of(self.pixel_size))


#: Poisson, PLY and GLB, in pixels.
USUAL = SurfaceChoice()
