"""The paper's qualitative claims, and whether each holds on the rows of a store.

Only oracle values are compared, as in the paper. A claim whose run is not in the store is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from photostereo_lab.paper.reports import ROUNDING, done_rows, histories, sparsity_scan
from photostereo_lab.sweeps.outputs import (
    RunOutputs,
    average_of,
    captures_of,
    labels_of,
    name_of,
    unique,
)
from photostereo_lab.sweeps.plan import Cell
from photostereo_lab.sweeps.store import Store

#: The paper's own methods.
OURS = ("dlnv", "pdlnv")


class Claim(NamedTuple):
    """A statement, whether it holds here, and the supporting figures."""

    run: str  #: name of the run it is checked on
    statement: str
    holds: bool
    evidence: str  #: the figures


#: Statement, whether it holds, evidence.
Found = Iterator[tuple[str, bool, str]]


def check_claims(store: Store) -> list[Claim]:
    """Check every claim whose run is in the store."""
    claims: list[Claim] = []
    for name, check in _CHECKS.items():
        entry = store.plan(name)
        if entry is None:
            continue
        plan, _ = entry
        out = RunOutputs(name, name, plan, store, store.folder / name)
        if plan.trials and out.rows:
            claims += [Claim(name, *claim) for claim in check(out)]
    return claims


def claims_table(claims: Sequence[Claim]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table of claims."""
    rows = []
    for claim in claims:
        rows.append([claim.run, claim.statement, "yes" if claim.holds else "no", claim.evidence])
    return ["run", "claim", "holds", "figures"], rows


def _mean(out: RunOutputs, label: str, **where: float | str | None) -> float:
    """Return the mean of the oracle over cells with this capture, images or level."""

    def matches(cell: Cell) -> bool:
        scene = {
            "capture": cell.capture.name,
            "images": cell.images,
            "level": cell.corruption.level,
        }
        return cell.label == label and all(scene[name] == value for name, value in where.items())

    return average_of(out.results, "oracle", where=matches).mean


def _levels(out: RunOutputs) -> list[float]:
    """Return the levels of noise of a run, in order."""
    return sorted({cell.corruption.level for cell in out.plan.cells})


def _others(out: RunOutputs, **where: float | str | None) -> dict[str, float]:
    """Return the means of the methods that the paper compares with its own."""
    labels = [label for label in labels_of(out.plan, "oracle") if label not in OURS]
    return {label: _mean(out, label, **where) for label in labels}


def _named(values: dict[str, float]) -> str:
    """Return values by method as text."""
    return ", ".join(f"{name_of(label)} {value:.2f}" for label, value in values.items())


def _low_snr(out: RunOutputs) -> Found:
    for level in _levels(out):
        if level >= 10:
            continue
        ours = {label: _mean(out, label, level=level) for label in OURS}
        others = _others(out, level=level)
        statement = f"At {level:g} dB DLNV and PDLNV are below all other methods"
        holds = max(ours.values()) < min(others.values())
        yield statement, holds, f"{_named(ours)}; {_named(others)}"


def _harvard_cat(out: RunOutputs) -> Found:
    ours = _mean(out, "dlnv")
    others = _others(out)
    margin = min(others.values()) - ours
    evidence = f"DLNV {ours:.2f}; {_named(others)}; margin {margin:.2f}"
    yield "At 5 dB DLNV is at least 5 degrees below all other methods", margin >= 5, evidence


def _hippo(out: RunOutputs) -> Found:
    top = max(_levels(out))
    errors = {label: _mean(out, label, level=top) for label in ("ls", *OURS)}
    statement = f"The error goes to 0 at high SNR: below 2 degrees at {top:g} dB"
    yield statement, max(errors.values()) < 2, _named(errors)
    yield from _low_snr(out)


def _salt_pepper(out: RunOutputs) -> Found:
    gains = {}
    for level in _levels(out):
        if level > 0.1:
            gains[level] = _mean(out, "pls", level=level) - _mean(out, "pdlnv", level=level)
    evidence = ", ".join(f"{100 * level:g} %: {gain:.2f} lower" for level, gain in gains.items())
    yield "Over 10 % salt and pepper PDLNV is below PLS", min(gains.values()) > 0, evidence


def _never_worse(out: RunOutputs) -> Found:
    gaps = {}
    for name in captures_of(out.plan):
        gaps[name] = _mean(out, "pdlnv", capture=name) - _mean(out, "pls", capture=name)
    evidence = ", ".join(f"{name} {gap:+.2f}" for name, gap in gaps.items())
    statement = "PDLNV is no worse than PLS (by more than 0.05) on any object"
    yield statement, max(gaps.values()) <= 0.05, evidence


def _few_images(out: RunOutputs) -> Found:
    labels = labels_of(out.plan, "oracle")
    for capture in captures_of(out.plan):
        best = {}
        for count in unique(cell.images for cell in out.plan.cells):
            best[count] = min(
                labels, key=lambda label: _mean(out, label, capture=capture, images=count)
            )
        wins = sum(label == "pdlnv" for label in best.values())
        evidence = ", ".join(f"{count}: {name_of(label)}" for count, label in best.items())
        statement = f"PDLNV is lowest for most numbers of photographs on {capture}"
        yield statement, wins > len(best) / 2, f"lowest at {evidence}"


def _convergence(out: RunOutputs) -> Found:
    runs = histories(out)
    if runs:
        costs = [maps["history_cost"] for _, maps in runs.values()]
        rise = max(float((np.diff(cost) / cost[:-1]).max()) for cost in costs)
        evidence = f"largest relative change of any step {rise:.1e}"
        yield "The cost falls at every iteration", rise <= ROUNDING, evidence
        errors = {int(label.split()[0]): float(row["mean"]) for label, (row, _) in runs.items()}
        sizes = [size for size in sorted(errors) if size <= 192]
        falls = all(errors[b] <= errors[a] for a, b in pairwise(sizes))
        evidence = ", ".join(f"{size} atoms {error:.2f}" for size, error in sorted(errors.items()))
        yield "A larger dictionary is better up to 192 atoms", falls, evidence
    scan = sparsity_scan(out)
    if scan:
        share, error, _ = min(scan, key=lambda point: abs(point[0] - 0.1))
        best_share, best, _ = min(scan, key=lambda point: point[1])
        evidence = (
            f"{error:.2f} at {100 * share:.1f} %, lowest {best:.2f} at {100 * best_share:.1f} %"
        )
        yield (
            "10 % non-zeros is near the best sparsity (within 0.5 degree)",
            error - best <= 0.5,
            evidence,
        )


def _pieces(out: RunOutputs) -> Found:
    errors = {label: _mean(out, label) for label in labels_of(out.plan)}
    evidence = ", ".join(f"{label}: {value:.2f}" for label, value in errors.items())
    yield "p = 2 is best on average", min(errors, key=lambda m: errors[m]) == "p = 2", evidence


def _representation(out: RunOutputs) -> Found:
    for cell in out.plan.cells:
        figures = [row["extra"] for row in done_rows(out, cell)]
        sparse = [figure for figure in figures if figure["nonzeros"] <= 0.25]
        if sparse:
            best = min(sparse, key=lambda figure: figure["representation_error"])
            share = 100 * best["nonzeros"]
            error = 100 * best["representation_error"]
            statement = (
                f"{cell.capture.name}: the error falls below 5 % while at most a quarter of B is "
                "not zero"
            )
            yield statement, error < 5, f"{error:.2f} % at {share:.1f} %"


#: The checks by the name of their run.
_CHECKS: dict[str, Callable[[RunOutputs], Found]] = {
    "table-pls": _never_worse,
    "representation": _representation,
    "few-images": _few_images,
    "salt-pepper": _salt_pepper,
    "poisson": _low_snr,
    "poisson-all": _low_snr,
    "harvard-hippo": _hippo,
    "harvard-cat": _harvard_cat,
    "convergence": _convergence,
    "pieces": _pieces,
}
