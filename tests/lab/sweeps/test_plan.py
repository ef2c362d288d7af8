"""Plans: what they expand to, and that oracle and defaults stay apart."""

from __future__ import annotations

import json

import pytest

from photostereo.core.errors import ParameterError
from photostereo_lab.sweeps.outputs import average_of, average_over_objects, choice_of, results_of
from photostereo_lab.sweeps.plan import CLEAN, Corruption, MethodPlan, Plan


def a_plan(captures, **changes):
    methods = (
        MethodPlan("ls"),
        MethodPlan("pdlnv", fixed={"p": 2}, grid={"lam": [1, 10], "mu": [0.1, 0.2, 0.3]}),
    )
    facts = {
        "methods": methods,
        "images": (8,),
        "corruptions": (CLEAN, Corruption("poisson", 5.0)),
        "seeds": (0, 1),
        **changes,
    }
    return Plan("test", captures, **facts)


def test_a_plan_is_the_product_of_its_parts(captures):
    plan = a_plan(captures)
    # 2 captures × 2 corruptions × 2 seeds = 8 scenes; LS is one trial, PDLNV 2 × 3 of its grid and 1 with
    # defaults.
    assert len(plan.cells) == 8 * 2
    assert len(plan.trials) == 8 * (1 + 6 + 1)
    assert len({trial.hash for trial in plan.trials}) == len(plan.trials)


def test_seeds_collapse_where_nothing_is_random(captures):
    plan = a_plan(captures, images=(None, 8))
    clean_and_whole = [t for t in plan.trials if t.images is None and t.corruption == CLEAN]
    assert len(clean_and_whole) == 2 * (1 + 6 + 1)
    assert {t.seed for t in clean_and_whole} == {None}


def test_equal_values_of_another_type_are_the_same_trial(captures):
    one = a_plan(captures, methods=(MethodPlan("pdlnv", grid={"lam": [1]}, defaults=False),))
    other = a_plan(captures, methods=(MethodPlan("pdlnv", grid={"lam": [1.0]}, defaults=False),))
    assert [t.hash for t in one.trials] == [t.hash for t in other.trials]


def test_json_gives_back_the_same_plan(captures):
    plan = a_plan(captures)
    again = Plan.from_dict(json.loads(json.dumps(plan.as_dict())))
    assert [t.hash for t in again.trials] == [t.hash for t in plan.trials]
    assert [c.label for c in again.cells] == [c.label for c in plan.cells]


def test_bad_parameters_are_refused(captures):
    with pytest.raises(ParameterError) as caught:
        _ = a_plan(captures, methods=(MethodPlan("pdlnv", grid={"lamda": [1]}),)).trials
    assert caught.value.code == "unknown-parameter"


def row(trial, mean, status="done"):
    return {
        "hash": trial.hash,
        "status": status,
        "mean": mean,
        "parameters": trial.plain_parameters,
        "error": None,
    }


def test_oracle_and_defaults_are_never_mixed(captures):
    plan = a_plan(captures[:1], corruptions=(CLEAN,), seeds=(0,))
    cell = plan.cells[1]
    rows = {t.hash: row(t, 10.0 + number) for number, t in enumerate(cell.grid)}
    # The defaults are better than anything in the grid: the oracle must not take them, and the reverse.
    rows[cell.default.hash] = row(cell.default, 1.0)
    result = results_of(plan, rows)[1]
    assert result.oracle["mean"] == 10.0
    assert result.oracle["hash"] in {t.hash for t in cell.grid}
    assert result.defaults["mean"] == 1.0
    assert average_of([result], "oracle").mean == 10.0
    assert average_of([result], "defaults").mean == 1.0
    assert choice_of([result.oracle], ["lam", "mu"]) == "lam=1 mu=0.1"


def test_oracle_is_the_lowest_mean_of_the_grid_and_leaves_out_failures(captures):
    plan = a_plan(captures[:1], corruptions=(CLEAN,), seeds=(0,))
    cell = plan.cells[1]
    rows = {t.hash: row(t, 20.0 - number) for number, t in enumerate(cell.grid)}
    rows[cell.grid[-1].hash] = row(cell.grid[-1], None, "failed")
    result = results_of(plan, rows)[1]
    assert result.oracle["hash"] == cell.grid[-2].hash
    assert result.defaults is None


def test_averages_are_over_trials(captures):
    plan = a_plan(captures[:1], corruptions=(CLEAN,), methods=(MethodPlan("ls"),), seeds=(0, 1))
    rows = {t.hash: row(t, mean) for t, mean in zip(plan.trials, (3.0, 7.0), strict=True)}
    found = average_of(results_of(plan, rows), "oracle")
    assert (found.mean, found.count) == (5.0, 2)
    assert found.spread == pytest.approx(8**0.5)


def test_an_average_over_objects_is_taken_within_each_seed(captures):
    plan = a_plan(captures, corruptions=(CLEAN,), methods=(MethodPlan("ls"),), seeds=(0, 1))
    # Objects differ by 20 degrees, trials by 2: the spread is that of the trials.
    means = {("sphere", 0): 10.0, ("sphere", 1): 12.0, ("vase", 0): 30.0, ("vase", 1): 32.0}
    rows = {t.hash: row(t, means[t.capture.name, t.seed]) for t in plan.trials}
    found = average_over_objects(results_of(plan, rows), "oracle")
    assert (found.mean, found.count) == (21.0, 2)
    assert found.spread == pytest.approx(2**0.5)
