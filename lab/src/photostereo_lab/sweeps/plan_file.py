"""Plans written by users: TOML in, a checked :class:`Plan` out; ``docs/lab/sweeps.md`` shows one.

Everything is checked before anything runs: methods, parameters and their ranges, captures (each is
opened), counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from photostereo.core.errors import ParameterError, PhotostereoError
from photostereo.io.safe import read_toml
from photostereo.io.schema import NUMBER, check_facts
from photostereo_lab.sweeps.plan import (
    CLEAN,
    CaptureSpec,
    Corruption,
    MethodPlan,
    Plan,
    settle_parameters,
)

_LEVELS = (NUMBER, [NUMBER])
_SPEC = {
    "name?": str, "data?": str, "maps?": bool,
    "captures": [(str, {"path": str, "name?": str, "reference?": str})],
    "images?": [(int, str)],
    "corruptions?": [(str, {"poisson?": _LEVELS, "salt_pepper?": _LEVELS, "gaussian?": _LEVELS})],
    "seeds?": (int, [int]),
    "methods": [
        {"name": str, "label?": str, "fixed?": {str: object}, "grid?": {str: [object]}, "defaults?": bool}
    ],
}  # fmt: skip
#: The range of each kind of noise: decibels, share of the values, standard deviation.
_RANGES = {"poisson": (-1e3, 1e3), "salt_pepper": (0.0, 1.0), "gaussian": (0.0, 1e3)}
#: More seeds than this are a mistake, and their list alone would fill the memory.
MOST_SEEDS = 100_000


def read_plan(path: str | Path, *, data: str | Path | None = None) -> Plan:
    """Read and check a plan; relative captures are in ``data``, else the plan's ``data``, else next to the plan.

    Mistakes raise :class:`ParameterError` ``"invalid-plan"``; its ``values["key"]`` is the key of
    the mistake.
    """
    file = Path(path)
    document = read_toml(file, "plan")

    def fail(problem: str, key: str = "") -> ParameterError:
        words = f"{key}: {problem}" if key else problem
        return ParameterError(
            f"{file}: {words.rstrip('.')}.",
            code="invalid-plan",
            file=file,
            key=key or problem.split(" ")[0],
            problem=problem,
        )

    check_facts(document, _SPEC, fail, closed=True)
    for key in ("captures", "images", "corruptions", "seeds", "methods"):
        if document.get(key) == []:
            raise fail("the list is empty, so there is nothing to run", key)
    methods = tuple(
        _method(entry, f"methods[{number}]", fail)
        for number, entry in enumerate(document["methods"])
    )
    titles = [use.title for use in methods]
    if len(set(titles)) < len(titles):
        raise fail("a method occurs twice; give each a label", "methods")
    images = tuple(_images(value, fail) for value in document.get("images", ["all"]))
    root = Path(
        data if data is not None else file.resolve().parent / document.get("data", ".")
    ).expanduser()
    captures = tuple(
        _capture(entry, root, images, f"captures[{number}]", fail)
        for number, entry in enumerate(document["captures"])
    )
    corruptions = tuple(
        corruption
        for value in document.get("corruptions", ["none"])
        for corruption in _corruptions(value, fail)
    )
    seeds = _seeds(document.get("seeds", 1), fail)
    name = document.get("name", file.stem)
    maps = document.get("maps", False)
    return Plan(name, captures, methods, images, corruptions, seeds, maps=maps)


def _method(entry: dict[str, Any], where: str, fail: Any) -> MethodPlan:
    fixed = entry.get("fixed", {})
    grid = entry.get("grid", {})
    points = [(f"{where}.fixed.{name}", {name: value}) for name, value in fixed.items()]
    for name, values in grid.items():
        key = f"{where}.grid.{name}"
        if not values or name in fixed:
            raise fail("it is both fixed and in the grid" if values else "the list is empty", key)
        points += [(key, {name: value}) for value in values]
    for key, point in [(f"{where}.name", {}), *points]:
        try:
            settle_parameters(entry["name"], point)
        except ParameterError as problem:
            raise fail(str(problem), key) from None
    return MethodPlan(
        entry["name"], entry.get("label", ""), fixed, grid, entry.get("defaults", True)
    )


def _images(value: int | str, fail: Any) -> int | None:
    if value == "all":
        return None
    if isinstance(value, str) or value < 3:
        raise fail(f'expected a whole number of at least 3, or "all", not {value!r}', "images")
    return value


def _capture(
    entry: Any, root: Path, images: Sequence[int | None], where: str, fail: Any
) -> CaptureSpec:
    from photostereo.capture import load

    entry = {"path": entry} if isinstance(entry, str) else entry
    reference = entry.get("reference", "truth")
    if reference not in ("truth", "ls"):
        raise fail(f'reference must be "truth" or "ls", not {reference!r}', where)
    place = root / Path(entry["path"]).expanduser()
    try:
        capture = load(place)
    except PhotostereoError as problem:
        raise fail(str(problem), where) from None
    if capture.truth is None and reference == "truth":
        raise fail(
            f'{place} has no true normals to compare with. Add reference = "ls" to compare with least squares on its '
            "clean photographs",
            where,
        )
    most = max((count for count in images if count is not None), default=0)
    if most > len(capture):
        raise fail(f"{most} photographs are requested, but {place} has {len(capture)}", "images")
    return CaptureSpec.at(place, entry.get("name", capture.name), reference)


def _corruptions(value: Any, fail: Any) -> list[Corruption]:
    if value == "none":
        return [CLEAN]
    if isinstance(value, str) or len(value) != 1:
        raise fail(
            f'expected "none", {{ poisson = dB }}, {{ salt_pepper = share }} or {{ gaussian = sigma }}, not {value!r}',
            "corruptions",
        )
    ((kind, levels),) = value.items()
    low, high = _RANGES[kind]
    levels = levels if isinstance(levels, list) else [levels]
    if not levels or not all(low <= level <= high for level in levels):
        raise fail(f"{kind} needs levels from {low:g} to {high:g}", "corruptions")
    return [Corruption(kind, float(level)) for level in levels]


def _seeds(value: int | list[int], fail: Any) -> tuple[int, ...]:
    if isinstance(value, int) and not 1 <= value <= MOST_SEEDS:
        raise fail(f"1 to {MOST_SEEDS} seeds, not {value}", "seeds")
    seeds = range(value) if isinstance(value, int) else value
    if not all(0 <= seed < 2**63 for seed in seeds):
        raise fail("seeds must be non-negative whole numbers of at most 63 bits", "seeds")
    return tuple(seeds)
