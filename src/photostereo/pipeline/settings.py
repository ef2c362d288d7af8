"""Everything that decides a result: how a capture is read, solved, integrated and written.

The command line, ``batch`` and plans in TOML fill in the same settings. Nothing heavy is imported here.
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
    """How a capture is solved; see :func:`photostereo.solve`."""

    method: str = "auto"  #: By name or word.
    prior: str | None = None  #: For a method that has none.
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: Of the method.
    device: str = "cpu"  #: ``"cpu"`` or ``"cuda"``.
    #: Limit in bytes, or text such as ``"4GB"``; None for half of the free memory. A capture that does not fit is
    #: solved in parts.
    memory: int | str | None = None
    #: ``"auto"`` corrects photographs that are brighter or darker than their light strengths say, ``"given"`` uses
    #: them as they are.
    strengths: str = "auto"
    checkpoint: str | os.PathLike[str] | None = None  #: File for the state of a solve.
    resume: str | os.PathLike[str] | None = None  #: File with a state to go on from.


@dataclass(frozen=True)
class OutputSettings:
    """What is written beside the arrays and pictures."""

    report: bool = True  #: The page.
    #: None, ``"plain"`` for the maps of a flat sample, ``"tileable"`` for maps that tile seamlessly.
    material: str | None = None
    #: Make the material a square of this many texels; a power of two suits game engines.
    texels: int | None = None
    flip_y: bool = False  #: ``normals.png`` in the DirectX convention.
    #: What the page says about the object: ``title``, ``inventory``, ``credit``, ``license``. They take the
    #: place of those in ``photostereo.json`` beside the photographs.
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
    seed: int = 0  #: of that choice
    solving: SolveSettings = field(default_factory=SolveSettings)
    surface: SurfaceChoice | None = field(default_factory=SurfaceChoice)  #: None for neither depth nor meshes
    output: OutputSettings = field(default_factory=OutputSettings)

    def changed(self, **changes: Any) -> Settings:
        """The same with some settings changed, by their own names.

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
        ):  # its own fields come before those of its parts
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


#: Every setting by its name: the parts that have it (empty for :class:`Settings` itself), and its name there.
FLAT = _flat()
