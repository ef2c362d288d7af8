"""The figures that the paper prints (``published.toml``): table → object → method → degrees, or seconds."""

from __future__ import annotations

import tomllib
from importlib.resources import files


def _tables() -> dict[str, dict[str, dict[str, float]]]:
    text = (files("photostereo.lab.paper") / "published.toml").read_text(encoding="utf-8")
    tables = {}
    for name, rows in tomllib.loads(text).items():
        methods = rows.pop("methods")
        tables[name] = {key: dict(zip(methods, row, strict=True)) for key, row in rows.items()}
    return tables


PUBLISHED = _tables()
#: The ten objects of DiLiGenT, in the paper's order.
OBJECTS = tuple(PUBLISHED["MEAN_ERROR"])
