"""Models are built at once; the work can be watched and canceled."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.control import Cancelled, Control
from photostereo.reflectance.bivariate import model as bivariate
from photostereo.reflectance.piecewise import model as piecewise

MODELS = {"pls": (piecewise, piecewise.Piecewise), "cbr": (bivariate, bivariate.Bivariate)}


class StopsAtFirstStep(Control):
    """Cancels the work when its first part is done."""

    steps = 0

    def on_advance(self, steps: int) -> None:
        self.steps += steps
        self.cancel()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("call", ["alone", "start"])
def test_curves_can_be_canceled(monkeypatch, name: str, call: str) -> None:
    module, kind = MODELS[name]
    monkeypatch.setattr(module, "AT_ONCE", 10)
    rng = np.random.default_rng(0)
    lights = rng.normal(size=(3, 12)) + np.array([[0.0], [0.0], [2.0]])
    lights /= np.linalg.norm(lights, axis=0)
    model = kind(rng.uniform(0.05, 1.0, (50, 12)), lights)
    control = StopsAtFirstStep()
    with pytest.raises(Cancelled):
        getattr(model, call)(control)
    assert control.steps == 10
    # Nothing is left half done: the same model can still answer.
    assert model.alone(Control()).normals.shape == (50, 3)
