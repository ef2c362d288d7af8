"""The results: one SQLite file, one row per trial, written the moment the trial ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photostereo.batch.database import Database
from photostereo.batch.fingerprint import canonical_json
from photostereo.io.atomic import write_bytes
from photostereo.io.json_text import json_text
from photostereo.lab.sweeps.plan import Plan
from photostereo.lab.sweeps.trial import Trial

_ERRORS = (
    "mean", "median", "p90", "p95", "max", "within_5deg", "within_10deg", "within_30deg",
    "pixels", "unknown_truth",
)  # fmt: skip

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS trials (
    hash TEXT PRIMARY KEY,
    capture TEXT NOT NULL, fingerprint TEXT NOT NULL, reference TEXT NOT NULL,
    images INTEGER, corruption TEXT NOT NULL, level REAL NOT NULL, seed INTEGER,
    method TEXT NOT NULL, parameters TEXT NOT NULL, task TEXT NOT NULL,
    status TEXT NOT NULL, error TEXT,
    {", ".join(f"{name} REAL" for name in _ERRORS)},
    outcome TEXT, iterations INTEGER, settled TEXT, extra TEXT,
    seconds REAL, stages TEXT,
    versions TEXT, host TEXT, finished TEXT
);
CREATE TABLE IF NOT EXISTS plans (
    name TEXT PRIMARY KEY, plan TEXT NOT NULL, facts TEXT NOT NULL, started TEXT NOT NULL
);
"""
_COLUMNS = (
    "hash", "capture", "fingerprint", "reference", "images", "corruption", "level", "seed", "method",
    "parameters", "task", "status", "error", *_ERRORS, "outcome", "iterations", "settled",
    "extra", "seconds", "stages", "versions", "host", "finished",
)  # fmt: skip
_JSON = ("parameters", "settled", "extra", "stages", "versions", "host")


@dataclass(frozen=True)
class Outcome:
    """What a worker reports of one trial; plain data.

    Attributes
    ----------
    status : ``"done"`` or ``"failed"``
    error : what went wrong, in words
    errors : the fields of :class:`~photostereo.diagnosis.metrics.ErrorSummary`
    outcome, iterations : how the solve ended
    settled : the parameters that the method ran with, defaults and automatic choices included
    extra : further figures by name: processor seconds, those of the prior at the end, those of tasks other than ``solve``
    seconds, stages : wall-clock time of the trial without loading, and by stage
    versions, host : of the software and the machine
    arrays : an ``.npz`` file as bytes, where the trial was to keep its maps
    """

    status: str
    error: str | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    outcome: str | None = None
    iterations: int | None = None
    settled: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    arrays: bytes | None = None


class Store:
    """The results database of an output folder, and the maps beside it.

    Parameters
    ----------
    folder : made where it is missing; holds ``results.sqlite`` and ``arrays/HASH.npz``
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "results.sqlite"
        self._database = Database(self.path, _SCHEMA, "results")

    def finished(self, *, failed_too: bool = True) -> set[str]:
        """Hashes of the trials that need not run again."""
        query = "SELECT hash FROM trials" + ("" if failed_too else " WHERE status = 'done'")
        return {row["hash"] for row in self._database.ask(query)}

    def write(self, trial: Trial, outcome: Outcome) -> None:
        """One row, in place of an older one; its maps first, so that a row never promises what is not
        there.
        """
        if outcome.arrays is not None:
            self._write_arrays(trial.hash, outcome.arrays)
        values = {
            "hash": trial.hash,
            "capture": trial.capture.name,
            "fingerprint": trial.capture.fingerprint,
            "reference": trial.capture.reference,
            "images": trial.images,
            "corruption": trial.corruption.kind,
            "level": trial.corruption.level,
            "seed": trial.seed,
            "method": trial.method,
            "parameters": trial.as_dict()["parameters"],
            "task": trial.task,
            "status": outcome.status,
            "error": outcome.error,
            **{name: outcome.errors.get(name) for name in _ERRORS},
            "outcome": outcome.outcome,
            "iterations": outcome.iterations,
            "settled": dict(outcome.settled),
            "extra": dict(outcome.extra),
            "seconds": outcome.seconds,
            "stages": dict(outcome.stages),
            "versions": dict(outcome.versions),
            "host": dict(outcome.host),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        row = {name: canonical_json(values[name]) if name in _JSON else values[name] for name in _COLUMNS}
        self._database.put("trials", row)

    def rows(self, hashes: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Rows by hash; all of them where no hashes are given."""
        wanted = None if hashes is None else set(hashes)
        result = {}
        for row in self._database.ask("SELECT * FROM trials"):
            if wanted is None or row["hash"] in wanted:
                facts = dict(row)
                for name in _JSON:
                    facts[name] = json.loads(facts[name])
                result[facts["hash"]] = facts
        return result

    def keep_plan(self, plan: Plan, facts: Mapping[str, Any]) -> None:
        """Remember a plan and what was said about it, so that its figures can be drawn again from the store
        alone.
        """
        # Not sorted: the order of methods and parameters is that of the tables.
        texts = {"plan": json_text(plan.as_dict()), "facts": json_text(dict(facts))}
        self._database.put("plans", {"name": plan.name, **texts, "started": _now()})

    def plan(self, name: str) -> tuple[Plan, dict[str, Any]] | None:
        """A remembered plan and its facts."""
        rows = self._database.ask("SELECT plan, facts FROM plans WHERE name = ?", name)
        return (Plan.from_dict(json.loads(rows[0]["plan"])), json.loads(rows[0]["facts"])) if rows else None

    def plan_names(self) -> list[str]:
        """Names of the remembered plans."""
        return [row["name"] for row in self._database.ask("SELECT name FROM plans ORDER BY started")]

    def arrays_path(self, key: str) -> Path:
        """Where the maps of a trial are, if they were kept."""
        return self.folder / "arrays" / f"{key}.npz"

    def _write_arrays(self, key: str, content: bytes) -> None:
        write_bytes(self.arrays_path(key), content)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
