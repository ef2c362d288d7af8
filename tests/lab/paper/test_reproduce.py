"""Named runs: every one plans, small ones run end to end, figures are drawn again from the store alone."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from photostereo.batch.options import RunOptions
from photostereo.capture import write_diligent
from photostereo.cli import app
from photostereo.core.errors import ParameterError, PhotostereoError
from photostereo_lab.paper.experiments import NAMED_RUNS, OURS_NOTE, Catalog, uses_of
from photostereo_lab.paper.reproduce import reproduce
from photostereo_lab.scenes import dome_lights, render_scene
from photostereo_lab.sweeps.plan import CaptureSpec, Corruption, Plan
from photostereo_lab.sweeps.store import Outcome, Store

NAMES = [
    "table-pls", "table-diligent", "table-runtime", "representation", "few-images", "ten-images", "salt-pepper",
    "poisson-pls", "poisson", "poisson-all", "harvard-hippo", "harvard-cat", "convergence", "pieces", "atoms",
]  # fmt: skip


@pytest.fixture(scope="module")
def small_data(tmp_path_factory):
    """A data folder with two small objects under the names of real ones."""
    root = tmp_path_factory.mktemp("data")
    for name, scene in (("cat", "vase"), ("pot2", "sphere")):
        capture = render_scene(scene, size=64, lights=dome_lights(12))
        write_diligent(capture, root / "diligent" / "pmsData" / f"{name}PNG")
    return root


def test_every_experiment_has_a_name():
    assert list(NAMED_RUNS) == NAMES


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_run_plans_on_what_is_there(name, quick, small_data):
    plan, notes = NAMED_RUNS[name].plan(small_data, quick)
    needs_others = {"salt-pepper", "poisson-pls", "harvard-hippo", "harvard-cat"}
    assert bool(plan.trials) == (name not in needs_others)
    assert any("Quick" in note for note in notes) == quick
    if name == "table-diligent":
        missing = "ball, pot1, bear, buddha, goblet, reading, cow, harvest"
        assert f"Not in the data folder and left out: {missing}." in notes
    if name == "ten-images":
        assert "pot1 is not in the data folder; pot2 takes its place." in notes


COMPARISONS = {
    "table-diligent", "table-runtime", "few-images", "poisson", "poisson-all", "harvard-hippo", "harvard-cat",
}  # fmt: skip


def test_our_methods_stand_beside_the_papers_in_comparisons_of_all(monkeypatch):
    monkeypatch.setattr(
        Catalog, "_at", lambda self, name: CaptureSpec(name, "/somewhere", "0" * 16)
    )
    for name in NAMES:
        plan, _ = NAMED_RUNS[name].plan(".", True)
        ours = [cell for cell in plan.cells if cell.label.endswith("(ours)")]
        assert bool(ours) == (name in COMPARISONS), name
        assert all(cell.default is not None and not cell.grid for cell in ours)
        scenes = {cell.default.scene for cell in plan.cells if cell.default is not None}
        assert len(ours) == (2 * len(scenes) if ours else 0)  # net and dlnet, once per scene


def test_our_methods_have_no_best_of_grid(tmp_path):
    capture = CaptureSpec("pot2", "/somewhere", "0" * 16)
    store = Store(tmp_path)
    noise = (Corruption("poisson", 5.0),)
    plan = Plan("poisson", (capture,), uses_of("all", "quick noisy"), (20,), noise)
    store.keep_plan(plan, {"notes": []})
    for trial in plan.trials:
        store.write(trial, Outcome("done", errors={"mean": 1.0 if "net" in trial.method else 20.0}))
    reproduce(["poisson"], None, tmp_path, only_figures=True)
    grid, defaults = (
        (tmp_path / "poisson" / f"table-{p}.csv").read_text() for p in ("oracle", "defaults")
    )
    assert "net" not in grid
    assert defaults.splitlines()[0].endswith("LS,net (ours),DLnet (ours)")
    assert defaults.splitlines()[1].endswith("20.00,1.00,1.00")
    assert (
        "net" not in (tmp_path / "claims.md").read_text()
    )  # the paper's claims are about the paper's methods
    assert OURS_NOTE in (tmp_path / "poisson" / "page.md").read_text()


@pytest.mark.slow
def test_runs_end_to_end_and_are_drawn_again(small_data, tmp_path, recorder):
    names = ["ten-images", "atoms", "harvard-cat"]
    ends = reproduce(
        names,
        small_data,
        tmp_path,
        quick=True,
        options=RunOptions(workers=2),
        control=recorder,
    )
    assert [end.failed for end in ends] == [0, 0, 0]
    assert [end.done > 0 for end in ends] == [True, True, False]
    assert "harvard-cat: none of its objects is in the data folder." in recorder.lines
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
    with pytest.raises(ParameterError) as caught:
        reproduce(["poisson"], None, tmp_path, only_figures=True)
    assert caught.value.code == "no-results-of-run"


def test_mistakes(tmp_path):
    for code, names, data in (
        ("unknown-run", ["table-psl"], tmp_path),
        ("missing-data", ["atoms"], tmp_path / "absent"),
        ("no-data-folder", ["atoms"], None),
    ):
        with pytest.raises(PhotostereoError) as caught:
            reproduce(names, data, tmp_path / "out")
        assert caught.value.code == code


def test_commands(small_data, tmp_path):
    listing = CliRunner().invoke(app, ["reproduce", "--list"])
    assert listing.exit_code == 0
    assert all(name in listing.output for name in NAMES)
    nothing = CliRunner().invoke(app, ["reproduce", "--data", str(small_data)])
    assert isinstance(nothing.exception, ParameterError)
    bad = tmp_path / "bad.toml"
    bad.write_text('captures = ["x"]\n[[methods]]\nname = "pdnlv"\n')
    refused = CliRunner().invoke(app, ["sweep", str(bad), "--out", str(tmp_path / "out")])
    assert refused.exception.code == "invalid-plan"
    assert not (tmp_path / "out").exists()
