"""Plans that users write: TOML in, a checked :class:`Plan` out, or an error that names the line.

    data = "/data/diligent/pmsData"        # where captures are; else --data, else beside this file
    captures = ["catPNG", { path = "pot2PNG", name = "pot2" }]
    images = [20, "all"]                   # photographs drawn at random; default all
    corruptions = ["none", { poisson = [5, 15] }, { salt_pepper = 0.1 }]
    seeds = 3                              # 0, 1, 2; or a list

    [[methods]]
    name = "ls"

    [[methods]]
    name = "pdlnv"
    fixed = { p = 2 }
    grid = { lam = [1, 10], mu = [0.05, 0.1] }
    defaults = true                        # also without the grid

Everything is checked before anything runs: methods, parameters and their ranges, captures (each is opened),
counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from photostereo.core.errors import CaptureError, ParameterError, PhotostereoError, did_you_mean
from photostereo.io.safe import read_text
from photostereo.lab.sweeps.plan import Block, MethodPlan, Plan, settle_parameters
from photostereo.lab.sweeps.toml_lines import LineIndex
from photostereo.lab.sweeps.trial import CLEAN, CaptureSpec, Corruption

_TOP = ("name", "data", "captures", "images", "corruptions", "seeds", "methods", "maps")
_CAPTURE = ("path", "name", "reference")
_METHOD = ("name", "label", "fixed", "grid", "defaults")
_CORRUPTIONS = ("poisson", "salt_pepper", "gaussian")


class PlanError(ParameterError):
    """A plan cannot be run; the message names the file and the line."""


def read_plan(path: str | Path, *, data: str | Path | None = None) -> Plan:
    """Read and check a plan.

    Parameters
    ----------
    path : the TOML file
    data : folder that relative captures are in; else the plan's ``data``, else the folder of the plan

    Raises
    ------
    PlanError
        For bad TOML, an unknown key, method or parameter, an empty list or grid, a value of the wrong type
        or out of range, a capture that is missing or cannot be read.
    """
    file = Path(path)
    try:
        text = read_text(file, "plan", remedy="Give the path of a TOML file.")
    except CaptureError as problem:
        raise PlanError(str(problem)) from None
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        raise PlanError(f"{file} is not valid TOML: {problem}. Correct that line.") from None
    return _Reader(file, LineIndex(text), document, data).plan()


class _Reader:
    def __init__(
        self, file: Path, lines: LineIndex, document: dict[str, Any], data: str | Path | None
    ) -> None:
        self.file, self.lines, self.document = file, lines, document
        self.data = data

    def plan(self) -> Plan:
        self.known_keys((), self.document, _TOP)
        name = self.text(("name",), self.document.get("name", self.file.stem))
        methods = self.methods()
        images = self.images()
        corruptions = self.corruptions()
        seeds = self.seeds()
        captures = self.captures(images)
        return Plan(name, (Block(captures, methods, images, corruptions, seeds),), self.maps())

    def fail(self, where: tuple[str | int, ...], problem: str, item: object | None = None) -> PlanError:
        return PlanError(f"{self.file}, line {self.lines.line(where, item)}: {problem}")

    def known_keys(
        self, where: tuple[str | int, ...], table: Mapping[str, Any], known: tuple[str, ...]
    ) -> None:
        for key in table:
            if key not in known:
                raise self.fail(
                    (*where, key),
                    f'there is no key "{key}" here.{did_you_mean(key, known)} Known: {", ".join(known)}.',
                )

    def text(self, where: tuple[str | int, ...], value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.fail(where, f"{where[-1]} must be a text in quotes, not {value!r}.")
        return value

    def values(self, where: tuple[str | int, ...], value: Any) -> list[Any]:
        """A list that is not empty."""
        if not isinstance(value, list):
            raise self.fail(where, f"{where[-1]} must be a list in square brackets, not {value!r}.")
        if not value:
            raise self.fail(
                where, f"{where[-1]} is empty, so there is nothing to run. Give at least one value."
            )
        return value

    def captures(self, images: tuple[int | None, ...]) -> tuple[CaptureSpec, ...]:
        if "captures" not in self.document:
            raise self.fail((), 'the plan has no captures. Add a line such as captures = ["catPNG"].')
        found = []
        for value in self.values(("captures",), self.document["captures"]):
            entry = {"path": value} if isinstance(value, str) else value
            if not isinstance(entry, dict) or "path" not in entry:
                raise self.fail(
                    ("captures",), f'a capture is a path in quotes or {{ path = "…" }}, not {value!r}.', value
                )
            where = entry["path"]
            for key in entry:
                if key not in _CAPTURE:
                    known = ", ".join(_CAPTURE)
                    raise self.fail(("captures",), f'a capture has no key "{key}". Known: {known}.', where)
            found.append(self.capture(entry, images))
        return tuple(found)

    def capture(self, entry: dict[str, Any], images: tuple[int | None, ...]) -> CaptureSpec:
        from photostereo.capture import load

        written = self.text(("captures",), entry["path"])
        reference = entry.get("reference", "truth")
        if reference not in ("truth", "ls"):
            raise self.fail(("captures",), f'reference must be "truth" or "ls", not {reference!r}.', written)
        place = self.root() / Path(written).expanduser()
        if not place.exists():
            raise self.fail(("captures",), f"the capture {place} does not exist.", written)
        try:
            capture = load(place)
        except PhotostereoError as problem:
            raise self.fail(("captures",), str(problem), written) from None
        if capture.truth is None and reference == "truth":
            raise self.fail(
                ("captures",),
                f"{place} has no true normals to compare with. Write "
                f'{{ path = "{written}", reference = "ls" }} to compare with least squares on its clean '
                "photographs.",
                written,
            )
        for count in images:
            if count is not None and count > len(capture):
                raise self.fail(
                    ("images",), f"{count} photographs are asked for, but {place} has {len(capture)}.", count
                )
        name = self.text(("captures",), entry.get("name", capture.name))
        return CaptureSpec.at(place, name, reference)

    def root(self) -> Path:
        beside = self.file.resolve().parent
        if self.data is not None:
            return Path(self.data).expanduser()
        return beside / Path(self.text(("data",), self.document.get("data", "."))).expanduser()

    def images(self) -> tuple[int | None, ...]:
        counts: list[int | None] = []
        for value in self.values(("images",), self.document.get("images", ["all"])):
            if value == "all":
                counts.append(None)
            elif _whole(value) and value >= 3:
                counts.append(value)
            else:
                raise self.fail(
                    ("images",), f'images takes whole numbers from 3 up, or "all", not {value!r}.', value
                )
        return tuple(counts)

    def maps(self) -> bool:
        value = self.document.get("maps", False)
        if not isinstance(value, bool):
            raise self.fail(("maps",), f"maps is true or false, not {value!r}.", value)
        return value

    def seeds(self) -> tuple[int, ...]:
        value = self.document.get("seeds", 1)
        if _whole(value):
            if value < 1:
                raise self.fail(("seeds",), f"seeds = {value} leaves nothing to run. Give at least 1.")
            return tuple(range(value))
        seeds = self.values(("seeds",), value)
        for seed in seeds:
            if not _whole(seed) or seed < 0:
                raise self.fail(("seeds",), f"a seed is a whole number from 0 up, not {seed!r}.", seed)
        return tuple(seeds)

    def corruptions(self) -> tuple[Corruption, ...]:
        found: list[Corruption] = []
        for value in self.values(("corruptions",), self.document.get("corruptions", ["none"])):
            if value == "none":
                found.append(CLEAN)
                continue
            if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _CORRUPTIONS:
                word = next(iter(value), "") if isinstance(value, dict) else value
                raise self.fail(
                    ("corruptions",),
                    f'a corruption is "none" or one of {{ poisson = dB }}, {{ salt_pepper = fraction }}, '
                    f"{{ gaussian = sigma }}, not {value!r}.{did_you_mean(str(word), _CORRUPTIONS)}",
                    word,
                )
            ((kind, levels),) = value.items()
            levels = levels if isinstance(levels, list) else [levels]
            for level in self.values(("corruptions", kind), levels):
                self.check_level(kind, level)
                found.append(Corruption(kind, float(level)))
        return tuple(found)

    def check_level(self, kind: str, level: Any) -> None:
        allowed: dict[str, tuple[str, Callable[[float], bool]]] = {
            "poisson": ("a number of decibels", lambda _: True),
            "salt_pepper": ("a fraction from 0 to 1", lambda x: 0 <= x <= 1),
            "gaussian": ("a standard deviation from 0 up", lambda x: x >= 0),
        }
        words, fits = allowed[kind]
        if isinstance(level, bool) or not isinstance(level, (int, float)) or not fits(level):
            raise self.fail(("corruptions", kind), f"{kind} must be {words}, not {level!r}.", level)

    def methods(self) -> tuple[MethodPlan, ...]:
        if not self.document.get("methods"):
            raise self.fail(("methods",), 'the plan has no methods. Add [[methods]] with name = "pdlnv".')
        if not isinstance(self.document["methods"], list):
            raise self.fail(("methods",), "methods are written with double brackets: [[methods]].")
        found = tuple(self.method(number, entry) for number, entry in enumerate(self.document["methods"]))
        for number, use in enumerate(found):
            if use.title in {other.title for other in found[:number]}:
                raise self.fail(
                    ("methods", number),
                    f'"{use.title}" is here twice. Give one of them a label so that results can be told '
                    "apart.",
                )
        return found

    def method(self, number: int, entry: Any) -> MethodPlan:
        from photostereo.solver.methods import find_method

        where: tuple[str | int, ...] = ("methods", number)
        if not isinstance(entry, dict) or "name" not in entry:
            raise self.fail(where, 'each [[methods]] needs a line such as name = "pdlnv".')
        self.known_keys(where, entry, _METHOD)
        name = self.text((*where, "name"), entry["name"])
        try:
            find_method(name)
        except ParameterError as problem:
            raise self.fail((*where, "name"), str(problem)) from None
        fixed, grid = entry.get("fixed", {}), entry.get("grid", {})
        for key, table in (("fixed", fixed), ("grid", grid)):
            if not isinstance(table, dict):
                raise self.fail((*where, key), f"{key} must be a table such as {{ lam = … }}, not {table!r}.")
        for parameter, value in fixed.items():
            self.check(("methods", number, "fixed", parameter), name, parameter, value)
        for parameter, values in grid.items():
            at = ("methods", number, "grid", parameter)
            for value in self.values(at, values):
                self.check(at, name, parameter, value)
            if parameter in fixed:
                raise self.fail(at, f"{parameter} is both fixed and in the grid. Keep one of them.")
        defaults = entry.get("defaults", True)
        if not isinstance(defaults, bool):
            raise self.fail((*where, "defaults"), f"defaults must be true or false, not {defaults!r}.")
        label = entry.get("label", "")
        if label:
            self.text((*where, "label"), label)
        return MethodPlan(name, label, fixed, grid, defaults)

    def check(self, where: tuple[str | int, ...], method: str, parameter: str, value: Any) -> None:
        try:
            settle_parameters(method, {parameter: value})
        except ParameterError as problem:
            raise self.fail(where, str(problem), value) from None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
