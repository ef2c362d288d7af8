"""Python code and command-line arguments that compute a result again."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from photostereo.capture.edits import Edits
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import ParameterError
from photostereo.pipeline.settings import Settings
from photostereo.solver.methods import find_method

#: Settings outside of the reading options that a summary stores with its provenance.
_OF_THE_CHOICE = ("images", "seed")


def solve_settings(choice: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a solve, checked, and the same as command-line arguments.

    Parameters
    ----------
    choice : mapping
        ``method``, ``parameters`` by name, as numbers or text, and ``scale``, as the page sends them.

    Examples
    --------
    >>> solve_settings({"method": "pls", "parameters": {"p": "3"}})
    ({'method': 'pls', 'parameters': {'p': 3}}, ['--method', 'pls', '--set', 'p=3'])
    """
    method = choice.get("method") or "best"
    parameters = choice.get("parameters") or {}
    scale = choice.get("scale") or 1.0
    resolved = find_method(method).resolve(parameters)
    settings: dict[str, Any] = {"method": method}
    arguments = ["--method", method]
    if parameters:
        settings["parameters"] = {name: resolved[name] for name in parameters}
        for name, value in parameters.items():
            arguments += ["--set", f"{name}={value}"]
    if scale != 1.0:
        settings["scale"] = scale
        arguments += ["--scale", f"{scale:g}"]
    return settings, arguments


def python_call(folder: Path, summary: Mapping[str, Any], out: str) -> str:
    """Return Python code that computes a result again.

    Parameters
    ----------
    folder : path
        The capture.
    summary : mapping
        The content of the result's ``summary.json``, which stores all options as data.
    out : str
        The folder of results in the code.
    """
    arguments = [repr(str(folder))]
    for name, value in stored_settings(summary).items():
        arguments.append(f"{name}={value!r}")
    inside = "".join(f"    {argument},\n" for argument in arguments)
    return (
        f"import photostereo as ps\n\npipeline = ps.Pipeline(\n{inside})\npipeline.write({out!r})\n"
    )


def stored_settings(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a result that are not the defaults, as its summary stores them."""
    provenance = summary.get("provenance") or {}
    settings = _changed_method(summary)
    strengths = (summary.get("strengths") or {}).get("choice")
    if strengths not in (None, Settings.strengths):
        settings["strengths"] = strengths
    for name in _OF_THE_CHOICE:
        if provenance.get(name) not in (None, getattr(Settings, name)):
            settings[name] = provenance[name]
    surface = (summary.get("surface") or {}).get("method")
    if surface not in (None, Settings().surface.method):  # type: ignore[union-attr]
        settings["surface_method"] = surface
    return settings | _changed_reading(provenance.get("reading") or {})


def is_outdated(summary: Mapping[str, Any], folder: Path, edits: Edits, made: float) -> bool:
    """Whether the corrections of a capture are others now than when a result was made.

    Parameters
    ----------
    summary : mapping
        The content of the result's ``summary.json``.
    folder : path
        The capture.
    edits : Edits
        Its corrections now.
    made : float
        When the result was made, in seconds since 1970.
    """
    reading = (summary.get("provenance") or {}).get("reading")
    if reading is None:
        return False
    before = _changed_reading(reading)
    now = _changed_reading(vars(edits.fill_in(ReadOptions(), folder)))
    if any(before.get(name) != now.get(name) for name in vars(edits)):
        return True
    mask = folder / (edits.mask or "")  # it may have been painted again
    return mask.is_file() and mask.stat().st_mtime > made


def _changed_method(summary: Mapping[str, Any]) -> dict[str, Any]:
    method = str(summary.get("method", "auto"))
    settings: dict[str, Any] = {"method": method}
    try:
        defaults = find_method(method).resolve({})
    except ParameterError:  # of another package, which is not installed here
        defaults = {}
    stored = summary.get("parameters") or {}
    changed = {key: value for key, value in stored.items() if defaults.get(key) != _frozen(value)}
    if changed:
        settings["parameters"] = changed
    return settings


def _frozen(value: Any) -> Any:
    """JSON has lists only; parameters are tuples."""
    return tuple(value) if isinstance(value, list) else value


def _changed_reading(stored: Mapping[str, Any]) -> dict[str, Any]:
    defaults = ReadOptions()
    changed: dict[str, Any] = {}
    for entry in fields(ReadOptions):
        default = getattr(defaults, entry.name)
        value = stored.get(entry.name)
        if isinstance(value, str) and value.startswith("("):  # a sequence, stored as text
            value = literal_eval(value)
        value = _frozen(value)
        if value is not None and value != default:
            changed[entry.name] = value
    if isinstance(stored.get("edits"), str):  # a summary of corrections that are in the options
        changed["edits"] = False
    if "moved_lights" in changed:
        changed["moved_lights"] = dict(changed["moved_lights"])
    return changed
