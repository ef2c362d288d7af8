"""Medians, quantiles and interpolation, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.runtime.quantiles import (
    interpolate,
    known_medians,
    median,
    quantiles,
    row_medians,
    row_quantiles,
)


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_as_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=(5, count))
    shares = [0.0, 0.3, 0.5, 1.0]
    np.testing.assert_array_equal(quantiles(values, shares), np.quantile(values, shares))
    assert median(values) == np.median(values)
    np.testing.assert_array_equal(
        row_quantiles(values, 0.75), np.quantile(values, 0.75, axis=1)[:, None]
    )
    np.testing.assert_array_equal(row_medians(values), np.median(values, axis=1)[:, None])
    values[values > 0.5] = np.nan
    values[0] = 0.0
    np.testing.assert_array_equal(known_medians(values), np.nanmedian(values, axis=0))


def test_level_beyond_the_ends() -> None:
    found = interpolate(np.array([-1.0, 0.5, 9.0]), np.array([0.0, 1.0]), np.array([2.0, 4.0]))
    assert found.tolist() == [2.0, 3.0, 4.0]
