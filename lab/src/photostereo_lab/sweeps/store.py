"""The results: one SQLite file, one row per trial, written as soon as the trial ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.batch.database import Database
from photostereo.io.atomic import write_bytes
from photostereo.io.json_text import json_text
from photostereo.io.schema import NUMBER
from photostereo_lab.sweeps.plan import Plan, Trial

_ERRORS = (
    "mean", "median", "p90", "p95", "max", "within_5deg", "within_10deg", "within_30deg",
    "pixels", "unknown_truth",
)  # fmt: skip
_ROW = {
    "hash": str, "capture": str, "fingerprint": str, "reference": str, "images?": int, "corruption": str,
    "level": NUMBER, "seed?": int, "method": str, "parameters": dict, "task": str, "status": str, "error?": str,
    **{f"{name}?": NUMBER for name in _ERRORS},
    "outcome?": str, "iterations?": int, "settled?": dict, "extra?": {str: object}, "seconds?": NUMBER,
    "stages?": dict, "versions?": dict, "host?": dict, "finished?": str,
}  # fmt: skip
_PLAN = {"name": str, "plan": dict, "facts": {"notes": [str]}, "started": str}


@dataclass(frozen=True)
class Outcome:
    """What a worker reports of one trial; plain data."""

    status: str  #: ``"done"`` or ``"failed"``
    error: str | None = None  #: what went wrong, in words
    #: the fields of :class:`~photostereo.diagnosis.metrics.ErrorSummary`
    errors: Mapping[str, float] = field(default_factory=dict)
    #: how the solve ended
    outcome: str | None = None
    iterations: int | None = None
    #: the parameters that the method ran with, defaults and automatic choices included
    settled: Mapping[str, Any] = field(default_factory=dict)
    #: further figures by name: processor seconds, those of the prior at the end, those of tasks other than
    #: ``solve``
    extra: Mapping[str, float] = field(default_factory=dict)
    #: wall-clock time of the trial without loading, and by stage
    seconds: float | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    #: of the software and the machine
    versions: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    arrays: bytes | None = None  #: an ``.npz`` file as bytes, if the trial was to keep its maps


class Store:
    """The results database of an output folder, ``results.sqlite``, and the maps beside it, ``arrays/HASH.npz``."""

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "results.sqlite"
        self._database = Database(self.path, {"trials": _ROW, "plans": _PLAN}, "results", read_only=read_only)

    def finished(self, *, failed_too: bool = True) -> set[str]:
        """Hashes of the trials that need not run again."""
        condition = "" if failed_too else "WHERE status = 'done'"
        return {row["hash"] for row in self._database.rows("trials", condition)}

    def write(self, trial: Trial, outcome: Outcome) -> None:
        """Write a row, in place of an older one; its maps first, so that a row never promises what is not there."""
        if outcome.arrays is not None:
            write_bytes(self.arrays_path(trial.hash), outcome.arrays)
        facts = {**vars(trial.capture), **vars(trial), **vars(outcome), **outcome.errors}
        facts |= {
            "hash": trial.hash,
            "capture": trial.capture.name,
            "corruption": trial.corruption.kind,
            "level": trial.corruption.level,
            "parameters": trial.plain_parameters,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._database.put("trials", {(key := name.removesuffix("?")): facts.get(key) for name in _ROW})

    def rows(self, hashes: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Rows by hash; all of them if no hashes are given."""
        found = {row["hash"]: row for row in self._database.rows("trials")}
        return found if hashes is None else {key: found[key] for key in {*hashes} & found.keys()}

    def keep_plan(self, plan: Plan, facts: Mapping[str, Any]) -> None:
        """Keep a plan and what was said about it, so that its figures can be drawn again from the store alone."""
        # As text: its order of methods and parameters is that of the tables.
        texts = {"plan": json_text(plan.as_dict()), "facts": json_text(dict(facts))}
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self._database.put("plans", {"name": plan.name, **texts, "started": now})

    def plan(self, name: str) -> tuple[Plan, dict[str, Any]] | None:
        """A kept plan and its facts."""
        rows = self._database.rows("plans", "WHERE name = ?", name)
        return (Plan.from_dict(rows[0]["plan"]), rows[0]["facts"]) if rows else None

    def plan_names(self) -> list[str]:
        """Names of the kept plans."""
        return [row["name"] for row in self._database.rows("plans", "ORDER BY started")]

    def arrays_path(self, key: str) -> Path:
        """Where the maps of a trial are, if they were kept."""
        return self.folder / "arrays" / f"{key}.npz"
