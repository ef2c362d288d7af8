"""Facts of a result as short words for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from photostereo.capture import Capture
    from photostereo.diagnosis.expected_error import ExpectedError
    from photostereo.solver.reconstruction import Reconstruction


def method_words(name: str) -> tuple[str, str]:
    """The method's name in words, and where it comes from; the name itself if the registry does not know it."""
    from photostereo.core.errors import ParameterError
    from photostereo.solver.methods import find_method

    try:
        method = find_method(name)
    except ParameterError:
        return name, ""
    return method.title, method.citation


def kicker(result: Reconstruction, capture: Capture | None) -> str:
    """Where the result comes from, in one line above its name."""
    words = f"Photometric stereo · {result.method}"
    return words if capture is None else f"{words} · {len(capture)} photographs"


def verdict(result: Reconstruction, expected: ExpectedError | None) -> dict[str, str]:
    """How sure the result is of itself: a grade for the badge, a sentence, and the main reason."""
    if expected is None:
        return {
            "grade": "unknown",
            "badge": "Not graded",
            "text": f"{result.method} does not estimate its error.",
            "why": "",
        }
    return {
        "grade": expected.grade,
        "badge": expected.grade.capitalize(),
        "text": f"Expected error about {expected.about} on average.",
        "why": expected.reasons[0].text if expected.reasons else "",
    }


def key_figures(result: Reconstruction, capture: Capture | None) -> list[dict[str, str]]:
    """The few numbers at the top of the page."""
    height, width = result.mask.shape
    facts: list[tuple[str, str]] = []
    error = result.angular_error
    if error is not None:
        facts += [
            ("Mean error", f"{error.mean:.2f}°"),
            ("Median error", f"{error.median:.2f}°"),
            ("Within 10°", f"{100 * error.within_10deg:.0f} %"),
        ]
        if error.unknown_truth and error.known_mean is not None:
            facts.insert(0, ("Mean error, pixels with known truth", f"{error.known_mean:.2f}°"))
            facts[1] = ("Mean error, pixels without truth counted as 90°", f"{error.mean:.2f}°")
    if capture is not None:
        facts.append(("Photographs", str(len(capture))))
    facts += [
        ("Pixels on the object", thousands(int(result.mask.sum()))),
        ("Frame", f"{width} × {height}"),
        ("Time", duration(sum(result.seconds.values()))),
    ]
    return [{"label": label, "value": value} for label, value in facts]


def settings(result: Reconstruction) -> list[dict[str, str]]:
    """Every parameter with its value."""
    return [{"label": name, "value": plain(value)} for name, value in result.parameters.items()]


def origins(result: Reconstruction, capture: Capture | None) -> list[dict[str, str]]:
    """Where the result came from: status, times, versions, digest."""
    facts = [("method", f"{result.method}, {result.chosen}")] if result.chosen else []
    facts.append(("status", status_words(result)))
    facts += [(f"seconds: {stage}", f"{seconds:.2f}") for stage, seconds in result.seconds.items()]
    if capture is not None and capture.origin is not None:
        facts.append(("format", capture.origin.layout))
        if capture.origin.bit_depth:
            facts.append(("bits per channel", str(capture.origin.bit_depth)))
        facts += [("note", note) for note in capture.origin.notes]
    if result.digest:
        facts.append(("capture digest", result.digest))
    facts += [(f"version: {name}", version) for name, version in result.versions.items()]
    return [{"label": label, "value": str(value)} for label, value in facts]


def status_words(result: Reconstruction) -> str:
    """How the solve ended.

    The three states of a :class:`~photostereo.solver.reconstruction.Reconstruction`, in words.
    """
    if result.status == "converged":
        return f"converged after {result.iterations} iterations"
    if result.status == "iterations":
        return f"stopped at the limit of {result.iterations} iterations"
    return result.status


def duration(seconds: float) -> str:
    """A duration, for people.

    >>> duration(0.0123), duration(8.26), duration(154)
    ('12 ms', '8.3 s', '2 min 34 s')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def thousands(number: int) -> str:
    """Digits in groups of three, set apart by narrow spaces."""
    return f"{number:,}".replace(",", "\u202f")


def plain(value: Any) -> str:
    """A parameter as text; arrays by their shape."""
    if isinstance(value, np.ndarray):
        return "array " + " × ".join(str(side) for side in value.shape)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        return " × ".join(plain(part) for part in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {plain(part)}" for name, part in value.items())
    return str(value)
