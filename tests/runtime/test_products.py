"""Matrix products in compiled loops."""

import numpy as np
import pytest

from photostereo.runtime.products import NARROW, ROWS, WIDE, multiply


@pytest.mark.parametrize("rows", [1, ROWS, 3 * ROWS + 2])
@pytest.mark.parametrize("columns", [1, NARROW, NARROW + 3, WIDE, 2 * WIDE + NARROW + 1])
@pytest.mark.parametrize("terms", [0, 1, 19])
def test_products_are_those_of_numpy_to_the_last_row_and_column(rows, columns, terms):
    rng = np.random.default_rng(0)
    x, matrix = rng.standard_normal((rows, terms)), rng.standard_normal((terms, columns))
    expected, x, matrix = x @ matrix, x.astype(np.float32), matrix.astype(np.float32)
    for form in (x, np.asfortranarray(x)):
        whole = np.full((rows + 1, columns), 7.0, np.float32)
        multiply(form, matrix, whole[:rows])
        np.testing.assert_allclose(whole[:rows], expected, atol=1e-5)
        assert (whole[rows] == 7.0).all()
