"""The paper's qualitative claims, each checked on the rows of a store: it holds, or it does not, and by how
much.

Only the oracle's figures are compared, as in the paper. A claim whose run is not in the store is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Cell
from photostereo.lab.sweeps.store import Store
from photostereo.lab.sweeps.style import name_of
from photostereo.lab.sweeps.summary import average_of, captures_of, images_of, labels_of

OURS = ("dlnv", "pdlnv")
#: Float32 passes: a rise of the cost below this share is rounding.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Claim:
    """A statement, whether it holds here, and the figures that say so."""

    run: str
    statement: str
    holds: bool
    evidence: str


Check = Callable[[RunOutputs], list[Claim]]


def check_claims(store: Store) -> list[Claim]:
    """Every claim whose run the store has."""
    found: list[Claim] = []
    for name, check in _CHECKS.items():
        remembered = store.plan(name)
        if remembered is None or not remembered[0].trials:
            continue
        out = RunOutputs(name, name, remembered[0], store, store.folder / name)
        if out.rows:
            found += check(out)
    return found


def _mean(out: RunOutputs, label: str, **where: float | str | None) -> float:
    """Mean of the oracle over the cells that fit: capture, images, level."""

    def fits(cell: Cell) -> bool:
        facts = {"capture": cell.capture.name, "images": cell.images, "level": cell.corruption.level}
        return cell.label == label and all(facts[name] == value for name, value in where.items())

    return average_of(out.results, "oracle", where=fits).mean


def _levels(out: RunOutputs) -> list[float]:
    return sorted({cell.corruption.level for cell in out.plan.cells})


def _rivals(out: RunOutputs) -> list[str]:
    return [label for label in labels_of(out.plan, "oracle") if label not in OURS]


def _named(values: dict[str, float]) -> str:
    return ", ".join(f"{name_of(label)} {value:.2f}" for label, value in values.items())


def _low_snr(out: RunOutputs) -> list[Claim]:
    claims = []
    for level in [level for level in _levels(out) if level < 10]:
        ours = {label: _mean(out, label, level=level) for label in OURS}
        rivals = {label: _mean(out, label, level=level) for label in _rivals(out)}
        statement = f"At {level:g} dB DLNV and PDLNV are lower than every rival"
        evidence = f"{_named(ours)}; {_named(rivals)}"
        claims.append(Claim(out.name, statement, max(ours.values()) < min(rivals.values()), evidence))
    return claims


def _harvard_cat(out: RunOutputs) -> list[Claim]:
    ours = _mean(out, "dlnv")
    rivals = {label: _mean(out, label) for label in _rivals(out)}
    margin = min(rivals.values()) - ours
    return [
        Claim(
            out.name,
            "At 5 dB DLNV is at least 5 degrees below every rival",
            margin >= 5,
            f"DLNV {ours:.2f}; {_named(rivals)}; margin {margin:.2f}",
        )
    ]


def _hippo(out: RunOutputs) -> list[Claim]:
    top = max(_levels(out))
    errors = {label: _mean(out, label, level=top) for label in ("ls", *OURS)}
    near = Claim(
        out.name, f"The error goes to 0 at high SNR: below 2 degrees at {top:g} dB", max(errors.values()) < 2,
        _named(errors),
    )  # fmt: skip
    return [near, *_low_snr(out)]


def _salt_pepper(out: RunOutputs) -> list[Claim]:
    above = [level for level in _levels(out) if level > 0.1]
    gains = {level: _mean(out, "pls", level=level) - _mean(out, "pdlnv", level=level) for level in above}
    evidence = ", ".join(f"{100 * level:g} %: {gain:.2f} lower" for level, gain in gains.items())
    return [
        Claim(out.name, "Over 10 % salt and pepper PDLNV is below PLS", min(gains.values()) > 0, evidence)
    ]


def _never_worse(out: RunOutputs) -> list[Claim]:
    gaps = {
        name: _mean(out, "pdlnv", capture=name) - _mean(out, "pls", capture=name)
        for name in captures_of(out.plan)
    }
    evidence = ", ".join(f"{name} {gap:+.2f}" for name, gap in gaps.items())
    return [
        Claim(
            out.name,
            "PDLNV is no worse than PLS (by more than 0.05) on any object",
            max(gaps.values()) <= 0.05,
            evidence,
        )
    ]


def _few_images(out: RunOutputs) -> list[Claim]:
    claims = []
    for capture in captures_of(out.plan):
        best = {}
        for count in images_of(out.plan):
            errors = {
                label: _mean(out, label, capture=capture, images=count)
                for label in labels_of(out.plan, "oracle")
            }
            best[count] = min(errors, key=lambda label: errors[label])
        wins = sum(label == "pdlnv" for label in best.values())
        evidence = ", ".join(f"{count}: {name_of(label)}" for count, label in best.items())
        statement = f"PDLNV is lowest for most numbers of photographs on {capture}"
        claims.append(Claim(out.name, statement, wins > len(best) / 2, f"lowest at {evidence}"))
    return claims


def _convergence(out: RunOutputs) -> list[Claim]:
    rises, errors = [], {}
    scan: list[tuple[float, float]] = []
    for result in out.results:
        if result.cell.label.endswith("atoms"):
            maps = out.maps(result.oracle)
            if maps is None or result.oracle is None:
                continue
            cost = maps["history_cost"]
            rises.append(float((np.diff(cost) / cost[:-1]).max()))
            errors[int(result.cell.label.split()[0])] = float(result.oracle["mean"])
        else:
            rows = [out.rows[t.hash] for t in result.cell.grid if t.hash in out.rows]
            scan = [(row["extra"]["nonzeros"], row["mean"]) for row in rows if row["mean"] is not None]
    claims = []
    if rises:
        evidence = f"largest relative change of any step {max(rises):.1e}"
        claims.append(Claim(out.name, "The cost falls at every iteration", max(rises) <= ROUNDING, evidence))
        sizes = [size for size in sorted(errors) if size <= 192]
        falls = all(errors[b] <= errors[a] for a, b in pairwise(sizes))
        evidence = ", ".join(f"{size} atoms {error:.2f}" for size, error in sorted(errors.items()))
        claims.append(Claim(out.name, "A larger dictionary is better up to 192 atoms", falls, evidence))
    if scan:
        share, error = min(scan, key=lambda point: abs(point[0] - 0.1))
        best_share, best = min(scan, key=lambda point: point[1])
        evidence = f"{error:.2f} at {100 * share:.1f} %, lowest {best:.2f} at {100 * best_share:.1f} %"
        statement = "10 % non-zeros is near the best sparsity (within 0.5 degree)"
        claims.append(Claim(out.name, statement, error - best <= 0.5, evidence))
    return claims


def _pieces(out: RunOutputs) -> list[Claim]:
    errors = {label: _mean(out, label) for label in labels_of(out.plan)}
    evidence = ", ".join(f"{label}: {value:.2f}" for label, value in errors.items())
    return [
        Claim(out.name, "p = 2 is best on average", min(errors, key=lambda m: errors[m]) == "p = 2", evidence)
    ]


def _representation(out: RunOutputs) -> list[Claim]:
    claims = []
    for cell in out.plan.cells:
        rows = [out.rows[t.hash] for t in cell.grid if t.hash in out.rows]
        points = [
            (r["extra"]["nonzeros"], r["extra"]["representation_error"])
            for r in rows
            if r["status"] == "done"
        ]
        sparse = [point for point in points if point[0] <= 0.25]
        if sparse:
            share, error = min(sparse, key=lambda point: point[1])
            statement = (
                f"{cell.capture.name}: the error falls below 5 % while at most a quarter of B is not zero"
            )
            claims.append(
                Claim(out.name, statement, error < 0.05, f"{100 * error:.2f} % at {100 * share:.1f} %")
            )
    return claims


_CHECKS: dict[str, Check] = {
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


def claims_table(claims: Sequence[Claim]) -> tuple[list[str], list[list[str]]]:
    """Header and rows."""
    header = ["run", "claim", "holds", "figures"]
    return header, [[c.run, c.statement, "yes" if c.holds else "no", c.evidence] for c in claims]
