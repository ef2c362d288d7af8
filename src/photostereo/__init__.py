"""photostereo: robust photometric stereo.

From photographs of one object under known lights to its normals, albedo, depth and mesh::

    import photostereo as ps

    capture = ps.load("pmsData/catPNG")
    result = ps.solve(capture, method="pdlnv")
    error = ps.angular_error(result.normals, capture.truth, capture.mask)

The public names are imported when they are first used, so that ``photostereo --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from photostereo._version import __version__

# Threads that wait spin by default for milliseconds before they sleep, on cores that others need. The compiled
# kernels meet at a barrier once per atom: on a machine that is busy with anything else GNU OpenMP's spinning
# makes a pass a hundred times slower. OpenBLAS's threads spin for 2^26 cycles after every matrix product and
# take half of the next kernel's cores. A short spin costs next to nothing on an idle machine. Both must be set
# before their libraries are loaded; the user's own settings win.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "100")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")

if TYPE_CHECKING:
    from photostereo.capture import Capture as Capture
    from photostereo.errors import CaptureError as CaptureError
    from photostereo.errors import ConvergenceWarning as ConvergenceWarning
    from photostereo.errors import OutputError as OutputError
    from photostereo.errors import ParameterError as ParameterError
    from photostereo.errors import PhotostereoError as PhotostereoError
    from photostereo.io import load as load
    from photostereo.methods import find_method as find_method
    from photostereo.methods import method_names as method_names
    from photostereo.metrics import angular_error as angular_error
    from photostereo.metrics import summarise_error as summarise_error
    from photostereo.monitor import Monitor as Monitor
    from photostereo.noise import add_gaussian as add_gaussian
    from photostereo.noise import add_poisson as add_poisson
    from photostereo.noise import add_salt_and_pepper as add_salt_and_pepper
    from photostereo.reconstruction import Reconstruction as Reconstruction
    from photostereo.scenes import render_scene as render_scene
    from photostereo.scenes import scene_names as scene_names
    from photostereo.solve import SolveState as SolveState
    from photostereo.solve import solve as solve
    from photostereo.surface import integrate as integrate

_HOMES = {
    "Capture": "capture",
    "CaptureError": "errors",
    "ConvergenceWarning": "errors",
    "Monitor": "monitor",
    "OutputError": "errors",
    "ParameterError": "errors",
    "PhotostereoError": "errors",
    "Reconstruction": "reconstruction",
    "SolveState": "solve",
    "add_gaussian": "noise",
    "add_poisson": "noise",
    "add_salt_and_pepper": "noise",
    "angular_error": "metrics",
    "find_method": "methods",
    "integrate": "surface",
    "load": "io",
    "method_names": "methods",
    "render_scene": "scenes",
    "scene_names": "scenes",
    "solve": "solve",
    "summarise_error": "metrics",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'photostereo' has no attribute {name!r}")
    value = getattr(import_module(f"photostereo.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Importing the submodule ``photostereo.solve`` must not hide the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
