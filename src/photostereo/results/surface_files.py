"""Write all files of a surface in one call: heights, meshes, and facts about them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from photostereo.core.findings import Finding
from photostereo.io.atomic import write_array
from photostereo.io.memory import give_back_memory
from photostereo.results.formats import FORMATS, MESHES, Job, check_formats
from photostereo.results.formats.format import write_content
from photostereo.results.maps import write_heights
from photostereo.surface.mesh import Mesh


class _Laps:
    """Measures the seconds of one stage after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def end(self, stage: str) -> None:
        """End a stage; the next one begins."""
        now = time.perf_counter()
        self.seconds[stage] = now - self._start
        self._start = now


def write_surface(job: Job) -> dict[str, Any]:
    """Integrate a normal map and write depth and meshes into an existing folder.

    The files are ``depth.npy`` (pixels), ``depth.png``, ``depth.tiff`` (millimeters), ``tears.npy``
    if the surface tears (a link to the right or downward neighbor is cut), ``mesh.*`` for each of
    ``job.choice.formats``, and normals and depth as EXR with ``job.choice.exr``.

    Parameters
    ----------
    job : Job
        The folder, the result, and the options. It holds the surface afterward.

    Returns
    -------
    dict
        The entry of the surface in ``summary.json``, with ``conventions`` (file name → meaning of
        its numbers) and ``seconds`` by stage.
    """
    kinds = check_formats(job.choice.formats, MESHES)
    laps = _Laps()
    surface = job.surface
    laps.end("integrate")
    job.control.stage("depth and meshes", 1 + len(kinds))
    job.control.check()
    heights = write_heights(job.folder, surface.depth, surface.mask, job.size)
    meanings: dict[str, str] = heights.pop("files")
    if surface.tears:
        write_array(job.folder / "tears.npy", surface.torn_right | surface.torn_down)
        meanings["tears.npy"] = "True where a link to the right or downward neighbor is cut."
    job.control.check()
    if job.choice.exr:
        meanings |= FORMATS["exr"].write(job)
    job.control.advance()
    give_back_memory()
    laps.end("depth")
    mesh_meanings, meshes = _write_all_meshes(job, kinds, laps)
    meanings |= mesh_meanings
    return {
        "method": surface.method,
        "status": surface.status,
        "iterations": surface.iterations,
        "residual": surface.residual,
        "parts": surface.parts,
        "tears": surface.tears,
        "unknown_normals": surface.unknown,
        "away_normals": surface.away,
        "pixel_size": job.size.millimeters,
        "unit": job.size.unit,
        "depth": heights,
        **meshes,
        "files": sorted(meanings),
        "conventions": meanings,
        "seconds": laps.seconds,
    }


def _write_all_meshes(
    job: Job, kinds: Sequence[str], laps: _Laps
) -> tuple[dict[str, str], dict[str, Any]]:
    """Write the meshes; return the meanings of the files, and the entries of the summary."""
    meanings: dict[str, str] = {}
    entry: dict[str, Any] = {"vertices": 0, "triangles": 0, "watertight": False, "textured": None}
    textured = [
        kind for kind in kinds if MESHES[kind].encode_textured and not job.choice.watertight
    ]
    plain = [kind for kind in kinds if kind not in textured]
    if textured:  # before the full mesh takes its memory
        meanings |= _write_meshes(job, textured)
        rows, cols = job.textured.albedo.shape[:2]
        entry["textured"] = {
            "vertices": len(job.textured.vertices),
            "triangles": len(job.textured.faces),
            "texture": [cols, rows],
            "files": sorted(file for kind in textured for file in MESHES[kind].files),
        }
        del job.textured
        give_back_memory()
        laps.end("textures")
    if kinds:
        mesh = job.mesh
        job.control.check()
        laps.end("mesh")
        meanings |= _write_meshes(job, plain)
        entry["vertices"] = len(mesh.vertices)
        entry["triangles"] = len(mesh.faces)
        entry["full_triangles"] = mesh.full_triangles
        entry["watertight"] = job.choice.watertight and mesh.is_watertight
        if plain and job.choice.decimate is None and mesh.tolerance > 0:
            # Most programs cannot handle that many triangles.
            note = Finding(
                "mesh-simplified",
                names=" and ".join(f"mesh.{kind}" for kind in plain),
                before=mesh.full_triangles,
                after=len(mesh.faces),
                tolerance=mesh.tolerance,
            )
            entry["note"] = str(note)
        laps.end("files")
    return meanings, entry


def _write_meshes(job: Job, kinds: Sequence[str]) -> dict[str, str]:
    meanings: dict[str, str] = {}
    for kind in kinds:
        meanings |= MESHES[kind].write(job)
        job.control.advance()
    return meanings


def write_mesh(mesh: Mesh, path: str | Path, *, unit: str = "mm") -> Path:
    """Write a mesh with its vertex colors.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    path : path
        Its suffix chooses the format: ``.ply``, ``.glb``, ``.obj`` or ``.stl``.
    unit : {"mm", "pixel"}
        Unit of the vertices, for the comment of the file; glTF treats a pixel as a millimeter.
    """
    target = Path(path)
    (kind,) = check_formats([target.suffix or target.name], MESHES)
    write_content(target, MESHES[kind].encode(mesh, unit, target.stem))
    return target
