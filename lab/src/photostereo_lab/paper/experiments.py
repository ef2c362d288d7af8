"""The paper's experiments by name.

``runs.toml`` is converted to plans for the objects in the data folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from photostereo.core.errors import CaptureError, require_known
from photostereo.io.safe import read_toml
from photostereo_lab.sweeps.plan import CLEAN, CaptureSpec, Corruption, MethodPlan, Plan

#: Possible locations of the DiLiGenT objects in a folder.
_DILIGENT = ("diligent/pmsData", "DiLiGenT/pmsData", "pmsData", ".")
#: Possible locations of the Harvard set in a folder.
_HARVARD = ("harvard", "Harvard", ".")
#: The methods of the paper's comparisons, in the order of its tables.
ALL_METHODS = ("pdlnv", "dlnv", "pls", "cbr", "sbl", "rpca", "ls")
#: This package's own methods, which are not in the paper. They choose their strength from the
#: photographs and run once per scene, so they have no best of a grid.
OUR_METHODS = ("net", "dlnet")
#: What every page says about them.
OURS_NOTE = (
    "net and DLnet are this package's own methods, not the paper's: a reflectance model learned "
    "from synthetic pixels, without and with the dictionary. They have no grid, so they appear "
    "only among the defaults."
)
#: What the tables and figures of a quick run say.
QUICK_NOTE = "Quick: small grids and few trials; the figures are rougher than those of a full run."


@cache
def _document() -> dict[str, Any]:
    """Return the content of ``runs.toml``."""
    return read_toml(Path(__file__).with_name("runs.toml"), "runs of the paper")


@dataclass(frozen=True)
class NamedRun:
    """One experiment of the paper: its name, and its entry in ``runs.toml``."""

    name: str
    facts: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The title of its tables and figures."""
        return str(self.facts["title"])

    @property
    def source(self) -> str:
        """Where the experiment is in the paper, and what the paper finds."""
        return str(self.facts["source"])

    def plan(self, data: str | Path, quick: bool) -> tuple[Plan, list[str]]:
        """Return the plan and notes on differences from the paper.

        Parameters
        ----------
        data : path
            The data folder; the plan has no trials if its objects are missing there.
        quick : bool
            Use small grids and few trials.
        """
        catalog = Catalog(Path(data).expanduser())
        entry = dict(self.facts)
        notes = []
        if quick:
            entry.update(self.facts.get("quick", {}))
            notes.append(QUICK_NOTE)
        noises = [Corruption("poisson", float(level)) for level in entry.get("poisson", ())]
        noises += [Corruption("salt_pepper", level) for level in entry.get("salt_pepper", ())]
        plan = Plan(
            name=self.name,
            captures=catalog.find(entry["objects"]),
            methods=uses_of(entry["methods"], entry.get("grid", "")),
            images=tuple(entry.get("images", [None])),
            corruptions=tuple(noises) or (CLEAN,),
            seeds=tuple(range(entry.get("seeds", 1))),
            task=entry.get("task", "solve"),
        )
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

    >>> uses = uses_of("pls", "quick")
    >>> [use.title for use in uses], len(list(uses[1].points()))
    (['pdlnv', 'pls'], 3)
    """
    if not isinstance(methods, str):
        return tuple(MethodPlan(**use) for use in methods)
    grids = _document()["grids"][grid] if grid else {}
    names = ALL_METHODS if methods == "all" else ("pdlnv", "pls")
    uses = [MethodPlan(name, grid=grids.get(name, {})) for name in names]
    if methods == "all":
        for name in OUR_METHODS:
            uses.append(MethodPlan(name, label=f"{name} (ours)", oracle=False))
    return tuple(uses)


@dataclass
class Catalog:
    """The content of the data folder; records missing objects and their replacements."""

    #: contains ``diligent/pmsData/<object>PNG`` and ``harvard/<object>``, or one of the two sets
    #: itself
    root: Path
    #: objects that are missing, and those that take their places, or ``""``
    missing: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            raise CaptureError(
                f"The data folder {self.root} does not exist. Give the folder that contains "
                "diligent/pmsData and harvard.",
                code="missing-data",
                file=self.root,
            )

    def find(self, objects: list[str]) -> tuple[CaptureSpec, ...]:
        """Return the objects that are there; ``"cat or pot1"`` is the first of them that is."""
        if objects == ["all"]:
            objects = list(OBJECTS)
        specs = [self._first(choice.split(" or ")) for choice in objects]
        return tuple(spec for spec in specs if spec is not None)

    def _first(self, names: list[str]) -> CaptureSpec | None:
        """Return the first object that is there, and record those that are not."""
        for number, name in enumerate(names):
            spec = self._at(name)
            if spec is not None:
                self.missing |= dict.fromkeys(names[:number], name)
                return spec
        self.missing |= dict.fromkeys(names, "")
        return None

    def _at(self, name: str) -> CaptureSpec | None:
        """Return an object, if it is there."""
        if name.startswith("harvard "):  # compared with least squares on its clean photographs
            for place in _HARVARD:
                folder = self.root / place / name.removeprefix("harvard ")
                if (folder / "Objects").is_dir():
                    return CaptureSpec.at(folder, name, "ls")
            return None
        for place in _DILIGENT:
            folder = self.root / place / f"{name}PNG"
            if folder.is_dir():
                return CaptureSpec.at(folder, name)
        return None

    def notes(self) -> list[str]:
        """Describe what is missing."""
        notes = []
        absent = []
        for name, other in self.missing.items():
            if other:
                notes.append(f"{name} is not in the data folder; {other} takes its place.")
            else:
                absent.append(name)
        if absent:
            notes.append(f"Not in the data folder and left out: {', '.join(absent)}.")
        return notes


def _tables() -> dict[str, dict[str, dict[str, float]]]:
    document = read_toml(Path(__file__).with_name("published.toml"), "tables of the paper")
    tables = {}
    for name, rows in document.items():
        methods = rows.pop("methods")
        tables[name] = {key: dict(zip(methods, row, strict=True)) for key, row in rows.items()}
    return tables


#: The paper's tables: name → object → method → value.
PUBLISHED = _tables()
#: The ten objects of DiLiGenT, in the paper's order.
OBJECTS = tuple(PUBLISHED["MEAN_ERROR"])
