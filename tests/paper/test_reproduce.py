"""Named runs: every one plans, small ones run end to end, figures are drawn again from the store alone."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from photostereo import render_scene
from photostereo.capture import write_diligent
from photostereo.commands.experiments import register
from photostereo.errors import CaptureError, ParameterError
from photostereo.jobs.progress import LineMonitor
from photostereo.jobs.store import Store
from photostereo.paper.catalog import Catalog
from photostereo.paper.reproduce import _planned, list_runs, reproduce
from photostereo.paper.runs import NAMED_RUNS
from photostereo.scenes import dome_lights

NAMES = [
    "table-pls", "table-diligent", "table-runtime", "representation", "few-images", "ten-images", "salt-pepper",
    "poisson-pls", "poisson", "poisson-all", "harvard-hippo", "harvard-cat", "convergence", "pieces", "atoms",
]  # fmt: skip


@pytest.fixture(scope="module")
def small_data(tmp_path_factory):
    """A data folder with two small objects under the names of real ones."""
    root = tmp_path_factory.mktemp("data")
    for name, scene in (("cat", "vase"), ("pot2", "sphere")):
        capture = render_scene(scene, size=96, lights=dome_lights(12))
        write_diligent(capture, root / "diligent" / "pmsData" / f"{name}PNG")
    return root


def test_every_experiment_has_a_name():
    assert [name for name, _, _ in list_runs()] == NAMES
    assert list(NAMED_RUNS) == NAMES


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_run_plans_on_what_is_there(name, quick, small_data):
    plan, facts = _planned(NAMED_RUNS[name], small_data, quick)
    needs_others = {"salt-pepper", "poisson-pls", "harvard-hippo", "harvard-cat"}
    assert bool(plan.trials) == (name not in needs_others)
    assert any("Quick" in note for note in facts["notes"]) == quick
    if name == "table-diligent":
        missing = "ball, pot1, bear, buddha, goblet, reading, cow, harvest"
        assert f"Not in the data folder and left out: {missing}." in facts["notes"]
    if name == "ten-images":
        assert "pot1 is not in the data folder; pot2 takes its place." in facts["notes"]


@pytest.mark.slow
def test_runs_end_to_end_and_are_drawn_again(small_data, tmp_path):
    lines: list[str] = []
    names = ["ten-images", "atoms", "harvard-cat"]
    ends = reproduce(names, small_data, tmp_path, quick=True, workers=2, monitor=LineMonitor(lines.append))
    assert [(end.name, end.failed) for end in ends] == [(name, 0) for name in names]
    assert [end.done > 0 for end in ends] == [True, True, False]
    assert "harvard-cat: none of its objects is in the data folder." in lines
    for name in names[:2]:
        folder = tmp_path / name
        assert {path.suffix for path in folder.iterdir()} >= {".csv", ".md", ".tex", ".pdf", ".png"}
    assert "paper, pot1" not in (tmp_path / "ten-images" / "table.csv").read_text()
    index = (tmp_path / "index.md").read_text()
    assert "pot1 is not in the data folder; pot2 takes its place." in index
    assert "Quick" in index

    rows = Store(tmp_path).rows()
    kept = {path: path.read_bytes() for path in (tmp_path / "ten-images").iterdir()}
    for path in kept:
        path.unlink()
    reproduce(names[:2], None, tmp_path, only_figures=True)
    again = {path: path.read_bytes() for path in (tmp_path / "ten-images").iterdir()}
    assert again == kept
    assert Store(tmp_path).rows() == rows
    with pytest.raises(ParameterError, match="no results of poisson"):
        reproduce(["poisson"], None, tmp_path, only_figures=True)


def test_mistakes(tmp_path):
    with pytest.raises(ParameterError, match='Did you mean "table-pls"'):
        reproduce(["table-psl"], tmp_path, tmp_path / "out")
    with pytest.raises(CaptureError, match="does not exist"):
        Catalog(tmp_path / "absent")
    with pytest.raises(ParameterError, match="--data"):
        reproduce(["atoms"], None, tmp_path / "out")


def test_commands(small_data, tmp_path):
    import typer

    app = typer.Typer()
    register(app)
    listing = CliRunner().invoke(app, ["reproduce", "--list"])
    assert listing.exit_code == 0
    assert all(name in listing.output for name in NAMES)
    nothing = CliRunner().invoke(app, ["reproduce", "--data", str(small_data)])
    assert isinstance(nothing.exception, ParameterError)
    bad = tmp_path / "bad.toml"
    bad.write_text('captures = ["x"]\n[[methods]]\nname = "pdnlv"\n')
    refused = CliRunner().invoke(app, ["sweep", str(bad), "--out", str(tmp_path / "out")])
    assert "line 3" in str(refused.exception)
    assert not (tmp_path / "out").exists()
