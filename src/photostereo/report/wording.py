"""Short texts for the facts of a result, for pages and notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from photostereo.core.errors import ParameterError
from photostereo.core.findings import Finding
from photostereo.solver.methods import find_method
from photostereo.solver.reconstruction import Reconstruction


def method_words(name: str) -> tuple[str, str]:
    """Return the title and the citation of a method; the name itself if it is not registered."""
    try:
        method = find_method(name)
    except ParameterError:
        return name, ""
    return method.title, method.citation


def status_words(result: Reconstruction) -> str:
    """Describe how the solve ended."""
    if result.status == "converged":
        plural = "" if result.iterations == 1 else "s"
        return f"converged after {result.iterations} iteration{plural}"
    if result.status == "iterations":
        return f"stopped at the limit of {result.iterations} iterations"
    return result.status


def duration(seconds: float) -> str:
    """Format a duration.

    >>> duration(0.256), duration(9.7), duration(150)
    ('0.26 s', '9.7 s', '2 min 30 s')
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def thousands(number: int) -> str:
    """Group digits by three, separated by narrow spaces."""
    return f"{number:,}".replace(",", "\u202f")


def decibels(ratio: float) -> str:
    """Format a signal-to-noise ratio."""
    if math.isfinite(ratio):
        return f"{ratio:.0f} dB"
    return "none" if ratio > 0 else "no signal"


def sentence(note: Finding | str) -> str:
    """Return a note, which follows a bullet elsewhere, as a sentence."""
    text = str(note)
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def plain(value: Any) -> str:
    """Format a parameter; arrays by their shape."""
    if isinstance(value, np.ndarray):
        return "array " + " × ".join(str(side) for side in value.shape)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        return " × ".join(plain(part) for part in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {plain(part)}" for name, part in value.items())
    return str(value)
