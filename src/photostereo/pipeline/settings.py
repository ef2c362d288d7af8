"""All settings that determine a result: how to read, solve, integrate and write a capture.

The command line, ``batch`` and plans in TOML fill in these settings. Nothing heavy is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from photostereo.capture.options import ReadOptions
from photostereo.core.errors import require_known
from photostereo.results.choice import SurfaceChoice


@dataclass(frozen=True)
class Settings:
    """The settings of a pipeline.

    Examples
    --------
    >>> settings = Settings().changed(method="ls", mask="full", surface_method="robust", report=False)
    >>> settings.method, settings.reading.mask, settings.surface.method, settings.report
    ('ls', 'full', 'robust', False)
    >>> Settings().changed(surface=False).surface is None
    True
    """

    reading: ReadOptions = field(default_factory=ReadOptions)
    images: int | None = None  #: Use this number of randomly chosen photographs; None for all.
    seed: int = 0  #: Random seed of that choice.

    method: str = "auto"  #: Name of a method, or a keyword.
    prior: str | None = None  #: Prior for a method that has none.
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: Parameters of the method.
    device: str = "cpu"  #: ``"cpu"`` or ``"cuda"``.
    #: Limit in bytes, or text such as ``"4GB"``; None for half of the free memory. A capture that does not fit is
    #: solved in parts.
    memory: int | str | None = None
    #: ``"auto"`` corrects photographs that are brighter or darker than their light strengths imply; ``"given"`` uses
    #: them unchanged.
    strengths: str = "auto"
    checkpoint: str | os.PathLike[str] | None = None  #: File for the state of a solve.
    resume: str | os.PathLike[str] | None = None  #: File with a state to resume from.

    #: None for neither depth nor meshes.
    surface: SurfaceChoice | None = field(default_factory=SurfaceChoice)
    report: bool = True  #: Write the page.
    #: None, ``"plain"`` for the maps of a flat sample, or ``"tileable"`` for maps that tile seamlessly.
    material: str | None = None
    #: Make the material a square of this many texels; a power of two suits game engines.
    texels: int | None = None
    flip_y: bool = False  #: Write ``normals.png`` in the DirectX convention.
    #: Information about the object for the page: ``title``, ``inventory``, ``credit``, ``license``. Takes precedence
    #: over ``photostereo.json`` beside the photographs.
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def solves_at_once(self) -> bool:
        """Whether the capture cannot be solved in parts, because the state of the solve is saved or resumed."""
        return self.checkpoint is not None or self.resume is not None

    def changed(self, **changes: Any) -> Settings:
        """Return a copy with some settings changed, by name.

        Names are the fields of this class and of :class:`ReadOptions` (``mask``, ``method``, ``report``, ...), and
        ``surface_method``; ``pixel_size`` also applies to the surface. ``surface`` may be True or False. An unknown
        name raises a :class:`ParameterError`.
        """
        for name in changes:
            require_known(name, FLAT, "setting")
        own = {name: value for name, value in changes.items() if name in _OWN}
        if isinstance(own.get("surface"), bool):
            own["surface"] = (self.surface or SurfaceChoice()) if own["surface"] else None
        changed = replace(self, **own)
        reading = {name: value for name, value in changes.items() if name in _READING}
        if reading:
            changed = replace(changed, reading=replace(changed.reading, **reading))
        else:
            changed = changed
        names = {"surface_method": "method", "pixel_size": "pixel_size"}
        of_surface = {names[name]: value for name, value in changes.items() if name in names}
        if of_surface and changed.surface is not None:
            changed = replace(changed, surface=replace(changed.surface, **of_surface))
        return changed


_OWN = [entry.name for entry in fields(Settings)]
_READING = [entry.name for entry in fields(ReadOptions)]
#: The names of all settings.
FLAT = (*_OWN, *_READING, "surface_method")
