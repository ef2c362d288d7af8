"""photostereo's own contract, on this package's model and prior."""

import pytest

from photostereo_lab.testing import CHECKS


@pytest.mark.parametrize("name", ["halflambert", "halflambert+dictionary", "halflambert+mean"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, name):
    check(name)
