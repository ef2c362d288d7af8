"""The paper's qualitative claims, checked on the rows of a store: whether each holds, and by how much.

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

OURS = ("dlnv", "pdlnv")


class Claim(NamedTuple):
    """A statement, whether it holds here, and the supporting figures."""

    run: str
    statement: str
    holds: bool
    evidence: str


#: Statement, whether it holds, evidence.
Found = Iterator[tuple[str, bool, str]]


def check_claims(store: Store) -> list[Claim]:
    """Check every claim whose run is in the store."""
    found: list[Claim] = []
    for name, check in _CHECKS.items():
        remembered = store.plan(name)
        if remembered is not None and remembered[0].trials:
            out = RunOutputs(name, name, remembered[0], store, store.folder / name)
            found += [Claim(name, *claim) for claim in check(out)] if out.rows else []
    return found


def claims_table(claims: Sequence[Claim]) -> tuple[list[str], list[list[str]]]:
    rows = [[c.run, c.statement, "yes" if c.holds else "no", c.evidence] for c in claims]
    return ["run", "claim", "holds", "figures"], rows


def _mean(out: RunOutputs, label: str, **where: float | str | None) -> float:
    """Mean of the oracle over the matching cells: capture, images, level."""

    def fits(cell: Cell) -> bool:
        facts = {
            "capture": cell.capture.name,
            "images": cell.images,
            "level": cell.corruption.level,
        }
        return cell.label == label and all(facts[name] == value for name, value in where.items())

    return average_of(out.results, "oracle", where=fits).mean


def _levels(out: RunOutputs) -> list[float]:
    return sorted({cell.corruption.level for cell in out.plan.cells})


def _others(out: RunOutputs, **where: float | str | None) -> dict[str, float]:
    """Means of the methods that the paper compares with its own."""
    return {m: _mean(out, m, **where) for m in labels_of(out.plan, "oracle") if m not in OURS}


def _named(values: dict[str, float]) -> str:
    return ", ".join(f"{name_of(label)} {value:.2f}" for label, value in values.items())


def _low_snr(out: RunOutputs) -> Found:
    for level in (level for level in _levels(out) if level < 10):
        ours = {label: _mean(out, label, level=level) for label in OURS}
        others = _others(out, level=level)
        statement = f"At {level:g} dB DLNV and PDLNV are below all other methods"
        yield (
            statement,
            max(ours.values()) < min(others.values()),
            f"{_named(ours)}; {_named(others)}",
        )


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
    above = [level for level in _levels(out) if level > 0.1]
    gains = {
        level: _mean(out, "pls", level=level) - _mean(out, "pdlnv", level=level) for level in above
    }
    evidence = ", ".join(f"{100 * level:g} %: {gain:.2f} lower" for level, gain in gains.items())
    yield "Over 10 % salt and pepper PDLNV is below PLS", min(gains.values()) > 0, evidence


def _never_worse(out: RunOutputs) -> Found:
    names = captures_of(out.plan)
    gaps = {
        name: _mean(out, "pdlnv", capture=name) - _mean(out, "pls", capture=name) for name in names
    }
    evidence = ", ".join(f"{name} {gap:+.2f}" for name, gap in gaps.items())
    statement = "PDLNV is no worse than PLS (by more than 0.05) on any object"
    yield statement, max(gaps.values()) <= 0.05, evidence


def _few_images(out: RunOutputs) -> Found:
    for capture in captures_of(out.plan):
        best = {}
        for count in unique(cell.images for cell in out.plan.cells):
            labels = labels_of(out.plan, "oracle")
            errors = {m: _mean(out, m, capture=capture, images=count) for m in labels}
            best[count] = min(errors, key=lambda label: errors[label])
        wins = sum(label == "pdlnv" for label in best.values())
        evidence = ", ".join(f"{count}: {name_of(label)}" for count, label in best.items())
        statement = f"PDLNV is lowest for most numbers of photographs on {capture}"
        yield statement, wins > len(best) / 2, f"lowest at {evidence}"


def _convergence(out: RunOutputs) -> Found:
    found = histories(out)
    if found:
        costs = [maps["history_cost"] for _, maps in found.values()]
        rise = max(float((np.diff(cost) / cost[:-1]).max()) for cost in costs)
        evidence = f"largest relative change of any step {rise:.1e}"
        yield "The cost falls at every iteration", rise <= ROUNDING, evidence
        errors = {int(label.split()[0]): float(row["mean"]) for label, (row, _) in found.items()}
        sizes = [size for size in sorted(errors) if size <= 192]
        falls = all(errors[b] <= errors[a] for a, b in pairwise(sizes))
        evidence = ", ".join(f"{size} atoms {error:.2f}" for size, error in sorted(errors.items()))
        yield "A larger dictionary is better up to 192 atoms", falls, evidence
    if scan := sparsity_scan(out):
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
        extra = [row["extra"] for row in done_rows(out, cell)]
        sparse = [
            (e["nonzeros"], e["representation_error"]) for e in extra if e["nonzeros"] <= 0.25
        ]
        if sparse:
            share, error = min(sparse, key=lambda point: point[1])
            name = cell.capture.name
            statement = (
                f"{name}: the error falls below 5 % while at most a quarter of B is not zero"
            )
            yield statement, error < 0.05, f"{100 * error:.2f} % at {100 * share:.1f} %"


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
