"""Any model with any prior: reachable, a descent, and the presets are the same pairs."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import angle_between
from photostereo.priors.entry import prior_names
from photostereo.reflectance.entry import registered_models
from photostereo.solver.methods import Method, find_method, method_names
from photostereo.solver.solve import solve
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def noisy():
    return add_poisson(render_scene("relief", size=64, lights=dome_lights(12)), 10.0, rng=0)


@pytest.fixture(scope="module")
def alone(noisy):
    """Solves with a model alone, once."""
    return cache(lambda model: solve(noisy, model))


@pytest.mark.parametrize("prior", prior_names())
@pytest.mark.parametrize("model", list(registered_models()))
def test_every_model_takes_every_prior(model: str, prior: str, noisy, alone) -> None:
    result = solve(noisy, model, prior=prior, max_iter=8)
    costs = [record.cost for record in result.history]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in itertools.pairwise(costs))
    # The neighbors help where there is noise. What robust PCA with few photographs leaves is bias, not noise, and
    # the learned model has asked the neighbors already.
    truth, inside = noisy.truth[noisy.mask], noisy.mask
    with_prior, without = (
        angle_between(r.normals[inside], truth).mean() for r in (result, alone(model))
    )
    assert with_prior < {"rpca": 1.1, "net": 1.02}.get(model, 0.98) * without


@pytest.mark.parametrize(("model", "preset"), [("ls", "dlnv"), ("pls", "pdlnv"), ("sbl", "dlsr")])
def test_presets_are_pairs(model: str, preset: str, noisy) -> None:
    assert (
        find_method(model, "dictionary")
        is find_method(preset)
        is find_method(f"{model}+dictionary")
    )
    pair = solve(noisy, model, prior="dictionary", max_iter=2)
    named = solve(noisy, preset, max_iter=2)
    assert pair.method == named.method == preset
    assert np.array_equal(pair.normals, named.normals)


def test_a_pair_without_a_name_has_one(noisy) -> None:
    pair = find_method("cbr+dictionary")
    assert pair.name == "cbr+dictionary" and pair.has_prior
    assert {"orders", "gamma", "lam", "mu"} <= {parameter.name for parameter in pair.parameters}
    first = solve(noisy, pair, max_iter=2)
    assert np.array_equal(
        first.normals, solve(noisy, "cbr", prior="dictionary", max_iter=2).normals
    )


def test_the_priors_own_parameters_govern_the_descent() -> None:
    for model in registered_models():
        names = [parameter.name for parameter in find_method(model, "dictionary").parameters]
        assert len(names) == len(set(names)), model


@pytest.mark.parametrize(
    ("method", "prior", "code"),
    [
        ("zebra", None, "unknown-method"),
        ("ls", "zebra", "unknown-prior"),
        ("ls+zebra", None, "unknown-prior"),
        (7, None, "method-not-a-name"),
        ("dictionary+ls", None, "unknown-method"),
        ("dlnv", "smoothness", "second-prior"),
    ],
)
def test_what_is_not_a_method_is_refused(method, prior, code, noisy) -> None:
    with pytest.raises(ParameterError) as caught:
        solve(noisy, method, prior=prior)
    assert caught.value.code == code


def test_a_method_of_ones_own_is_solved(noisy) -> None:
    ls = find_method("ls")
    mine = Method(
        "mine",
        "Mine",
        "Nothing.",
        ls.model,
        ls.look,
        "nobody",
        find_method("dlnv").prior,
        {"max_iter": 3},
    )
    result = solve(noisy, mine, lam=1.0, mu=0.1)
    assert (result.method, result.iterations) == ("mine", 3)
    assert "mine" not in method_names()
