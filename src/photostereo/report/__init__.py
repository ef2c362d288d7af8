"""The page to look at: one self-contained ``report.html`` with viewers, evidence and diagnosis.

Names are imported when they are first used: the diagnosis needs NumPy only, the page also Jinja2 and OpenCV.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from photostereo.report.comparison import write_comparison as write_comparison
    from photostereo.report.diagnosis import Diagnosis as Diagnosis
    from photostereo.report.diagnosis import diagnose as diagnose
    from photostereo.report.page import write_report as write_report
    from photostereo.report.surface_parts import renew_surface as renew_surface
    from photostereo.report.viewing import open_report as open_report
    from photostereo.report.viewing import serve as serve
    from photostereo.report.viewing import serve_report as serve_report

_HOMES = {
    "Diagnosis": "diagnosis",
    "diagnose": "diagnosis",
    "open_report": "viewing",
    "renew_surface": "surface_parts",
    "serve": "viewing",
    "serve_report": "viewing",
    "write_comparison": "comparison",
    "write_report": "page",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'photostereo.report' has no attribute {name!r}")
    value = getattr(import_module(f"photostereo.report.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
