"""All that a surface leaves on disk, in one call: heights, normal maps, meshes, and the facts about them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import row_bands
from photostereo.core.units import PixelSize
from photostereo.io.atomic import write_array, write_bytes
from photostereo.results.maps import (
    describe_heights,
    describe_normals,
    write_heights,
    write_heights_exr,
    write_normal_png,
    write_normals_exr,
)
from photostereo.results.mesh_files import AXES, check_format, write_mesh
from photostereo.results.wavefront import TEXTURES
from photostereo.surface.integrated import Surface
from photostereo.surface.integration import integrate
from photostereo.surface.mesh import MOST_TRIANGLES, build_mesh, build_small_mesh

if TYPE_CHECKING:
    import trimesh

#: The plate of a printable solid is this share of the larger side of the object thick.
BASE_SHARE = 0.02

#: Formats with room for textures.
TEXTURED = ("glb", "obj")


def write_surface(
    out_dir: str | Path,
    normals: ArrayLike,
    mask: ArrayLike | None,
    albedo: ArrayLike | None,
    *,
    method: str = "poisson",
    formats: Sequence[str] = ("ply", "glb"),
    pixel_size: PixelSize | float | str | None = None,
    decimate: int | None = None,
    full: bool = False,
    watertight: bool = False,
    normal_map: bool = True,
    flip_y: bool = False,
    exr: bool = False,
    camera: ArrayLike | None = None,
    surface: Surface | None = None,
    control: Control = SILENT,
    **options: Any,
) -> tuple[Surface, dict[str, Any]]:
    """Integrate a normal map and write depth, normal map and meshes into an existing folder.

    Parameters
    ----------
    out_dir : path
        Receives ``depth.npy`` (pixels), ``depth.png``, ``depth.tiff`` (millimetres), ``tears.npy`` where
        the surface tears (a link to the right or downward neighbor is cut), ``normals.png``
        and one ``mesh.*`` per format; with ``exr`` also ``normals.exr`` and ``depth.exr``.
    normals, mask, albedo
        As for :func:`~photostereo.integrate` and :func:`~photostereo.surface.build_mesh`.
    method : {"poisson", "simchony", "robust"}
    formats : sequence of {"ply", "glb", "obj", "stl"}
        PLY and STL hold every pixel, up to two million triangles; beyond that they are adapted to the
        surface. GLB and OBJ hold a light mesh with albedo and normals as textures
        (:func:`~photostereo.results.textured.texture_mesh`); a watertight solid has colors instead.
    pixel_size : PixelSize, float, str, optional
        Width of a pixel, ``"0.1mm"``; a number alone is in millimetres. Without one lengths are in pixels.
    full : bool
        PLY and STL with every pixel, however many triangles that makes.
    decimate : int, optional
        Target number of triangles of every mesh; by default GLB and OBJ have 50,000, PLY and STL all.
    watertight : bool
        Close the mesh with a base plate, for printing.
    normal_map : bool
        Write ``normals.png``.
    flip_y : bool
        ``normals.png`` and ``normals.exr`` in the DirectX convention.
    surface : Surface, optional
        The surface, if it has been integrated already.
    control : Control
        Told of the stages, and of every iteration of ``robust``.
    **options
        Further options of :func:`~photostereo.integrate`.

    Returns
    -------
    Surface
        As it was written.
    dict
        Facts for ``summary.json``: ``method``, ``status``, ``iterations``, ``residual``, ``parts``,
        ``tears``, ``unknown_normals``, ``away_normals``, ``depth`` (range), ``vertices``, ``triangles``,
        ``full_triangles`` (before simplification), ``note`` (if the mesh was simplified), ``watertight``, ``textured``
        (of the light mesh), ``pixel_size``, ``unit``, ``files``, ``conventions``
        (file name → what its numbers mean), ``seconds`` by stage.
    """
    kinds = [check_format(name) for name in formats]
    size = PixelSize.of(pixel_size)
    folder = Path(out_dir)
    seconds: dict[str, float] = {}
    began = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds[stage] = now - began
        began = now

    if surface is None:
        surface = integrate(normals, mask, method=method, camera=camera, control=control, **options)
    lap("integrate")
    control.stage("depth and meshes", 1 + len(kinds))
    heights = write_heights(folder, surface.depth, surface.mask, size)
    said: dict[str, str] = dict(heights["files"])
    if surface.tears:
        write_array(folder / "tears.npy", surface.torn_right | surface.torn_down)
        said["tears.npy"] = "True where a link to the right or downward neighbor is cut."
    given = _unit_or_zero(np.asarray(normals), surface)
    if normal_map:
        path = write_normal_png(folder / "normals.png", given, surface.mask, flip_y=flip_y, size=size)
        said[path.name] = describe_normals(flip_y, signed=False)
    if exr:
        path = write_normals_exr(folder / "normals.exr", given, surface.mask, flip_y=flip_y, size=size)
        said[path.name] = describe_normals(flip_y, signed=True)
        path = write_heights_exr(folder / "depth.exr", surface.depth, surface.mask, size)
        said[path.name] = describe_heights(size, "NaN")
    control.advance()
    lap("depth")
    facts: dict[str, Any] = {"vertices": 0, "triangles": 0, "watertight": False, "textured": None}
    if kinds:
        base = BASE_SHARE * size.millimetres * _larger_side(surface) if watertight else None
        shape: dict[str, Any] = {"pixel_size": size.millimetres, "base": base, "control": control}
        plain = [kind for kind in kinds if watertight or kind not in TEXTURED]
        if decimate is not None:
            mesh = build_small_mesh(surface, normals, albedo, triangles=decimate, **shape)
        else:
            mesh = build_mesh(surface, normals, albedo, triangles=None if full else MOST_TRIANGLES, **shape)
        lap("mesh")
        for kind in plain:
            write_mesh(mesh, folder / f"mesh.{kind}", unit=size.unit)
            said[f"mesh.{kind}"] = describe_mesh(kind, size)
            control.advance()
        facts |= {
            "vertices": len(mesh.vertices),
            "triangles": len(mesh.faces),
            "full_triangles": mesh.metadata["full_triangles"],
            "watertight": watertight and bool(mesh.is_watertight),
        }
        if plain and decimate is None and mesh.metadata["tolerance"] > 0:
            facts["note"] = _simplified(plain, mesh)
        lap("files")
        light = [kind for kind in kinds if kind not in plain]
        if light:
            facts["textured"] = _write_light(folder, light, surface, given, albedo, decimate, size, control)
            said |= {f"mesh.{kind}": describe_mesh(kind, size) for kind in light}
            said |= TEXTURES if "obj" in light else {}
            for _ in light:
                control.advance()
            lap("textures")
    return surface, {
        "method": surface.method,
        "status": surface.status,
        "iterations": surface.iterations,
        "residual": surface.residual,
        "parts": surface.parts,
        "tears": surface.tears,
        "unknown_normals": surface.unknown,
        "away_normals": surface.away,
        "pixel_size": size.millimetres,
        "unit": size.unit,
        "depth": {key: value for key, value in heights.items() if key != "files"},
        **facts,
        "files": sorted(said),
        "conventions": said,
        "seconds": seconds,
    }


def describe_mesh(kind: str, size: PixelSize) -> str:
    """What the numbers of a mesh file mean."""
    if kind == "glb":
        unit = "metres" if size.known else "metres (the size of a pixel was not given: one is taken for 1 mm)"
    else:
        unit = "millimetres" if size.known else "pixels (the size of one was not given)"
    return f"{AXES}; lengths in {unit}."


def _simplified(kinds: Sequence[str], mesh: trimesh.Trimesh) -> str:
    """What was done to a mesh that would have too many triangles for most programs."""
    names = " and ".join(f"mesh.{kind}" for kind in kinds)
    return (
        f"{names} simplified from {mesh.metadata['full_triangles']:,} to {len(mesh.faces):,} triangles, "
        f"within {mesh.metadata['tolerance']:.2g} pixels of the full surface."
    )


def _write_light(
    folder: Path,
    kinds: Sequence[str],
    surface: Surface,
    normals: NDArray[np.float32],
    albedo: ArrayLike | None,
    decimate: int | None,
    size: PixelSize,
    control: Control,
) -> dict[str, Any]:
    """``mesh.glb`` and ``mesh.obj`` with textures; the facts about them."""
    from photostereo.results.gltf import encode_glb
    from photostereo.results.textured import TRIANGLES, texture_mesh
    from photostereo.results.wavefront import encode_obj

    mesh = texture_mesh(surface, normals, albedo, triangles=decimate or TRIANGLES, control=control)
    files: dict[str, bytes] = {}
    if "glb" in kinds:
        files["mesh.glb"] = encode_glb(mesh, size)
    if "obj" in kinds:
        files |= encode_obj(mesh, size)
    for name, content in files.items():
        write_bytes(folder / name, content)
    return {
        "vertices": len(mesh.vertices),
        "triangles": len(mesh.faces),
        "texture": [mesh.albedo.shape[1], mesh.albedo.shape[0]],
        "files": sorted(files),
    }


def _unit_or_zero(normals: NDArray[Any], surface: Surface) -> NDArray[np.float32]:
    """Normals for a picture: unit where known, zero elsewhere."""
    unit = np.zeros(normals.shape, dtype=np.float32)
    for rows in row_bands(*surface.mask.shape):
        n = np.nan_to_num(np.asarray(normals[rows], dtype=np.float32), posinf=0.0, neginf=0.0)
        length = np.linalg.norm(n, axis=-1, keepdims=True)
        known = surface.mask[rows, :, None] & (length > 1e-6)
        np.divide(n, length, out=unit[rows], where=known)
    return unit


def _larger_side(surface: Surface) -> int:
    rows, cols = np.nonzero(surface.mask)
    return int(max(np.ptp(rows), np.ptp(cols)) + 1)
