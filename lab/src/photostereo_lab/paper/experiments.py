"""The paper's experiments by name: ``runs.toml`` converted to plans for the objects in the data folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from photostereo.core.errors import CaptureError, require_known
from photostereo.io.safe import read_toml
from photostereo_lab.sweeps.plan import CLEAN, CaptureSpec, Corruption, MethodPlan, Plan

#: Possible locations of the DiLiGenT objects and of the Harvard set in a folder.
_DILIGENT = ("diligent/pmsData", "DiLiGenT/pmsData", "pmsData", ".")
_HARVARD = ("harvard", "Harvard", ".")
#: The methods of the paper's comparisons, in the order of its tables.
ALL_METHODS = ("pdlnv", "dlnv", "pls", "cbr", "sbl", "rpca", "ls")
#: This package's own methods, which are not in the paper. They choose their strength from the
#: photographs and run once per scene, so they have no best of a grid.
OUR_METHODS = ("net", "dlnet")
OURS_NOTE = (
    "net and DLnet are this package's own methods, not the paper's: a reflectance model learned from synthetic "
    "pixels, without and with the dictionary. They have no grid, so they appear only among the defaults."
)
QUICK_NOTE = "Quick: small grids and few trials; the figures are rougher than those of a full run."


@cache
def _document() -> dict[str, Any]:
    return read_toml(Path(__file__).with_name("runs.toml"), "runs of the paper")


@dataclass(frozen=True)
class NamedRun:
    """One experiment of the paper: its name, and its entry in ``runs.toml``."""

    name: str
    facts: Mapping[str, Any]

    @property
    def title(self) -> str:
        return str(self.facts["title"])

    @property
    def source(self) -> str:
        """Where the experiment is in the paper, and what the paper finds."""
        return str(self.facts["source"])

    def plan(self, data: str | Path, quick: bool) -> tuple[Plan, list[str]]:
        """Return the plan, without trials if its objects are missing, and notes on differences from the paper."""
        catalog = Catalog(Path(data).expanduser())
        facts = {**self.facts, **(self.facts.get("quick", {}) if quick else {})}
        plan = Plan(
            self.name,
            catalog.find(facts["objects"]),
            uses_of(facts["methods"], facts.get("grid", "")),
            tuple(facts.get("images", [None])),
            (
                *(Corruption("poisson", float(level)) for level in facts.get("poisson", ())),
                *(Corruption("salt_pepper", level) for level in facts.get("salt_pepper", ())),
            )
            or (CLEAN,),
            tuple(range(facts.get("seeds", 1))),
            facts.get("task", "solve"),
        )
        notes = [QUICK_NOTE] if quick else []
        return plan, notes + catalog.notes()


#: All runs by name, in the paper's order.
NAMED_RUNS: dict[str, NamedRun] = {
    name: NamedRun(name, facts) for name, facts in _document()["runs"].items()
}


def find_run(name: str) -> NamedRun:
    """Return the run with that name; otherwise raise an error that lists the known ones."""
    require_known(name, NAMED_RUNS, "run")
    return NAMED_RUNS[name]


def uses_of(methods: str | list[dict[str, Any]], grid: str = "") -> tuple[MethodPlan, ...]:
    """Return the methods of a run with their grids.

    >>> [use.title for use in uses_of("pls", "quick")], len(list(uses_of("pls", "quick")[1].points()))
    (['pdlnv', 'pls'], 3)
    """
    if not isinstance(methods, str):
        return tuple(MethodPlan(**use) for use in methods)
    names = ALL_METHODS if methods == "all" else ("pdlnv", "pls")
    grids = _document()["grids"][grid] if grid else {}
    paper = tuple(MethodPlan(name, grid=grids.get(name, {})) for name in names)
    ours = tuple(MethodPlan(name, label=f"{name} (ours)", oracle=False) for name in OUR_METHODS)
    return paper + (ours if methods == "all" else ())


@dataclass
class Catalog:
    """The content of the data folder; records missing objects and their replacements."""

    #: contains ``diligent/pmsData/<object>PNG`` and ``harvard/<object>``, or one of the two sets
    #: itself
    root: Path
    missing: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            raise CaptureError(
                f"The data folder {self.root} does not exist. Give the folder that contains diligent/pmsData and harvard.",
                code="missing-data",
                file=self.root,
            )

    def find(self, objects: list[str]) -> tuple[CaptureSpec, ...]:
        wanted = OBJECTS if objects == ["all"] else tuple(objects)
        return tuple(
            spec for words in wanted if (spec := self._first(words.split(" or "))) is not None
        )

    def _first(self, names: list[str]) -> CaptureSpec | None:
        for name in names:
            if (spec := self._at(name)) is not None:
                self.missing |= dict.fromkeys(names[: names.index(name)], name)
                return spec
        self.missing |= dict.fromkeys(names, "")
        return None

    def _at(self, name: str) -> CaptureSpec | None:
        if name.startswith("harvard "):  # compared with least squares on its clean photographs
            folders = [self.root / place / name.removeprefix("harvard ") for place in _HARVARD]
            there = [folder for folder in folders if (folder / "Objects").is_dir()]
            if there:
                return CaptureSpec.at(there[0], name, "ls")
            return None
        folders = [self.root / place / f"{name}PNG" for place in _DILIGENT]
        there = [folder for folder in folders if folder.is_dir()]
        if there:
            return CaptureSpec.at(there[0], name)
        return None

    def notes(self) -> list[str]:
        replaced = {name: other for name, other in self.missing.items() if other}
        notes = [
            f"{name} is not in the data folder; {other} takes its place."
            for name, other in replaced.items()
        ]
        left_out = [name for name in self.missing if name not in replaced]
        return notes + (
            [f"Not in the data folder and left out: {', '.join(left_out)}."] if left_out else []
        )


def _tables() -> dict[str, dict[str, dict[str, float]]]:
    tables = {}
    for name, rows in read_toml(
        Path(__file__).with_name("published.toml"), "tables of the paper"
    ).items():
        methods = rows.pop("methods")
        tables[name] = {key: dict(zip(methods, row, strict=True)) for key, row in rows.items()}
    return tables


PUBLISHED = _tables()
#: The ten objects of DiLiGenT, in the paper's order.
OBJECTS = tuple(PUBLISHED["MEAN_ERROR"])
