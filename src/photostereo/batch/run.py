"""``batch``: many captures, the same settings, one machine or a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from photostereo.batch.coordinator import Coordinator, Job
from photostereo.batch.find import Watch, find_captures, name_captures
from photostereo.batch.ledger import Ledger, Outcome, failure
from photostereo.batch.options import (
    HERE,
    SILENT_RUN,
    Progress,
    RunControl,
    RunOptions,
    worker_count,
)
from photostereo.batch.page import write_overview
from photostereo.batch.settings import check_settings, fingerprint, key_of
from photostereo.batch.worker import run_capture, warm_up
from photostereo.core.errors import CaptureError, PhotostereoError
from photostereo.pipeline.settings import Settings


def batch(
    places: Sequence[str | Path],
    out: str | Path,
    settings: Settings | None = None,
    *,
    options: RunOptions = HERE,
    watch: bool = False,
    quiet_seconds: float = 5.0,
    idle_seconds: float | None = None,
    command: Sequence[str] | None = None,
    control: RunControl = SILENT_RUN,
) -> Progress:
    """Solve many captures, or all that folders contain, with the same settings.

    Writes to ``out``: a folder of results for each capture, complete or not at all; ``batch.sqlite`` (a row per
    capture) and ``batch.jsonl`` (a line per outcome); ``index.html``, an overview with thumbnails. An interrupted
    batch continues where it stopped: captures solved from the same files with the same settings are not solved
    again. Settings that cannot work raise an error before anything is written.

    Parameters
    ----------
    places : sequence of path
        Captures, or folders that contain captures.
    out : path
        The folder of the results.
    settings : Settings, optional
        How to read, solve and write every capture.
    options : RunOptions
        Where the work is done, and how long it may take.
    watch : bool
        Continue with captures that appear later, until interrupted or ``idle_seconds`` have passed.
    quiet_seconds : float
        A capture that appears is taken when its files have not changed for this number of seconds.
    idle_seconds : float, optional
        End a watch after this number of seconds without a change.
    command : sequence of str, optional
        The command line, for ``summary.json``.
    control : RunControl
        Receives progress, and lines for the user.

    Returns
    -------
    Progress
        How many captures were solved and how many failed.
    """
    settings = settings or Settings()
    target = Path(out).expanduser().absolute()
    check_settings(settings)
    options.require(settings.device)
    find = partial(find_captures, [Path(place) for place in places], out=target)
    captures = find()
    if not captures and not watch:
        names = ", ".join(map(str, places))
        raise CaptureError(
            f"There are no captures in {names}. Name captures, or a folder that contains a "
            "folder (or an .npz or .lp file) for each.",
            code="no-captures",
            file=places[0],
            places=names,
        )
    words = list(command or ["photostereo", *sys.argv[1:]])
    run = _Batch(Ledger(target), settings, words, options, control)
    if watch:
        run.solve([], Watch(find, quiet=quiet_seconds, idle=idle_seconds))
    elif jobs := run.jobs(captures):
        run.solve(jobs, None)
    write_overview(run.ledger, target / "index.html")
    return run.tally


@dataclass(eq=False)
class _Batch:
    ledger: Ledger
    settings: Settings
    command: list[str]
    options: RunOptions
    control: RunControl
    names: dict[str, str] = field(default_factory=dict)  # of the captures so far, by their paths
    tally: Progress = field(default_factory=lambda: Progress(0, unit="captures"))

    def solve(self, jobs: list[Job], watch: Watch | None) -> None:
        """Run jobs, and those for captures that the watch finds."""
        if self.options.scheduler is None:
            warm_up(self.settings.method, self.settings.device)
        with self.options.connect(None if watch else len(jobs)) as executor:
            self.tally.total += len(jobs)
            coordinator = Coordinator(
                executor,
                write=self.write,
                fail=failure,
                tally=self.tally,
                options=self.options,
                more=None if watch is None else partial(self.news, watch),
                control=self.control,
            )
            if watch is not None:
                watch.stay()  # starting a cluster takes time
            self.control.stage("batch", len(jobs))
            try:
                coordinator.run(jobs)
            except KeyboardInterrupt:
                if watch is None:
                    raise
                self.control.say("Stopped watching; unfinished captures are solved next time.")
            finally:
                self.control.end()

    def news(self, watch: Watch) -> list[Job] | None:
        """Return jobs for captures that have appeared; None when the watch is over."""
        if self.tally.running:
            watch.stay()
        ready = watch.ready()
        return None if ready is None else self.jobs(ready)

    def jobs(self, paths: Sequence[Path]) -> list[Job]:
        """Return jobs for captures that are not in the ledger; the others are counted."""
        rows = self.ledger.rows()
        jobs = []
        share = 1
        if self.options.scheduler is None:
            share = self.options.workers or worker_count()
        self.names |= {row["path"]: row["name"] for row in rows.values()}
        for name, path in name_captures(paths, self.names).items():
            try:
                key = key_of(self.settings, f"{name} {fingerprint(path)}")
            except PhotostereoError as problem:
                self.ledger.write(name, path, "", failure(str(problem), problem.code))
                self.tally.total += 1
                self.tally.count("failed")
                continue
            row = rows.get(name)
            if row is not None and row["key"] == key and self.is_settled(row):
                self.tally.total += 1
                self.tally.count(row["status"])
                self.tally.failed_earlier += row["status"] != "done"
            else:
                out = self.ledger.folder / name
                call = partial(run_capture, path, out, key, self.settings, self.command, share)
                jobs.append(Job((name, path, key), call, name))
        return jobs

    def is_settled(self, row: dict[str, Any]) -> bool:
        if row["status"] == "done":
            return (self.ledger.folder / str(row["name"]) / "summary.json").is_file()
        return not self.options.retry_failed

    def write(self, job: tuple[str, Path, str], outcome: Outcome) -> None:
        self.ledger.write(*job, outcome)
        if outcome.status != "done":
            self.control.say(f"{job[0]} failed: {outcome.error}")
