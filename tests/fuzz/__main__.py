"""``python -m fuzz --count 10000 --seed 0``: deal out the runs, count, show what failed."""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .further import KINDS, choose

#: Seconds after which a run is given up, also on a machine that is busy with other things.
PATIENCE = 240.0
_HERE = Path(__file__).resolve().parent


def fuzz(
    count: int,
    seed: int,
    *,
    first: int = 0,
    workers: int = 2,
    home: Path,
    keep: bool = False,
    seconds: float = float("inf"),
    kind: str = "",
) -> list[dict[str, Any]]:
    """Run the cases ``first`` … ``first + count − 1``, or those of them of one kind, and return their reports."""
    templates = home / "templates"
    templates.mkdir(parents=True)
    (home / "temporary").mkdir()
    environment = {
        **os.environ,
        "MPLCONFIGDIR": str(home / "matplotlib"),
        "HOME": str(home),
        "TMPDIR": str(home / "temporary"),
        **dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    }
    build = f"from pathlib import Path; from fuzz.captures import build_templates as b; b(Path({str(templates)!r}))"
    subprocess.run([sys.executable, "-c", build], check=True, env=environment, cwd=_HERE.parent)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(first, first + count):
        if not kind or (number % 2 and choose(np.random.default_rng([seed, number]))[0] == kind):
            waiting.put(number)
    reports: list[dict[str, Any]] = []
    began = time.monotonic()

    def serve(place: Path) -> None:
        worker: _Worker | None = None
        while not waiting.empty() and time.monotonic() - began < seconds:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                break
            worker = worker or _Worker(seed, templates, place, environment, keep)
            report = worker.ask(number)
            if report is None:
                report = {
                    "number": number,
                    "kind": "?",
                    "code": None,
                    "wrong": [worker.end()],
                    "error": "",
                }
                worker = None
            reports.append(report)
            for complaint in report["wrong"]:
                sys.stdout.write(
                    f"{number}: {complaint}: {report.get('spoilt')} {report.get('words')}\n"
                )
            if len(reports) % 500 == 0:
                sys.stdout.write(f"{len(reports)} of {count} in {time.monotonic() - began:.0f} s\n")
                sys.stdout.flush()
        if worker is not None:
            worker.end()

    threads = [threading.Thread(target=serve, args=(home / f"work-{k}",)) for k in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(reports, key=lambda report: int(report["number"]))


class _Worker:
    """A process that runs cases; killed where one does not end."""

    def __init__(
        self, seed: int, templates: Path, place: Path, environment: dict[str, str], keep: bool
    ) -> None:
        place.mkdir(parents=True, exist_ok=True)
        words = [
            sys.executable,
            "-m",
            "fuzz.worker",
            str(seed),
            str(templates),
            str(place),
            *(["keep"] if keep else []),
        ]
        self._process = subprocess.Popen(
            words,
            cwd=_HERE.parent,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._asked = False

    def ask(self, number: int) -> dict[str, Any] | None:
        assert self._process.stdin is not None and self._process.stdout is not None
        # The first has to load everything, and perhaps to compile it.
        patience = PATIENCE * (10 if not self._asked else 1)
        self._asked = True
        timer = threading.Timer(patience, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        return json.loads(line) if line else None

    def end(self) -> str:
        """Close the process; how it ended."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        code = self._process.wait()
        return (
            f"did not end within {PATIENCE:.0f} s"
            if code == -signal.SIGKILL
            else f"crashed with code {code}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no run after this time"
    )
    parser.add_argument("--report", metavar="FILE", help="write what failed and the counts as JSON")
    parser.add_argument(
        "--kind", default="", choices=list(KINDS), help="only these runs of the newer commands"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="work here and keep every run's folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="photostereo-fuzz-") as temporary:
        home = Path(chosen.keep or temporary).resolve()
        reports = fuzz(
            chosen.count,
            chosen.seed,
            first=chosen.first,
            workers=chosen.workers,
            home=home,
            keep=bool(chosen.keep),
            seconds=chosen.seconds,
            kind=chosen.kind,
        )
    if chosen.report:
        failed = [report for report in reports if report["wrong"]]
        facts = {"seed": chosen.seed, "counts": count_kinds(reports), "failed": failed[:400]}
        Path(chosen.report).write_text(json.dumps(facts, indent=1))
    return tell(reports)


def count_kinds(reports: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By kind of run: how many, with which exit codes, how many failed, and the mean of the processor seconds."""
    counts = {}
    for kind in sorted({report["kind"] for report in reports}):
        own = [report for report in reports if report["kind"] == kind]
        codes = Counter(str(report["code"]) for report in own)
        failed, spent = (
            sum(bool(report["wrong"]) for report in own),
            sum(r.get("seconds", 0) for r in own),
        )
        counts[kind] = {
            "runs": len(own),
            "codes": dict(codes),
            "failed": failed,
            "seconds": round(spent / len(own), 2),
        }
    return counts


def tell(reports: list[dict[str, Any]]) -> int:
    """Counts by exit code, then every kind of failure once with its last words; by kind; 1 if anything failed."""
    codes = Counter(report["code"] for report in reports)
    failed = [report for report in reports if report["wrong"]]
    sys.stdout.write(
        f"{len(reports)} runs: " + ", ".join(f"exit code {c}: {n}" for c, n in codes.most_common())
    )
    sys.stdout.write(f"; {len(failed)} failed\n")
    for kind, facts in count_kinds(reports).items():
        sys.stdout.write(f"  {kind}: {facts}\n")
    shown: set[str] = set()
    for report in failed:
        last = report["error"].strip().splitlines()[-1:] or [""]
        if (kind := f"{report['wrong'][0]} {last[0][:60]}") not in shown:
            shown.add(kind)
            sys.stdout.write(
                f"\n--- run {report['number']}: {report['wrong']}\n{report.get('spoilt')}\n"
            )
            sys.stdout.write(f"{report.get('words')}\n{report['error']}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
