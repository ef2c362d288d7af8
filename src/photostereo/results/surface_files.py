"""Write all files of a surface in one call: heights, normal maps, meshes, and facts about them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, row_bands
from photostereo.core.findings import Finding
from photostereo.io.atomic import write_array
from photostereo.io.memory import give_back_memory
from photostereo.results.choice import USUAL, SurfaceChoice
from photostereo.results.formats import FORMATS, MESHES, Job, check_formats
from photostereo.results.formats.format import write_content
from photostereo.results.maps import describe_normals, write_heights, write_normal_png
from photostereo.surface.integrated import Surface
from photostereo.surface.integration import integrate
from photostereo.surface.mesh import Mesh


def write_surface(
    out_dir: str | Path,
    normals: ArrayLike,
    mask: ArrayLike | None,
    albedo: ArrayLike | None,
    choice: SurfaceChoice = USUAL,
    *,
    normal_map: bool = True,
    flip_y: bool = False,
    name: str = "surface",
    camera: ArrayLike | None = None,
    surface: Surface | None = None,
    control: Control = SILENT,
) -> tuple[Surface, dict[str, Any]]:
    """Integrate a normal map and write depth, normal map and meshes into an existing folder.

    Parameters
    ----------
    out_dir : path
        Receives ``depth.npy`` (pixels), ``depth.png``, ``depth.tiff`` (millimeters), ``tears.npy`` if
        the surface tears (a link to the right or downward neighbor is cut), ``normals.png``
        and one ``mesh.*`` per format.
    normals, mask, albedo : arrays
        As for :func:`~photostereo.integrate` and :func:`~photostereo.surface.build_mesh`.
    choice : SurfaceChoice
        Method, formats, scale and size of the meshes.
    normal_map : bool
        Write ``normals.png``.
    flip_y : bool
        Write ``normals.png`` and ``normals.exr`` in the DirectX convention.
    camera : (3, 3) array, optional
        As for :func:`~photostereo.integrate`.
    surface : Surface, optional
        The surface, if it has been integrated already.
    name : str
        Name of the object in GLB and OBJ.
    control : Control
        Receives the stages, and every iteration of ``robust``.

    Returns
    -------
    Surface
        The surface that was written.
    dict
        Its entry in ``summary.json``, with ``conventions`` (file name → meaning of its numbers) and ``seconds`` by stage.
    """
    kinds, size, watertight = (
        check_formats(choice.formats, MESHES),
        choice.pixel_size,
        choice.watertight,
    )
    seconds: dict[str, float] = {}
    began = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds[stage] = now - began
        began = now

    if surface is None:
        options = {"camera": camera, **choice.options}
        surface = integrate(normals, mask, method=choice.method, control=control, **options)
    lap("integrate")
    control.stage("depth and meshes", 1 + len(kinds))
    job = Job(
        folder=Path(out_dir),
        normals=_unit_or_zero(np.asarray(normals), surface),
        mask=surface.mask,
        albedo=None if albedo is None else np.asarray(albedo),
        name=name,
        surface=surface,
        choice=choice,
        flip_y=flip_y,
        control=control,
    )
    control.check()
    heights = write_heights(job.folder, surface.depth, surface.mask, size)
    said: dict[str, str] = dict(heights["files"])
    if surface.tears:
        write_array(job.folder / "tears.npy", surface.torn_right | surface.torn_down)
        said["tears.npy"] = "True where a link to the right or downward neighbor is cut."
    control.check()
    if normal_map:
        write_normal_png(
            job.folder / "normals.png", job.normals, job.mask, flip_y=flip_y, size=size
        )
        said["normals.png"] = describe_normals(flip_y, signed=False)
    if choice.exr:
        said |= FORMATS["exr"].write(job)
    control.advance()
    give_back_memory()
    lap("depth")
    facts: dict[str, Any] = {"vertices": 0, "triangles": 0, "watertight": False, "textured": None}
    light = [kind for kind in kinds if MESHES[kind].encode_textured and not watertight]
    plain = [kind for kind in kinds if kind not in light]
    if light:  # before the full mesh takes its memory
        said |= _write_meshes(job, light)
        facts["textured"] = {
            "vertices": len(job.textured.vertices),
            "triangles": len(job.textured.faces),
            "texture": [job.textured.albedo.shape[1], job.textured.albedo.shape[0]],
            "files": sorted(file for kind in light for file in FORMATS[kind].files),
        }
        del job.textured
        give_back_memory()
        lap("textures")
    if kinds:
        mesh = job.mesh
        control.check()
        lap("mesh")
        said |= _write_meshes(job, plain)
        facts |= {
            "vertices": len(mesh.vertices),
            "triangles": len(mesh.faces),
            "full_triangles": mesh.full_triangles,
            "watertight": watertight and mesh.is_watertight,
        }
        if plain and choice.decimate is None and mesh.tolerance > 0:
            facts["note"] = Finding(  # most programs cannot handle that many triangles
                "mesh-simplified",
                names=" and ".join(f"mesh.{kind}" for kind in plain),
                before=mesh.full_triangles,
                after=len(mesh.faces),
                tolerance=mesh.tolerance,
            )
        lap("files")
    return surface, {
        "method": surface.method,
        "status": surface.status,
        "iterations": surface.iterations,
        "residual": surface.residual,
        "parts": surface.parts,
        "tears": surface.tears,
        "unknown_normals": surface.unknown,
        "away_normals": surface.away,
        "pixel_size": size.millimeters,
        "unit": size.unit,
        "depth": {key: value for key, value in heights.items() if key != "files"},
        **facts,
        "files": sorted(said),
        "conventions": said,
        "seconds": seconds,
    }


def write_mesh(mesh: Mesh, path: str | Path, *, unit: str = "mm") -> Path:
    """Write a mesh with its vertex colors; the suffix of the path chooses the format.

    The comment of the file gives the ``unit``, ``"mm"`` or ``"pixel"``; glTF then treats a pixel as a millimeter.
    """
    target = Path(path)
    (kind,) = check_formats([target.suffix or target.name], MESHES)
    write_content(target, MESHES[kind].encode(mesh, unit, target.stem))
    return target


def _write_meshes(job: Job, kinds: Sequence[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    for kind in kinds:
        said |= FORMATS[kind].write(job)
        job.control.advance()
    return said


def _unit_or_zero(normals: NDArray[Any], surface: Surface) -> Float32:
    """Return normals that are unit where known and zero elsewhere; the same array if they already are."""
    parts = row_bands(*surface.mask.shape)
    if normals.dtype == np.float32 and all(
        _is_unit_or_zero(normals[r], surface.mask[r]) for r in parts
    ):
        return normals
    unit = np.zeros(normals.shape, dtype=np.float32)
    for rows in row_bands(*surface.mask.shape):
        n = np.nan_to_num(np.asarray(normals[rows], dtype=np.float32), posinf=0.0, neginf=0.0)
        length = np.linalg.norm(n, axis=-1, keepdims=True)
        known = surface.mask[rows, :, None] & (length > 1e-6)
        np.divide(n, length, out=unit[rows], where=known)
    return unit


def _is_unit_or_zero(normals: NDArray[Any], mask: BoolArray) -> bool:
    squared = np.einsum("ijk,ijk->ij", normals, normals)
    return bool(np.all((squared == 0) | (mask & (np.abs(squared - 1) < 1e-6))))
