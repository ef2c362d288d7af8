"""From normals to a surface: integration, meshes and their files.

The integrator is imported at once (it needs NumPy only, until it is called, and its function has the name
of its module); the others when they are first used, because meshes and pictures bring heavy libraries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from photostereo.surface.integrate import Surface, integrate

if TYPE_CHECKING:
    from photostereo.surface.export import write_surface as write_surface
    from photostereo.surface.mesh import build_mesh as build_mesh
    from photostereo.surface.mesh_files import write_mesh as write_mesh
    from photostereo.surface.normal_map import read_normal_map as read_normal_map
    from photostereo.surface.recompute import normals_from_depth as normals_from_depth

_HOME = {
    "build_mesh": "mesh",
    "normals_from_depth": "recompute",
    "read_normal_map": "normal_map",
    "write_mesh": "mesh_files",
    "write_surface": "export",
}

__all__ = ["Surface", "integrate", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
