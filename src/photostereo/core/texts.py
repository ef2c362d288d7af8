"""Sentences of errors, by code, from ``texts.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from photostereo.core.wording import filled_in


@cache
def catalog() -> Mapping[str, Mapping[str, str]]:
    """All texts by kind and code; read when the first one is needed."""
    return tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


def text_of(kind: str, code: str, values: Mapping[str, Any]) -> str:
    """The text of a code with its values; empty if the catalog has none."""
    return filled_in(catalog()[kind].get(code, ""), values)
