"""Every operation of a jet against central differences of its values."""

import numpy as np
import pytest

from photostereo_lab.scenes import jets
from photostereo_lab.scenes.jets import Jet, variables

OPERATIONS = {
    "sum": lambda u, v: 2.0 + u + v - 0.5 - (1.0 - u),
    "product": lambda u, v: u * v * 3.0,
    "array factor": lambda u, v: np.full(u.value.shape, 2.0) * u + np.full(u.value.shape, 3.0),
    "quotient": lambda u, v: u / (2.0 + v) / 4.0,
    "negation": lambda u, v: -u * v,
    "square": lambda u, v: (u + 2.0 * v).square(),
    "sqrt": lambda u, v: (5.0 + u * v).sqrt(),
    "sin": lambda u, v: (3.0 * u - v).sin(),
    "cos": lambda u, v: (u * v).cos(),
    "exp": lambda u, v: (-u.square() - v).exp(),
    "smoothstep": lambda u, v: (u + v).smoothstep(-0.7, 0.9),
    "angle": lambda u, v: jets.arctangent(v, u + 3.0 * v.square()),
    "smooth maximum": lambda u, v: jets.smooth_maximum(u, v.sin(), 0.5),
    "where": lambda u, v: jets.where(u.value > 0.1, u * v, v),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_slopes_match_central_differences(name):
    rng = np.random.default_rng(5)
    u, v = rng.uniform(-1.0, 1.0, (2, 400))
    operation, eps = OPERATIONS[name], 1e-6

    def value(du, dv):
        return operation(*variables(u + du, v + dv)).value

    result = operation(*variables(u, v))
    assert isinstance(result, Jet)
    np.testing.assert_allclose(result.du, (value(eps, 0) - value(-eps, 0)) / (2 * eps), atol=1e-8)
    np.testing.assert_allclose(result.dv, (value(0, eps) - value(0, -eps)) / (2 * eps), atol=1e-8)


def test_smooth_maximum_is_the_maximum_away_from_the_crease_and_never_below():
    a, b = variables(*np.random.default_rng(1).uniform(-1.0, 1.0, (2, 1000)))
    smooth = jets.smooth_maximum(a, b, 0.3)
    sharp = np.maximum(a.value, b.value)
    away = np.abs(a.value - b.value) >= 0.3
    np.testing.assert_allclose(smooth.value[away], sharp[away], rtol=0, atol=1e-15)
    assert (smooth.value >= sharp - 1e-15).all()
    assert (smooth.value - sharp).max() <= 0.3 / 4 + 1e-15


def test_root_of_a_negative_field_is_flat():
    u, _ = variables(np.array([-1.0]), np.array([0.0]))
    root = u.sqrt(floor=1e-4)
    assert root.value[0] == pytest.approx(1e-2)
    assert root.du[0] == 0.0
