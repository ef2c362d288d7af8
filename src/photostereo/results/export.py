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
        Scale the base color of a material to its full range; by default it keeps the measured albedo.
    texels : int, optional
        Side of a square material in texels; a power of two suits game engines.
    linear : bool
        Write linear intensities instead of sRGB to PTM and relight.
    flip_y : bool
        Write EXR normals in the DirectX convention; a material has both.
    surface_method, decimate : str, int
        See :class:`~photostereo.results.SurfaceChoice`.
    control : Control
        Receives progress and can cancel.

    Returns
    -------
    dict
        ``files`` (relative names), ``conventions`` (of files or folders) and ``surface`` (facts about the surface).
    """
    wanted = check_formats(formats)
    if not wanted:
        raise ParameterError(code="no-format", known=list(FORMATS), formats=", ".join(FORMATS))
    choice = SurfaceChoice(
        method=surface_method,
        formats=tuple(kind for kind in wanted if kind in MESHES),
        pixel_size=PixelSize.of(pixel_size),
        decimate=decimate,
        exr="exr" in wanted,
    )
    job = Job(
        Path(out_dir),
        result.normals,
        result.mask,
        result.albedo,
        name=name or result.capture,
        capture=capture,
        choice=choice,
        tileable=tileable,
        stretch=stretch,
        texels=texels,
        linear=linear,
        control=control,
    )
    said: dict[str, str] = {}
    surface: dict[str, Any] | None = None
    for kind in wanted:
        if not FORMATS[kind].of_surface:
            control.stage(kind)
            said |= FORMATS[kind].write(job)
    if any(FORMATS[kind].of_surface for kind in wanted):
        _, surface = write_surface(
            job.folder,
            result.normals,
            result.mask,
            result.albedo,
            choice,
            normal_map=False,
            flip_y=flip_y,
            name=job.name,
            control=control,
        )
        said |= surface.pop("conventions")
    names = sorted({*job.files, *(surface or {}).get("files", ())})
    return {"files": names, "conventions": said, "surface": surface}
