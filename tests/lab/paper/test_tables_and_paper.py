"""Tables in three formats; the paper's figures against sums that the paper prints itself."""

from __future__ import annotations

import csv

import pytest

from photostereo.solver.methods import method_names
from photostereo_lab.paper.experiments import ALL_METHODS, NAMED_RUNS, PUBLISHED, uses_of
from photostereo_lab.sweeps.outputs import look_of
from photostereo_lab.sweeps.plan import settle_parameters
from photostereo_lab.sweeps.tables import Table


def test_table_in_three_formats(tmp_path):
    table = Table(
        "Errors | all",
        ("object", "SR_1"),
        (("a|b", "1 ± 2"), ("50 %", "3")),
        ("A note.",),
        {(0, 1)},
    )
    table.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "table.csv",
        "table.md",
        "table.tex",
    ]
    with (tmp_path / "table.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["object", "SR_1"], ["a|b", "1 ± 2"], ["50 %", "3"]]
    markdown = (tmp_path / "table.md").read_text()
    assert "| a\\|b | 1 ± 2 |" in markdown
    assert "A note." in markdown
    latex = (tmp_path / "table.tex").read_text()
    assert r"SR\_1" in latex
    assert r"50 \% & 3 \\" in latex
    assert r"a|b & \textbf{1 $\pm$ 2} \\" in latex
    assert r"\label{tab:table}" in latex
    assert r"\begin{tabular}{lr}" in latex


def test_columns_that_say_nothing_are_left_out_of_latex():
    table = Table(
        "T",
        ("a", "nothing", "none", "b"),
        (("x", "", "–", "1"), ("y", "", "–", "2")),
        best={(0, 3)},
    )
    latex = table.latex()
    assert (
        r"\begin{tabular}{lr}" in latex and r"a & b \\" in latex and r"x & \textbf{1} \\" in latex
    )


def test_the_papers_averages():
    # Table I prints the averages of its columns: 11.80 and 13.19 (means), 8.04 and 9.42 (medians).
    for table, method, printed in (
        (PUBLISHED["MEAN_ERROR"], "pdlnv", 11.80),
        (PUBLISHED["MEAN_ERROR"], "pls", 13.19),
        (PUBLISHED["MEDIAN_ERROR"], "pdlnv", 8.04),
        (PUBLISHED["MEDIAN_ERROR"], "pls", 9.42),
    ):
        average = sum(row[method] for row in table.values()) / 10
        assert average == pytest.approx(printed, abs=0.006)


def test_the_papers_seconds():
    # The ranges that EXPERIMENTS.md gives of Table III.
    ranges = {
        "pdlnv": (521, 703),
        "dlnv": (147, 226),
        "cbr": (16, 101),
        "sbl": (872, 3335),
        "rpca": (1076, 6525),
    }
    for method, (low, high) in ranges.items():
        seconds = [row[method] for row in PUBLISHED["SECONDS"].values()]
        assert (round(min(seconds)), round(max(seconds))) == pytest.approx((low, high), abs=1)


@pytest.mark.parametrize(
    "size", sorted({run.facts.get("grid", "full") for run in NAMED_RUNS.values()} | {"quick"})
)
def test_grids_fit_the_registry(size):
    for use in uses_of("all", size):
        for point in use.points():
            settle_parameters(use.method, point)


def test_every_method_has_its_own_look():
    assert set(method_names()) >= set(ALL_METHODS)
    looks = [look_of(name) for name in method_names()]
    for part in ("label", "color", "marker"):
        assert len({getattr(look, part) for look in looks}) == len(looks), part
