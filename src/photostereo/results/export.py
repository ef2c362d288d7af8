"""Export a result to one folder, in formats that other programs open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ParameterError
from photostereo.core.units import PixelSize
from photostereo.results.choice import SurfaceChoice
from photostereo.results.formats import FORMATS, MESHES, Job, check_formats
from photostereo.results.surface_files import write_surface
from photostereo.solver.reconstruction import Reconstruction


def export_result(
    out_dir: str | Path,
    result: Reconstruction,
    formats: Sequence[str],
    *,
    pixel_size: PixelSize | float | str | None = None,
    name: str | None = None,
    capture: Capture | None = None,
    tileable: bool = False,
    stretch: bool = False,
    texels: int | None = None,
    linear: bool = False,
    flip_y: bool = False,
    surface_method: str = "poisson",
    decimate: int | None = None,
    control: Control = SILENT,
) -> dict[str, Any]:
    """Write a result into an existing folder.

    Parameters
    ----------
    out_dir : path
        The folder.
    result : Reconstruction
        The result to export.
    formats : sequence of str
        Keys of :data:`photostereo.results.formats.FORMATS`.
    pixel_size : PixelSize, float, str, optional
        Width of a pixel, ``"0.1mm"``.
    name : str, optional
        Name of the object and its files; by default that of the capture.
    capture : Capture, optional
        The photographs, used to measure the roughness of a material.
    tileable : bool
        Make a material that tiles seamlessly.
    stretch : bool
        Scale the base color of a material to its full range; by default it keeps the measured
        albedo.
    texels : int, optional
        Side of a square material in texels; a power of two suits game engines.
    linear : bool
        Write linear intensities instead of sRGB to PTM and relight.
    flip_y : bool
        Write EXR normals in the DirectX convention; a material has both.
    surface_method : {"poisson", "robust", "simchony"}
        How heights are integrated.
    decimate : int, optional
        Target number of triangles of every mesh.
    control : Control
        Receives progress and can cancel.

    Returns
    -------
    dict
        ``files`` (relative names), ``conventions`` (of files or folders), ``surface`` (facts about
        the surface) and ``notes`` (sentences for the user).
    """
    kinds = check_formats(formats)
    if not kinds:
        raise ParameterError(
            f"No format was given. Choose from {', '.join(FORMATS)}.",
            code="no-format",
            known=list(FORMATS),
        )
    choice = SurfaceChoice(
        method=surface_method,
        formats=tuple(kind for kind in kinds if kind in MESHES),
        pixel_size=PixelSize.of(pixel_size),
        decimate=decimate,
        exr="exr" in kinds,
    )
    job = Job(
        folder=Path(out_dir),
        result=result,
        choice=choice,
        name=name or "",
        capture=capture,
        flip_y=flip_y,
        linear=linear,
        tileable=tileable,
        stretch=stretch,
        texels=texels,
        control=control,
    )
    # Those that need a surface share one, and are written together.
    meanings: dict[str, str] = {}
    surface: dict[str, Any] | None = None
    for kind in kinds:
        if not FORMATS[kind].of_surface:
            control.stage(kind)
            meanings |= FORMATS[kind].write(job)
    files = set(job.files)
    if any(FORMATS[kind].of_surface for kind in kinds):
        surface = write_surface(job)
        meanings |= surface.pop("conventions")
        files.update(surface["files"])
    return {
        "files": sorted(files),
        "conventions": meanings,
        "surface": surface,
        "notes": job.notes,
    }
