"""All that a surface leaves on disk, in one call: heights, normal maps, meshes, and the facts about them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.monitor import SILENT, Monitor
from photostereo.surface.heights import write_depth_exr, write_heights, write_normal_png, write_normals_exr
from photostereo.surface.integration import Surface, integrate
from photostereo.surface.mesh import build_mesh, decimate_mesh
from photostereo.surface.mesh_files import check_format, write_mesh
from photostereo.surface.normal_map import read_normal_map as read_normal_map

#: The plate of a printable solid is this share of the larger side of the object thick.
BASE_SHARE = 0.02


def write_surface(
    out_dir: str | Path,
    normals: ArrayLike,
    mask: ArrayLike | None,
    albedo: ArrayLike | None,
    *,
    method: str = "poisson",
    formats: Sequence[str] = ("ply", "glb"),
    pixel_size: float = 1.0,
    decimate: int | None = None,
    watertight: bool = False,
    normal_map: bool = True,
    flip_y: bool = False,
    exr: bool = False,
    camera: ArrayLike | None = None,
    monitor: Monitor = SILENT,
    **options: Any,
) -> dict[str, Any]:
    """Integrate a normal map and write depth, normal map and meshes into an existing folder.

    Parameters
    ----------
    out_dir : path
        Receives ``depth.npy`` (pixels), ``depth.png``, ``depth.tiff`` (the user's units), ``tears.npy`` where
        the surface tears (a link to the right or downward neighbour is cut), ``normals.png``
        and one ``mesh.*`` per format; with ``exr`` also ``normals.exr`` and ``depth.exr``.
    normals, mask, albedo
        As for :func:`~photostereo.surface.integration` and :func:`~photostereo.surface.build_mesh`.
    method : {"poisson", "simchony", "robust"}
    formats : sequence of {"ply", "glb", "obj", "stl"}
    pixel_size : float
        Width of a pixel in the user's units.
    decimate : int, optional
        Target number of triangles.
    watertight : bool
        Close the mesh with a base plate, for printing.
    normal_map : bool
        Write ``normals.png``.
    flip_y : bool
        ``normals.png`` and ``normals.exr`` in the DirectX convention.
    monitor : Monitor
        Told of the stages, and of every iteration of ``robust``.
    **options
        Further options of :func:`~photostereo.surface.integration`.

    Returns
    -------
    dict
        Facts for ``summary.json``: ``method``, ``status``, ``iterations``, ``residual``, ``parts``,
        ``tears``, ``unknown_normals``, ``away_normals``, ``depth`` (range), ``vertices``, ``triangles``,
        ``watertight``, ``pixel_size``, ``files``, ``seconds`` by stage.
    """
    kinds = [check_format(name) for name in formats]
    folder = Path(out_dir)
    seconds: dict[str, float] = {}
    began = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds[stage] = now - began
        began = now

    surface = integrate(
        normals, mask, method=method, camera=camera, progress=_reporter(monitor, method), **options
    )
    lap("integrate")
    monitor.stage("depth and meshes", 1 + len(kinds))
    heights = write_heights(folder, surface.depth, surface.mask, unit=pixel_size)
    files = list(heights["files"])
    if surface.tears:
        np.save(folder / "tears.npy", surface.torn_right | surface.torn_down)
        files.append("tears.npy")
    given = _unit_or_zero(np.asarray(normals), surface)
    if normal_map:
        files.append(write_normal_png(folder / "normals.png", given, surface.mask, flip_y=flip_y).name)
    if exr:
        files.append(write_normals_exr(folder / "normals.exr", given, surface.mask, flip_y=flip_y).name)
        files.append(write_depth_exr(folder / "depth.exr", surface.depth, surface.mask, unit=pixel_size).name)
    monitor.advance()
    lap("depth")
    facts: dict[str, Any] = {"vertices": 0, "triangles": 0, "watertight": False}
    if kinds:
        base = BASE_SHARE * pixel_size * _larger_side(surface) if watertight else None
        mesh = build_mesh(surface, normals, albedo, pixel_size=pixel_size, base=base)
        if decimate is not None:
            mesh = decimate_mesh(mesh, decimate)
        lap("mesh")
        for kind in kinds:
            files.append(write_mesh(mesh, folder / f"mesh.{kind}").name)
            monitor.advance()
        facts = {
            "vertices": len(mesh.vertices),
            "triangles": len(mesh.faces),
            "watertight": bool(mesh.is_watertight),
        }
        lap("files")
    return {
        "method": surface.method,
        "status": surface.status,
        "iterations": surface.iterations,
        "residual": surface.residual,
        "parts": surface.parts,
        "tears": surface.tears,
        "unknown_normals": surface.unknown,
        "away_normals": surface.away,
        "pixel_size": pixel_size,
        "depth": {key: value for key, value in heights.items() if key != "files"},
        **facts,
        "files": files,
        "seconds": seconds,
    }


def _reporter(monitor: Monitor, method: str) -> Any:
    """The integrator's progress, told to a monitor."""
    if method != "robust":
        monitor.stage("integrate")
        return None
    begun = False

    def report(iteration: int, most: int, energy: float) -> None:
        nonlocal begun
        if not begun or iteration == 0:
            monitor.stage("integrate (robust)", most)
            begun = True
        else:
            monitor.advance()

    return report


def _unit_or_zero(normals: NDArray[Any], surface: Surface) -> NDArray[np.float32]:
    """Normals for a picture: unit where known, zero elsewhere."""
    n = np.nan_to_num(np.asarray(normals, dtype=np.float32), posinf=0.0, neginf=0.0)
    length = np.linalg.norm(n, axis=-1, keepdims=True)
    unit = np.where(length > 1e-6, n / np.maximum(length, 1e-6), np.float32(0))
    return np.where(surface.mask[..., None], unit, np.float32(0)).astype(np.float32)


def _larger_side(surface: Surface) -> int:
    rows, cols = np.nonzero(surface.mask)
    return int(max(np.ptp(rows), np.ptp(cols)) + 1)
