"""Options shared by several commands, declared once.

A group is a dataclass whose fields are options, named after the settings that they fill in (see
:mod:`photostereo.pipeline.settings`) and with the same defaults; ``options.toml`` describes them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from photostereo.capture.options import ReadOptions
from photostereo.cli.command import option
from photostereo.core.errors import ParameterError
from photostereo.pipeline.settings import Settings
from photostereo.results.choice import SurfaceChoice


def complete_method(incomplete: str) -> list[str]:
    """Complete ``--method <TAB>``."""
    from photostereo.solver.auto_method import WORDS
    from photostereo.solver.methods import method_names

    return [name for name in (*method_names(), *WORDS) if name.startswith(incomplete)]


@dataclass(frozen=True)
class BallReading:
    """How lights are estimated."""

    ball: Path | None = None
    circle: str | None = None
    card: str | None = None
    focal: float | None = None
    srgb: bool | None = None

    def options(self) -> ReadOptions:
        """Convert to the library's options; settings without an option keep their defaults."""
        values = dict(vars(self))
        values |= {name: values[name] or () for name in ("leave_out", "keep") if name in values}
        for name, count in (("circle", 3), ("card", 4), ("crop", 4)):
            if name in values:
                values[name] = numbers(values[name], count, f"--{name}", whole=name != "circle")
        return ReadOptions(**values)


@dataclass(frozen=True)
class Reading(BallReading):
    """How a capture is read."""

    mask: str | None = None
    crop: str | None = None
    scale: float = ReadOptions.scale
    color: bool = ReadOptions.color
    lights: str | None = None
    lights_axes: str | None = None
    reverse_lights: bool = ReadOptions.reverse_lights
    lights_strengths: str = ReadOptions.lights_strengths
    ambient: Path | None = None
    flat: Path | None = None
    subject: str = ReadOptions.subject
    align: str = ReadOptions.align
    leave_out: list[str] | None = None
    keep: list[str] | None = None
    edits: bool = bool(ReadOptions.edits)
    strict: bool = ReadOptions.strict


@dataclass(frozen=True)
class Making:
    """How a capture is solved and what is written; with :class:`Reading`, the options of ``solve`` and ``batch``."""

    method: str = option(
        "A name from `photostereo methods`, or best, or fast (default: the best that finishes in minutes).",
        "Method",
        flags="--method -m",
        autocompletion=complete_method,
        show_default=False,
        default=Settings.method,
    )
    parameters: list[str] | None = None
    prior: str | None = None
    strengths: str = Settings.strengths
    images: int | None = None
    seed: int = Settings.seed
    device: str = Settings.device
    memory: str | None = None
    surface: bool = True
    surface_method: str = SurfaceChoice.method
    pixel_size: str | None = None
    report: bool = Settings.report
    material: bool = False
    tileable: bool = False
    texels: int | None = None
    flip_y: bool = Settings.flip_y
    about: list[str] | None = None

    @property
    def _material(self) -> str | None:
        if self.tileable:
            return "tileable"
        return "plain" if self.material else None

    def settings(self, given: Collection[str]) -> dict[str, Any]:
        """Return the settings, by name, of the options given on the command line."""
        values = {name: value for name, value in vars(self).items() if name in given}
        if "parameters" in values:
            values["parameters"] = parse_parameters(self.parameters)
        if "about" in values:
            values["about"] = parse_parameters(self.about, "--about license=CC0")
        if values.pop("tileable", False) or "material" in values:
            values["material"] = self._material
        return values


def parse_parameters(settings: list[str] | None, example: str = "--set mu=0.05") -> dict[str, str]:
    """Parse names and values of a repeated option such as ``--set``.

    >>> parse_parameters(["mu=0.05", "p = 3"])
    {'mu': '0.05', 'p': '3'}
    """
    values: dict[str, str] = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ParameterError(
                f'"{text}" is not a setting. Write NAME=VALUE, for example {example}.',
                code="not-a-setting",
                text=text,
                example=example,
            )
        values[name.strip()] = value.strip()
    return values


def names(text: str | None) -> list[str] | None:
    """Split comma-separated names; None if nothing was given.

    >>> names("ls, pdlnv,")
    ['ls', 'pdlnv']
    """
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(
    text: str | None, count: int, option: str, *, whole: bool = False
) -> tuple[float, ...] | None:
    """Parse ``count`` comma-separated numbers; an error names the option.

    >>> numbers("120,80,30.5", 3, "--circle")
    (120.0, 80.0, 30.5)
    """
    if text is None:
        return None
    try:
        values = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        values = ()
    if len(values) != count or not all(abs(value) < 1e9 for value in values):
        raise ParameterError(
            f'"{text}" is not a value of {option}: expected {count} comma-separated numbers.',
            code="not-numbers",
            option=option,
            text=text,
            count=count,
        )
    if whole:
        return tuple(int(value) for value in values)
    return values
