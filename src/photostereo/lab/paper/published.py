"""The figures that the paper prints (``published.toml``): table → object → method → degrees, or seconds."""

from __future__ import annotations

from pathlib import Path

from photostereo.io.safe import read_toml


def _tables() -> dict[str, dict[str, dict[str, float]]]:
    tables = {}
    for name, rows in read_toml(Path(__file__).with_name("published.toml"), "tables of the paper").items():
        methods = rows.pop("methods")
        tables[name] = {key: dict(zip(methods, row, strict=True)) for key, row in rows.items()}
    return tables


PUBLISHED = _tables()
#: The ten objects of DiLiGenT, in the paper's order.
OBJECTS = tuple(PUBLISHED["MEAN_ERROR"])
