"""Plans written by users: TOML in, a checked :class:`Plan` out; ``docs/lab/sweeps.md`` shows one.

Everything is checked before anything runs: methods, parameters and their ranges, captures (each is
opened), counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

#: One level of a noise, or several.
_LEVELS = (NUMBER, [NUMBER])
#: The schema of a plan; see :func:`photostereo.io.schema.check_facts`.
_SPEC = {
    "name?": str, "data?": str, "maps?": bool,
    "captures": [(str, {"path": str, "name?": str, "reference?": str})],
    "images?": [(int, str)],
    "corruptions?": [(str, {"poisson?": _LEVELS, "salt_pepper?": _LEVELS, "gaussian?": _LEVELS})],
    "seeds?": (int, [int]),
    "methods": [
        {
            "name": str, "label?": str, "fixed?": {str: object}, "grid?": {str: [object]},
            "defaults?": bool,
        }
    ],
}  # fmt: skip
#: The range of each kind of noise: decibels, share of the values, standard deviation.
_RANGES = {"poisson": (-1e3, 1e3), "salt_pepper": (0.0, 1.0), "gaussian": (0.0, 1e3)}
#: Makes the error for a problem at a key of the plan.
Fail = Callable[[str, str], ParameterError]
#: More seeds than this are a mistake, and their list alone would fill the memory.
MOST_SEEDS = 100_000


def read_plan(path: str | Path, *, data: str | Path | None = None) -> Plan:
    """Read and check a plan.

    Parameters
    ----------
    path : path
        The plan.
    data : path, optional
        Where relative captures are; by default the plan's ``data``, or the folder of the plan.

    Raises
    ------
    ParameterError
        ``"invalid-plan"``; its ``values["key"]`` is the key of the mistake.
    """
    file = Path(path)
    document = read_toml(file, "plan")

    def fail(problem: str, key: str = "") -> ParameterError:
        place = f"{file}: {key}: " if key else f"{file}: "
        return ParameterError(
            f"{place}{problem.rstrip('.')}.",
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
    if data is None:
        data = file.resolve().parent / document.get("data", ".")
    root = Path(data).expanduser()
    captures = tuple(
        _capture(entry, root, images, f"captures[{number}]", fail)
        for number, entry in enumerate(document["captures"])
    )
    corruptions = tuple(
        corruption
        for value in document.get("corruptions", ["none"])
        for corruption in _corruptions(value, fail)
    )
    return Plan(
        name=document.get("name", file.stem),
        captures=captures,
        methods=methods,
        images=images,
        corruptions=corruptions,
        seeds=_seeds(document.get("seeds", 1), fail),
        maps=document.get("maps", False),
    )


def _method(entry: dict[str, Any], where: str, fail: Fail) -> MethodPlan:
    """Return a checked method; ``where`` is the key of its entry."""
    fixed = entry.get("fixed", {})
    grid = entry.get("grid", {})
    points = [(f"{where}.fixed.{name}", {name: value}) for name, value in fixed.items()]
    for name, values in grid.items():
        key = f"{where}.grid.{name}"
        if not values:
            raise fail("the list is empty", key)
        if name in fixed:
            raise fail("it is both fixed and in the grid", key)
        points += [(key, {name: value}) for value in values]
    for key, point in [(f"{where}.name", {}), *points]:
        try:
            settle_parameters(entry["name"], point)
        except ParameterError as problem:
            raise fail(str(problem), key) from None
    return MethodPlan(
        method=entry["name"],
        label=entry.get("label", ""),
        fixed=fixed,
        grid=grid,
        defaults=entry.get("defaults", True),
    )


def _images(value: int | str, fail: Fail) -> int | None:
    """Return a checked number of photographs; None for all."""
    if value == "all":
        return None
    if isinstance(value, str) or value < 3:
        raise fail(f'expected a whole number of at least 3, or "all", not {value!r}', "images")
    return value


def _capture(
    entry: Any, root: Path, images: Sequence[int | None], where: str, fail: Fail
) -> CaptureSpec:
    """Return a capture that can be read and has what the plan needs.

    Parameters
    ----------
    entry : str or dict
        A path, or a path with options.
    root : path
        Where relative captures are.
    images : sequence of int or None
        The numbers of photographs that the plan wants.
    where : str
        Key of the entry.
    fail : function
        Makes the error for a problem at a key.
    """
    from photostereo.capture import load

    if isinstance(entry, str):
        entry = {"path": entry}
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
            f'{place} has no true normals to compare with. Add reference = "ls" to compare with '
            "least squares on its clean photographs",
            where,
        )
    most = max((count for count in images if count is not None), default=0)
    if most > len(capture):
        raise fail(f"{most} photographs are requested, but {place} has {len(capture)}", "images")
    return CaptureSpec.at(place, entry.get("name", capture.name), reference)


def _corruptions(value: Any, fail: Fail) -> list[Corruption]:
    """Return the levels of one kind of noise."""
    if value == "none":
        return [CLEAN]
    if isinstance(value, str) or len(value) != 1:
        raise fail(
            'expected "none", { poisson = dB }, { salt_pepper = share } or { gaussian = sigma }, '
            f"not {value!r}",
            "corruptions",
        )
    ((kind, levels),) = value.items()
    low, high = _RANGES[kind]
    if not isinstance(levels, list):
        levels = [levels]
    if not levels or not all(low <= level <= high for level in levels):
        raise fail(f"{kind} needs levels from {low:g} to {high:g}", "corruptions")
    return [Corruption(kind, float(level)) for level in levels]


def _seeds(value: int | list[int], fail: Fail) -> tuple[int, ...]:
    """Return the seeds: a number of them from 0, or a list."""
    seeds: Sequence[int]
    if isinstance(value, int):
        if not 1 <= value <= MOST_SEEDS:
            raise fail(f"1 to {MOST_SEEDS} seeds, not {value}", "seeds")
        seeds = range(value)
    else:
        seeds = value
    if not all(0 <= seed < 2**63 for seed in seeds):
        raise fail("seeds must be non-negative whole numbers of at most 63 bits", "seeds")
    return tuple(seeds)
