"""The results: one SQLite file with one row per trial, written when the trial ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.io.atomic import write_bytes
from photostereo.io.json_text import json_text
from photostereo.io.schema import NUMBER
from photostereo_lab.sweeps.database import Database
from photostereo_lab.sweeps.plan import Plan, Trial

#: Columns of the errors: fields of :class:`~photostereo.diagnosis.metrics.ErrorSummary`.
_ERRORS = (
    "mean", "median", "p90", "p95", "max", "within_5deg", "within_10deg", "within_30deg",
    "pixels", "unknown_truth",
)  # fmt: skip
#: The schema of a trial's row.
_ROW = {
    "hash": str, "capture": str, "fingerprint": str, "reference": str, "images?": int,
    "corruption": str, "level": NUMBER, "seed?": int, "method": str, "parameters": dict,
    "task": str, "status": str, "error?": str,
    **{f"{name}?": NUMBER for name in _ERRORS},
    "outcome?": str, "iterations?": int, "settled?": dict, "extra?": {str: object},
    "seconds?": NUMBER, "stages?": dict, "versions?": dict, "host?": dict, "finished?": str,
}  # fmt: skip
#: The schema of a stored plan.
_PLAN = {"name": str, "plan": dict, "facts": {"notes": [str]}, "started": str}


@dataclass(frozen=True)
class Outcome:
    """What a worker reports about one trial; plain data."""

    status: str  #: ``"done"`` or ``"failed"``
    error: str | None = None  #: error message
    #: the fields of :class:`~photostereo.diagnosis.metrics.ErrorSummary`
    errors: Mapping[str, float] = field(default_factory=dict)
    outcome: str | None = None  #: how the solve ended
    iterations: int | None = None  #: of the solve
    #: the parameters used by the method, including defaults and automatic choices
    settled: Mapping[str, Any] = field(default_factory=dict)
    #: further values by name: processor seconds, final values of the prior, results of tasks other
    #: than ``solve``
    extra: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None  #: wall-clock time of the trial without loading
    stages: Mapping[str, float] = field(default_factory=dict)  #: the same by stage
    versions: Mapping[str, str] = field(default_factory=dict)  #: of the software
    host: Mapping[str, Any] = field(default_factory=dict)  #: the machine
    arrays: bytes | None = None  #: an ``.npz`` file as bytes, if the trial keeps its maps


class Store:
    """The results of an output folder: ``results.sqlite``, and maps in ``arrays/HASH.npz``."""

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "results.sqlite"
        self._database = Database(
            self.path, {"trials": _ROW, "plans": _PLAN}, "results", read_only=read_only
        )

    def finished(self, *, failed_too: bool = True) -> set[str]:
        """Return the hashes of trials that need not run again."""
        condition = "" if failed_too else "WHERE status = 'done'"
        return {row["hash"] for row in self._database.rows("trials", condition)}

    def write(self, trial: Trial, outcome: Outcome) -> None:
        """Write a row, replacing an older one.

        Maps are written first, so that a row never refers to missing maps.
        """
        if outcome.arrays is not None:
            write_bytes(self.arrays_path(trial.hash), outcome.arrays)
        entries = {**vars(trial.capture), **vars(trial), **vars(outcome), **outcome.errors}
        entries |= {
            "hash": trial.hash,
            "capture": trial.capture.name,
            "corruption": trial.corruption.kind,
            "level": trial.corruption.level,
            "parameters": trial.plain_parameters,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        columns = [name.removesuffix("?") for name in _ROW]
        self._database.put("trials", {name: entries.get(name) for name in columns})

    def rows(self, hashes: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Return rows by hash; all of them if no hashes are given."""
        rows = {row["hash"]: row for row in self._database.rows("trials")}
        if hashes is None:
            return rows
        return {key: rows[key] for key in {*hashes} & rows.keys()}

    def keep_plan(self, plan: Plan, facts: Mapping[str, Any]) -> None:
        """Store a plan and the notes about it: its figures can be redrawn from the store alone."""
        # As text, to keep the order of methods and parameters for the tables.
        texts = {"plan": json_text(plan.as_dict()), "facts": json_text(dict(facts))}
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self._database.put("plans", {"name": plan.name, **texts, "started": now})

    def plan(self, name: str) -> tuple[Plan, dict[str, Any]] | None:
        """Return a stored plan and its facts."""
        rows = self._database.rows("plans", "WHERE name = ?", name)
        if not rows:
            return None
        return Plan.from_dict(rows[0]["plan"]), rows[0]["facts"]

    def plan_names(self) -> list[str]:
        """Return the names of the stored plans."""
        return [row["name"] for row in self._database.rows("plans", "ORDER BY started")]

    def arrays_path(self, key: str) -> Path:
        """Return where the maps of a trial are, if they were kept."""
        return self.folder / "arrays" / f"{key}.npz"
