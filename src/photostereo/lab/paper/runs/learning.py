"""Runs about the dictionary itself: what it can represent, how the iteration goes, its size, its atoms, the
pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from photostereo.lab.paper.catalog import Catalog
from photostereo.lab.paper.grids import GRIDS
from photostereo.lab.paper.pictures import draw_atoms
from photostereo.lab.paper.runs.named import NamedRun
from photostereo.lab.sweeps.curves import draw_curves, draw_lines
from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Block, MethodPlan
from photostereo.lab.sweeps.shared_tables import curve_tables, tidy_table
from photostereo.lab.sweeps.summary import CellResult, Row, captures_of
from photostereo.lab.sweeps.trial import Corruption

#: λ and μ of the runs that show one solve, in the units of :mod:`.grids`.
SHOWN = {"p": 2, "lam": 10.0, "mu": 0.05}
Lines = dict[str, tuple[Sequence[float], Sequence[float]]]
_SIZES = (48, 96, 192, 384)
_SPARSITY_SCAN = "mu scan"


def _representation(data: Catalog, quick: bool) -> list[Block]:
    captures = [data.diligent("cat"), data.diligent("pot2"), data.diligent_or("goblet", "cow")]
    mu = (
        (0.01, 0.03, 0.1, 0.3, 1.0)
        if quick
        else (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
    )
    grid = {"mu": mu, "passes": (15 if quick else 30,)}
    found = tuple(capture for capture in captures if capture is not None)
    use = MethodPlan("dictionary", grid=grid, defaults=False)
    return [Block(found, (use,), task="represent")] if found else []


def _report_representation(out: RunOutputs) -> None:
    lines: dict[str, tuple[list[float], list[float]]] = {}
    table = []
    for cell in out.plan.cells:
        points = []
        for trial in cell.grid:
            row = out.rows.get(trial.hash)
            if row is not None and row["status"] == "done":
                points.append(
                    (
                        100 * row["extra"]["nonzeros"],
                        row["extra"]["representation_error"],
                        trial.parameters["mu"],
                    )
                )
        points.sort()
        lines[cell.capture.name] = ([p[0] for p in points], [p[1] for p in points])
        table += [
            [cell.capture.name, f"{mu:g}", f"{share:.2f}", f"{error:.4f}"] for share, error, mu in points
        ]
    out.table(out.title, ["object", "μ", "non-zeros (%)", "‖P − DB‖/‖P‖"], table)
    panel = ("", "non-zero codes (%)", "‖P − DB‖ / ‖P‖", lines)
    figure = draw_lines(
        [panel], title="192 × 192 dictionaries on least-squares normals", marker="o", markersize=4
    )
    text = "Representation error against the share of non-zeros; the paper's falls to zero while B is sparse."
    out.figure(figure, " ".join([text, *out.notes]))


def _convergence(data: Catalog, quick: bool) -> list[Block]:
    cat = data.diligent("cat")
    if cat is None:
        return []
    sizes = tuple(
        MethodPlan("pdlnv", f"{size} atoms", {**SHOWN, "atoms": size}, defaults=False) for size in _SIZES
    )
    mu = (
        (0.02, 0.05, 0.1, 0.2, 0.4)
        if quick
        else (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
    )
    fixed = {name: value for name, value in SHOWN.items() if name != "mu"}
    scan = MethodPlan("pdlnv", _SPARSITY_SCAN, fixed, {"mu": mu}, defaults=False)
    return [Block((cat,), (*sizes, scan), (20,), (Corruption("poisson", 20.0),))]


def _history_rows(results: Sequence[CellResult]) -> list[Row]:
    return [r.oracle for r in results if r.oracle is not None and r.cell.label != _SPARSITY_SCAN]


def _report_convergence(out: RunOutputs) -> None:
    cost: Lines = {}
    error: Lines = {}
    share: Lines = {}
    table = []
    for result in out.results:
        label = result.cell.label
        maps = out.maps(result.oracle)
        if label == _SPARSITY_SCAN or maps is None or result.oracle is None:
            continue
        number = list(range(1, len(maps["history_cost"]) + 1))
        values = maps["history_cost"]
        cost[label] = (number, values.tolist())
        error[label] = (number, maps["history_error"].tolist())
        share[label] = (number, (100 * maps["history_nonzeros"]).tolist())
        # Float32 passes: a rise below this share of the cost is rounding.
        falls = bool((np.diff(values) <= 1e-6 * values[:-1]).all())
        table.append(
            [
                label, f"{values[0]:.1f}", f"{values[-1]:.1f}", "yes" if falls else "no",
                f"{result.oracle['mean']:.2f}", f"{100 * maps['history_nonzeros'][-1]:.1f}",
            ]
        )  # fmt: skip
    header = ["dictionary", "cost, first", "cost, last", "falls at every step", "mean error", "non-zeros (%)"]
    out.table(out.title, header, table)
    scan = []
    for result in out.results:
        if result.cell.label == _SPARSITY_SCAN:
            rows = [out.rows[t.hash] for t in result.cell.grid if t.hash in out.rows]
            scan = sorted(
                (100 * row["extra"]["nonzeros"], row["mean"], row["parameters"]["mu"])
                for row in rows
                if row["mean"]
            )
    rows_scan = [[f"{mu:g}", f"{nonzeros:.2f}", f"{mean:.2f}"] for nonzeros, mean, mu in scan]
    out.table(
        "192 atoms: error against sparsity", ["μ", "non-zeros (%)", "mean error"], rows_scan, name="sparsity"
    )
    panels: list[tuple[str, str, str, Lines]] = [
        ("cost", "iteration", "cost", cost),
        ("mean angular error", "iteration", "degrees", error),
        ("non-zero codes", "iteration", "%", share),
        (
            "error against sparsity",
            "non-zeros (%)",
            "degrees",
            {"192 atoms": ([s[0] for s in scan], [s[1] for s in scan])},
        ),
    ]
    settings = f"p = {SHOWN['p']}, λ = {SHOWN['lam']:g}, μ = {SHOWN['mu']:g}"
    figure = draw_lines(panels, title=f"PDLNV on cat, 20 photographs, 20 dB; {settings}")
    text = (
        "Cost, error and sparsity by iteration for several dictionary sizes; right: last error for several μ."
    )
    out.figure(figure, " ".join([text, *out.notes]))


def _pieces(data: Catalog, quick: bool) -> list[Block]:
    capture = data.diligent_or("pot1", "cat")
    if capture is None:
        return []
    grid = {
        name: values
        for name, values in GRIDS["quick few" if quick else "few"]["pdlnv"].items()
        if name != "p"
    }
    methods = tuple(MethodPlan("pdlnv", f"p = {p}", {"p": p}, grid) for p in range(1, 6))
    images = (10, 20, 40) if quick else (5, 10, 20, 35, 50, 80)
    return [Block((capture,), methods, images, seeds=tuple(range(1 if quick else 5)))]


def _report_pieces(out: RunOutputs) -> None:
    curve_tables(out, lambda cell: f"{cell.images}", "photographs", {})
    tidy_table(out, lambda cell: f"{cell.images}", "photographs", {})
    figure = draw_curves(
        out.results, lambda cell: cell.images, "photographs",
        title=f"PDLNV on {captures_of(out.plan)[0]} with p pieces", log=True,
    )  # fmt: skip
    text = "Mean angular error for p = 1…5 pieces. The paper finds p = 2 best on pot1."
    out.figure(figure, " ".join([text, *out.notes]))


def _atoms(data: Catalog, quick: bool) -> list[Block]:
    capture = data.diligent_or("pot1", "cat")
    use = MethodPlan("pdlnv", "pdlnv", {**SHOWN, "lam": 1.0, "mu": 0.03}, defaults=False)
    return [Block((capture,), (use,))] if capture is not None else []


def _all_rows(results: Sequence[CellResult]) -> list[Row]:
    return [result.oracle for result in results if result.oracle is not None]


def _report_atoms(out: RunOutputs) -> None:
    result = out.results[0]
    maps = out.maps(result.oracle)
    if maps is None or result.oracle is None:
        return
    first, last = maps["dictionary_initial"], maps["dictionary"]
    moved = np.degrees(np.arccos(np.clip(np.abs((first * last).sum(axis=1)), 0, 1)))
    table = [
        ["atoms", f"{len(last)}"],
        ["non-zeros (%)", f"{100 * result.oracle['extra']['nonzeros']:.2f}"],
        ["median angle between first and last atom (degrees)", f"{np.median(moved):.1f}"],
        ["mean angular error (degrees)", f"{result.oracle['mean']:.2f}"],
    ]
    out.table(out.title, ["fact", result.cell.capture.name], table)
    name = result.cell.capture.name
    figure = draw_atoms(first, last, title=f"PDLNV, p = 2, {name}, all photographs: 192 atoms of 8 × 8 × 3")
    text = "First and last dictionary; each atom is an 8 × 8 image whose colors are the components x, y, z."
    out.figure(figure, " ".join([text, *out.notes]))


RUNS = (
    NamedRun(
        "representation", "Sparse representation of least-squares normals",
        "the error falls to zero while B stays sparse", _representation, _report_representation,
    ),
    NamedRun(
        "convergence", "PDLNV by iteration and dictionary size", "cost falls; larger is better up to 192",
        _convergence, _report_convergence, _history_rows,
    ),
    NamedRun("pieces", "PDLNV for p = 1…5", "pot1: p = 2 best", _pieces, _report_pieces),
    NamedRun("atoms", "First and last dictionary", "the learned atoms have structure", _atoms, _report_atoms,
    _all_rows),
)  # fmt: skip
