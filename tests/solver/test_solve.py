"""Block coordinate descent: the cost falls at every half-step, special cases agree, a solve can be
resumed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.diagnosis.metrics import angle_between
from photostereo.priors.entry import Setting
from photostereo.solver.confidence_ball import NoiseEvidence
from photostereo.solver.methods import find_method
from photostereo.solver.prepared import prepare
from photostereo.solver.solve import solve
from photostereo.solver.state import SolveState
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

from ..priors.dictionary.readable import extract


@pytest.fixture(scope="module")
def noisy():
    clean = render_scene("relief", size=72, lights=dome_lights(10), reflectance="blinn-phong")
    return add_poisson(clean, 12.0, rng=0)


def total_cost(model, prior, state, normals, unknowns):
    """The objective from its definition: patches, codes and atoms, nothing incremental."""
    patches = extract(prior.grid, normals)
    fit = ((patches - state["codes"].T @ state["atoms"]) ** 2).sum()
    sparsity = prior.mu**2 * np.count_nonzero(state["codes"])
    return model.cost(normals, unknowns) + prior.lam * (fit + sparsity)


@pytest.mark.parametrize(("method", "p"), [("dlnv", 1), ("pdlnv", 1), ("pdlnv", 3), ("dlsr", 1)])
def test_every_half_step_lowers_the_cost(method: str, p: int) -> None:
    capture = add_poisson(render_scene("figure", size=56, lights=dome_lights(9)), 10.0, rng=1)
    given = {
        "lam": 1.5,
        "mu": 0.08,
        "precision": "double",
        **({"p": p} if method == "pdlnv" else {}),
    }
    entry = find_method(method)
    values = entry.resolve(given)
    pixels = capture.pixels(capture.intensity_scale()).astype(np.float64)
    model = entry.model.kind(pixels, capture.lights.matrix, **entry.of_model(values))
    prior, _ = entry.prior.build(values, Setting(capture.mask))
    normals, unknowns = model.start(SILENT)
    unknowns = model.update_unknowns(normals, unknowns)
    state = prior.begin(normals)
    costs = [total_cost(model, prior, state, normals, unknowns)]
    for number in range(5):
        prior.update(state, normals, number)
        costs.append(total_cost(model, prior, state, normals, unknowns))
        updated = model.update_normals(unknowns, *prior.pull(state, normals))
        unknowns = model.update_unknowns(updated, unknowns)
        prior.follow(state, updated - normals)
        normals = updated
        costs.append(total_cost(model, prior, state, normals, unknowns))
        # The residual that is kept up to date is the one of the definition.
        exact = extract(prior.grid, normals) - state["codes"].T @ state["atoms"]
        assert np.abs(exact - state["residual"]).max() < 1e-10
    steps = np.diff(costs)
    assert steps.max() <= 1e-9 * costs[0], steps
    assert costs[-1] < 0.99 * costs[0]


def test_recorded_cost_is_the_objective_and_falls(noisy) -> None:
    result = solve(noisy, "pdlnv", lam=2.0, mu=0.1, max_iter=12)
    costs = [record.cost for record in result.history]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in itertools.pairwise(costs))
    for record in result.history:
        terms = record.figures["fit"] + record.figures["sparsity"]
        assert record.cost == pytest.approx(record.data + terms, rel=1e-12)
        assert record.error is not None and 0 < record.figures["nonzeros"] < 1


def test_pdlnv_without_weight_is_pls(noisy) -> None:
    prior = solve(noisy, "pdlnv", lam=0.0, mu=0.1, max_iter=2, p=3)
    alone = solve(noisy, "pls", p=3)
    inside = noisy.mask
    assert angle_between(prior.normals[inside], alone.normals[inside]).max() < 1e-3


def test_pdlnv_with_one_piece_is_dlnv(noisy) -> None:
    options = {"lam": 2.0, "mu": 0.1, "max_iter": 6, "precision": "double"}
    one = solve(noisy, "pdlnv", p=1, gamma=1e8, **options)
    lambertian = solve(noisy, "dlnv", **options)
    inside = noisy.mask
    assert angle_between(one.normals[inside], lambertian.normals[inside]).max() < 1e-2
    assert np.abs(one.albedo - lambertian.albedo).max() < 1e-4 * lambertian.albedo.max()


def test_single_precision_is_enough(noisy) -> None:
    options = {"lam": 5.0, "mu": 0.15, "max_iter": 10}
    single = solve(noisy, "dlnv", precision="single", **options)
    double = solve(noisy, "dlnv", precision="double", **options)
    inside = noisy.mask
    assert angle_between(single.normals[inside], double.normals[inside]).mean() < 0.02
    assert single.history[-1].cost == pytest.approx(double.history[-1].cost, rel=1e-4)


@pytest.mark.parametrize("method", ["dlnv", "pdlnv", "dlsr"])
def test_resumed_equals_uninterrupted(method: str, noisy, tmp_path) -> None:
    options = {"lam": 2.0, "mu": 0.1}
    whole = solve(noisy, method, max_iter=9, **options)
    solve(noisy, method, max_iter=4, checkpoint=tmp_path / "state.npz", **options)
    resumed = solve(noisy, method, max_iter=9, resume=tmp_path / "state.npz", **options)
    assert np.array_equal(whole.normals, resumed.normals)
    for name in ("dictionary", "dictionary_initial"):
        assert np.array_equal(whole.arrays[name], resumed.arrays[name]), name
    assert [r.cost for r in whole.history] == [r.cost for r in resumed.history]


def test_resuming_leaves_the_given_state_alone(noisy, tmp_path) -> None:
    solve(noisy, "dlnv", max_iter=2, lam=2.0, mu=0.1, checkpoint=tmp_path / "state.npz")
    state = SolveState.load(tmp_path / "state.npz")
    atoms = state.prior["atoms"].copy()
    solve(noisy, "dlnv", max_iter=4, lam=2.0, mu=0.1, resume=state)
    assert np.array_equal(state.prior["atoms"], atoms) and len(state.history) == 2


def test_resuming_on_another_capture_is_an_error(noisy, tmp_path) -> None:
    solve(noisy, "dlnv", max_iter=2, lam=2.0, mu=0.1, checkpoint=tmp_path / "state.npz")
    other = render_scene("sphere", size=64)
    with pytest.raises(ParameterError) as caught:
        solve(other, "dlnv", lam=2.0, mu=0.1, resume=tmp_path / "state.npz")
    assert caught.value.code == "state-does-not-fit" and caught.value.file == tmp_path / "state.npz"


@pytest.mark.parametrize(
    ("saved", "resumed"), [("dlnv", "dlsr"), ("pdlnv", "dlnv"), ("dlsr", "pdlnv")]
)
def test_resuming_by_another_method_is_an_error(saved: str, resumed: str, noisy, tmp_path) -> None:
    solve(noisy, saved, max_iter=1, lam=2.0, mu=0.1, checkpoint=tmp_path / "state.npz")
    with pytest.raises(ParameterError) as caught:
        solve(noisy, resumed, max_iter=2, lam=2.0, mu=0.1, resume=tmp_path / "state.npz")
    assert caught.value.code == "state-does-not-fit"


@pytest.mark.parametrize(
    ("name", "damage", "code"),
    [
        ("prior_residual", np.ravel, "state-does-not-fit"),
        ("prior_atoms", lambda atoms: atoms.astype(str), "damaged-state"),
        ("prior_codes", lambda codes: codes.astype(np.float64), "state-does-not-fit"),
        ("prior_codes", lambda codes: np.full_like(codes, np.nan), "damaged-state"),
        ("prior_codes", None, "state-does-not-fit"),
        ("normals", lambda normals: normals[:-1], "state-does-not-fit"),
        ("normals", None, "damaged-state"),
        ("history_cost", lambda cost: cost[:-1], "damaged-state"),
        ("history_number", lambda number: number * np.nan, "damaged-state"),
        ("history_data", None, "damaged-state"),
    ],
)
def test_a_damaged_state_is_refused(name: str, damage, code: str, noisy, tmp_path) -> None:
    file = tmp_path / "state.npz"
    solve(noisy, "dlnv", max_iter=2, lam=2.0, mu=0.1, checkpoint=file)
    arrays = dict(np.load(file))
    whole = arrays.pop(name)
    np.savez(file, **arrays, **({} if damage is None else {name: damage(whole)}))
    with pytest.raises((ParameterError, CaptureError)) as caught:
        solve(noisy, "dlnv", max_iter=3, lam=2.0, mu=0.1, resume=file)
    assert caught.value.code == code and caught.value.file == file


def test_tolerance_stops_early(noisy) -> None:
    result = solve(noisy, "dlnv", lam=2.0, mu=0.1, max_iter=200, tol=1e-2)
    assert result.status == "converged"
    assert result.iterations < 200


def test_a_learned_dictionary_serves_another_capture_and_stays_fixed(noisy, tmp_path) -> None:
    learned = solve(noisy, "dlnv", lam=2.0, mu=0.1, max_iter=5).arrays["dictionary"]
    np.save(tmp_path / "dictionary.npy", learned)
    other = render_scene("vase", size=48)
    for given in (learned, str(tmp_path / "dictionary.npy")):
        result = solve(other, "dlnv", lam=2.0, mu=0.1, max_iter=3, dictionary=given, learn=False)
        assert np.abs(result.arrays["dictionary"] - learned).max() < 1e-6
    larger = render_scene("sphere", size=96)
    free = solve(larger, "dlnv", lam=2.0, mu=0.1, max_iter=3, dictionary=learned)
    assert np.abs(free.arrays["dictionary"] - learned).max() > 1e-3


@pytest.mark.parametrize("atoms", [48, 192, 256])
@pytest.mark.parametrize("dictionary", ["dct", "dct-separable", "identity", "random-patches"])
def test_every_initial_dictionary_and_size_lowers_the_noise(
    noisy, dictionary: str, atoms: int
) -> None:
    plain = solve(noisy, "ls").angular_error.mean
    result = solve(noisy, "dlnv", lam=3.0, mu=0.15, max_iter=5, dictionary=dictionary, atoms=atoms)
    assert result.arrays["dictionary"].shape == (atoms, 192)
    assert result.angular_error.mean < plain


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"mu": -1.0}, "bad-parameter"),
        ({"mu": 2.0, "q": 1.0}, "bound-below-threshold"),
        ({"stride": 9}, "stride-larger-than-patch"),
        ({"patch": (200, 8, 3)}, "patch-larger-than-picture"),
        ({"patch": "8x8"}, "bad-parameter"),
        ({"p": 0}, "bad-parameter"),
        ({"atoms": 100_000}, "more-atoms-than-patches"),
        ({"lam": "much"}, "bad-parameter"),
        ({"lambda": 1.0}, "unknown-parameter"),
        ({"max_iter": 2.5}, "bad-parameter"),
        ({"dictionary": "wavelets"}, "bad-parameter"),
        ({"dictionary": np.ones((4, 5))}, "dictionary-of-another-shape"),
        ({"lam": float("nan")}, "bad-parameter"),
    ],
)
def test_bad_parameters_are_named(noisy, given: dict, code: str) -> None:
    with pytest.raises(ParameterError) as caught:
        solve(noisy, "pdlnv", **{"mu": 0.1, "lam": 1.0, **given})
    assert caught.value.code == code
    assert caught.value.values.get("name", next(iter(given))) in given


def test_unknown_method_suggests(noisy) -> None:
    with pytest.raises(ParameterError) as caught:
        solve(noisy, "pdnlv")
    assert caught.value.code == "unknown-method"


def test_control_hears_every_iteration(noisy) -> None:
    class Ear(Control):
        def __init__(self) -> None:
            self.records = []

        def on_iteration(self, record) -> None:
            self.records.append(record)

    ear = Ear()
    result = solve(noisy, "dlnv", max_iter=3, control=ear)
    assert tuple(ear.records) == result.history and len(ear.records) == 3


def test_color_albedo_has_the_scene_s_colors() -> None:
    capture = render_scene("sphere", size=48, color=True, cast_shadows=False, attached=False)
    result = solve(capture, "ls")
    assert result.albedo.shape == (48, 48, 3)
    scale = np.median(result.albedo[capture.mask] / capture.truth_albedo[capture.mask])
    assert (
        np.abs(result.albedo[capture.mask] / scale - capture.truth_albedo[capture.mask]).max()
        < 1e-3
    )


def test_noise_is_measured_only_where_a_strength_is_left_open(noisy, monkeypatch) -> None:
    """One preparation serves given strengths without a look at the noise, and open ones after it."""
    measured = []
    honest = NoiseEvidence.of.__func__
    monkeypatch.setattr(
        NoiseEvidence,
        "of",
        classmethod(lambda cls, *given: measured.append(1) or honest(cls, *given)),
    )
    prepared = prepare(noisy, "dlnv", max_iter=2)
    given = solve(noisy, "dlnv", prepared=prepared, lam=2.0, mu=0.1, max_iter=2)
    assert not measured
    opened = solve(noisy, "dlnv", prepared=prepared, max_iter=2)
    assert len(measured) == 1
    monkeypatch.undo()
    assert np.array_equal(given.normals, solve(noisy, "dlnv", lam=2.0, mu=0.1, max_iter=2).normals)
    assert np.array_equal(opened.normals, solve(noisy, "dlnv", max_iter=2).normals)
