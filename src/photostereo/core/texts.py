"""Texts of errors and remedies, by code, from the catalog ``texts.toml``; remedies are worded for each shell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any


@cache
def catalog() -> Mapping[str, Mapping[str, str]]:
    """All texts by kind and code; read when the first one is needed."""
    return tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


def text_of(kind: str, code: str, values: Mapping[str, Any]) -> str:
    """The text of a code with its values; empty if the catalog has none."""
    return filled_in(catalog()[kind].get(code, ""), values)


def filled_in(text: str, values: Mapping[str, Any]) -> str:
    """Put values into a text; ``{share:percent}`` is a percentage, ``{size:amount}`` an amount of memory."""
    return _Formatter().vformat(text, (), values)


def remedy_text(key: str, shell: str, values: Mapping[str, Any]) -> str:
    """The text of a remedy for a shell: ``"python"``, ``"terminal"`` or ``"app"``."""
    if shell == "app" and key in catalog()["app"]:
        return catalog()["app"][key]
    text = catalog()["remedies"][key].format(**values)
    return re.sub("`(.*?)=(.*?)`", _as_option if shell == "terminal" else r"\1=\2", text)


def percent(share: float) -> str:
    """Format a share as a percentage, rounded to suit its size."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def amount(size: float) -> str:
    """Format an amount of memory, in bytes."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        special = {"percent": percent, "amount": amount}.get(format_spec)
        return special(value) if special else format(value, format_spec).replace("%", " %")


def _as_option(written: re.Match[str]) -> str:
    """Spell ``mask="full"`` as ``--mask full``."""
    name, value = written[1].replace("_", "-"), written[2].strip('"()').replace(", ", ",")
    if value == "False":
        return f"--no-{name}"
    return f"--{name}" if value in ("", "True") else f"--{name} {value}"
