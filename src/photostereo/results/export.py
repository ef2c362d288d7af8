"""A result in any of the formats that other programs open, into one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ParameterError, did_you_mean
from photostereo.core.units import PixelSize
from photostereo.io.atomic import write_bytes
from photostereo.io.names import folder_name
from photostereo.solver.reconstruction import Reconstruction

Content = TypeVar("Content")

#: What can be asked for, and what it is for.
KINDS = {
    "glb": "a light mesh with textures, in metres (Blender, web viewers, game engines)",
    "obj": "the same as OBJ with its material and pictures beside it, in millimetres",
    "ply": "the full mesh with normals and colors (MeshLab, CloudCompare)",
    "stl": "the full mesh for slicers",
    "tiff": "heights as 32-bit TIFF",
    "exr": "heights and normals as 32-bit EXR",
    "material": "base color, normals, height, roughness, ambient occlusion of a flat sample",
    "ptm": "a polynomial texture map (RTIViewer, archives)",
    "relight": "relight's web format (OpenLIME)",
}
_MESHES = ("glb", "obj", "ply", "stl")
_SURFACE = (*_MESHES, "tiff", "exr")


def check_kinds(kinds: Sequence[str]) -> list[str]:
    """The kinds in lower case, each once; an error that lists the known ones for any other."""
    plain = list(dict.fromkeys(kind.strip().lower().lstrip(".") for kind in kinds if kind.strip()))
    for kind in plain:
        if kind not in KINDS:
            raise ParameterError(
                f'Nothing is exported to "{kind}"; known: {", ".join(KINDS)}.' + did_you_mean(kind, KINDS)
            )
    if not plain:
        raise ParameterError(f"Say what to export to: --to with some of {', '.join(KINDS)}.")
    return plain


def export_result(
    out_dir: str | Path,
    result: Reconstruction,
    kinds: Sequence[str],
    *,
    pixel_size: PixelSize | float | str | None = None,
    name: str | None = None,
    capture: Capture | None = None,
    tileable: bool = False,
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
    result : Reconstruction
    kinds : sequence of str
        Of :data:`KINDS`.
    pixel_size : PixelSize, float, str, optional
        Width of a pixel, ``"0.1mm"``.
    name : str, optional
        What the files of a material and the PTM are called; by default after the capture.
    capture : Capture, optional
        The photographs, from which the roughness of a material is measured.
    tileable : bool
        The material wraps.
    linear : bool
        PTM and relight hold intensities instead of what the eye sees.
    flip_y : bool
        Normals as EXR in the DirectX convention; a material has both.
    surface_method, decimate
        Of the surface; see :func:`~photostereo.results.write_surface`.

    Returns
    -------
    dict
        ``files`` (relative names), ``conventions`` (of files or folders) and ``surface``, the facts about it.
    """
    wanted = check_kinds(kinds)
    size = PixelSize.of(pixel_size)
    folder = Path(out_dir)
    stem = folder_name(name or result.capture)
    files: dict[str, bytes] = {}
    said: dict[str, str] = {}
    surface: dict[str, Any] | None = None
    if "material" in wanted:
        control.stage("material")
        made, meanings = material_files(result, size, stem, capture=capture, tileable=tileable)
        files |= _under("material", made)
        said |= _under("material", meanings)
    encoding = "linear intensities" if linear else "sRGB, as viewers show it"
    if "ptm" in wanted or "relight" in wanted:
        from photostereo.results.relighting import fit_lights
        from photostereo.results.rti_files import encode_ptm, encode_relight

        control.stage("light models")
        given = (result.normals, result.albedo, result.mask)
        if "ptm" in wanted:
            files[f"{stem}.ptm"] = encode_ptm(fit_lights(*given, linear=linear))
            said[f"{stem}.ptm"] = f"PTM 1.2, LRGB, fitted to the relit result; {encoding}."
        if "relight" in wanted:
            files |= _under("relight", encode_relight(fit_lights(*given, basis="hsh", linear=linear), size))
            said["relight"] = f"relight, HSH, RGB, fitted to the relit result; {encoding}."
    _write(folder, files)
    if any(kind in _SURFACE for kind in wanted):
        from photostereo.results.surface_files import write_surface

        _, surface = write_surface(
            folder,
            result.normals,
            result.mask,
            result.albedo,
            method=surface_method,
            formats=[kind for kind in wanted if kind in _MESHES],
            pixel_size=size,
            decimate=decimate,
            normal_map=False,
            flip_y=flip_y,
            exr="exr" in wanted,
            control=control,
        )
        said |= surface.pop("conventions")
    names = sorted({*files, *(surface or {}).get("files", ())})
    return {"files": names, "conventions": said, "surface": surface}


def material_files(
    result: Reconstruction,
    size: PixelSize,
    name: str,
    *,
    capture: Capture | None = None,
    tileable: bool = False,
) -> tuple[dict[str, bytes], dict[str, str]]:
    """File name → content of the material of a flat sample, and file name → what it means."""
    from photostereo.results.material import describe_material, encode_material, make_material
    from photostereo.results.roughness import estimate_roughness

    rough = None
    if capture is not None:
        if capture.frame != result.mask.shape:
            raise ParameterError(
                f"The photographs are {capture.frame[1]} × {capture.frame[0]} pixels, the result "
                f"{result.mask.shape[1]} × {result.mask.shape[0]}: they are not of one capture."
            )
        rough = estimate_roughness(capture, result.normals)
    material = make_material(result.normals, result.albedo, result.mask, roughness=rough, tileable=tileable)
    return encode_material(material, size, name), describe_material(material, size, name)


def write_material(
    folder: Path,
    result: Reconstruction,
    size: PixelSize,
    *,
    capture: Capture | None = None,
    tileable: bool = False,
) -> dict[str, str]:
    """``material/`` inside a folder; what its files mean."""
    made, meanings = material_files(
        result, size, folder_name(result.capture), capture=capture, tileable=tileable
    )
    _write(folder, _under("material", made))
    return _under("material", meanings)


def _under(folder: str, files: Mapping[str, Content]) -> dict[str, Content]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_bytes(folder / name, content)
