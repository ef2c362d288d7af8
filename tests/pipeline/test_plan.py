"""Every decision is taken once, and passed down."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

import photostereo as ps
from photostereo.capture import write_diligent
from photostereo.io import memory
from photostereo.pipeline.plan import Plan
from photostereo_lab.scenes import dome_lights, render_scene

#: Functions that take a decision.
DECISIONS = ("find_method", "bands_of", "device_for", "available_memory")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    scene = render_scene("vase", size=40, lights=dome_lights(6), color=True)
    return write_diligent(scene, tmp_path_factory.mktemp("scene") / "vasePNG")


@pytest.fixture
def calls(monkeypatch):
    """How often the functions are called, in whatever module they are imported."""
    counts: Counter[str] = Counter()

    def counting(name, honest):
        def count(*values, **options):
            counts[name] += 1
            return honest(*values, **options)

        return count

    for module in [module for name, module in sys.modules.items() if name[:11] == "photostereo"]:
        for name in DECISIONS:
            if module is not memory and callable(vars(module).get(name)):
                monkeypatch.setattr(module, name, counting(name, vars(module)[name]))
    honest = Plan.of
    monkeypatch.setattr(Plan, "of", counting("Plan.of", honest))
    return counts


@pytest.mark.parametrize("method", ["sbl", "auto"])
def test_a_solve_takes_every_decision_once(folder, tmp_path, calls, method) -> None:
    pipeline = ps.Pipeline(folder, method=method, surface=False, report=False)
    pipeline.write(tmp_path / "out")
    # The expected error asks the learned model, which is another solve.
    second = 1 if method == "sbl" else 0
    assert calls["find_method"] == 1 + second
    assert calls["device_for"] == 1 + second
    assert calls["Plan.of"] == calls["bands_of"] == 1
    # Besides the plan, only the reading of photographs looks at the free memory.
    assert calls["available_memory"] <= 2


def test_a_plan_does_not_change_with_the_free_memory(folder, monkeypatch) -> None:
    pipeline = ps.Pipeline(folder, method="ls")
    plan = pipeline.plan
    monkeypatch.setattr("photostereo.pipeline.budget.available_memory", lambda: 10**6)
    assert pipeline.plan is plan and pipeline.solution.method == "ls"
