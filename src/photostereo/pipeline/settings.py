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
class SolveSettings:
    """How to solve a capture; see :func:`photostereo.solve`."""

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


@dataclass(frozen=True)
class OutputSettings:
    """What to write besides arrays and pictures."""

    report: bool = True  #: Write the page.
    #: None, ``"plain"`` for the maps of a flat sample, or ``"tileable"`` for maps that tile seamlessly.
    material: str | None = None
    #: Make the material a square of this many texels; a power of two suits game engines.
    texels: int | None = None
    flip_y: bool = False  #: Write ``normals.png`` in the DirectX convention.
    #: Information about the object for the page: ``title``, ``inventory``, ``credit``, ``license``. Takes precedence
    #: over ``photostereo.json`` beside the photographs.
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """The settings of a pipeline.

    Examples
    --------
    >>> settings = Settings().changed(method="ls", mask="full", surface_method="robust", report=False)
    >>> settings.solving.method, settings.reading.mask, settings.surface.method, settings.output.report
    ('ls', 'full', 'robust', False)
    >>> Settings().changed(surface=False).surface is None
    True
    """

    reading: ReadOptions = field(default_factory=ReadOptions)
    images: int | None = None  #: use this number of randomly chosen photographs; None for all
    seed: int = 0  #: random seed of that choice
    solving: SolveSettings = field(default_factory=SolveSettings)
    surface: SurfaceChoice | None = field(default_factory=SurfaceChoice)  #: None for neither depth nor meshes
    output: OutputSettings = field(default_factory=OutputSettings)

    def changed(self, **changes: Any) -> Settings:
        """Return a copy with some settings changed, by name.

        Names are the fields of this class and of its parts (``mask``, ``method``, ``report``, ...), and
        ``surface_method`` and ``pixel_size`` of the surface. ``surface`` may also be True or False.

        Raises
        ------
        ParameterError
            If there is no setting of that name.
        """
        for name in changes:
            require_known(name, FLAT, "setting")
        changed = self
        for name in sorted(
            changes, key=lambda name: FLAT[name][0][0]
        ):  # own fields take precedence over those of the parts
            value = changes[name]
            if name == "surface" and isinstance(value, bool):
                value = (self.surface or SurfaceChoice()) if value else None
            for part, entry in FLAT[name]:
                if not part:
                    changed = replace(changed, **{entry: value})
                elif getattr(changed, part) is not None:
                    changed = replace(changed, **{part: replace(getattr(changed, part), **{entry: value})})
        return changed


def _flat() -> dict[str, list[tuple[str, str]]]:
    parts = {"": Settings, "reading": ReadOptions, "solving": SolveSettings, "output": OutputSettings}
    flat = {entry.name: [(part, entry.name)] for part, kind in parts.items() for entry in fields(kind)}
    flat["surface_method"] = [("surface", "method")]
    flat["pixel_size"].append(("surface", "pixel_size"))
    return flat


#: Every setting by name: the parts that have it (empty for :class:`Settings` itself), and its name there.
FLAT = _flat()
