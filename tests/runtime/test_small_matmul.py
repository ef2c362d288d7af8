"""Matrix products in compiled loops."""

import os
import subprocess
import sys

import numpy as np
import pytest

from photostereo.runtime.matmul_tiles import NARROW, ROWS, WIDE
from photostereo.runtime.small_matmul import (
    multiply,
    multiply_in_tiles,
    multiply_plainly,
    tiles_are_right,
)

UNKNOWN = """
import llvmlite.binding
def unknown():
    raise RuntimeError("failed to get host cpu features")
llvmlite.binding.get_host_cpu_features = unknown
"""
PRODUCT = """
import numpy as np
from photostereo.runtime.matmul_tiles import LANES
from photostereo.runtime.small_matmul import multiply
x, matrix = np.ones((5, 7), np.float32), np.arange(7 * 53, dtype=np.float32).reshape(7, 53)
out = np.empty((5, 53), np.float32)
multiply(x, matrix, out)
assert (out == x @ matrix).all()
print(LANES)
"""


@pytest.mark.parametrize("rows", [0, 1, ROWS, 3 * ROWS + 2])
@pytest.mark.parametrize("columns", [0, 1, NARROW, NARROW + 3, WIDE, 2 * WIDE + NARROW + 1])
@pytest.mark.parametrize("terms", [0, 1, 19])
@pytest.mark.parametrize("multiply", [multiply_in_tiles, multiply_plainly])
def test_products_are_those_of_numpy_to_the_last_row_and_column(multiply, rows, columns, terms):
    rng = np.random.default_rng(0)
    x, matrix = rng.standard_normal((rows, terms)), rng.standard_normal((terms, columns))
    expected, x, matrix = x @ matrix, x.astype(np.float32), matrix.astype(np.float32)
    for form in (x, np.asfortranarray(x)):
        whole = np.full((rows + 1, columns), 7.0, np.float32)
        multiply(form, matrix, whole[:rows])
        np.testing.assert_allclose(whole[:rows], expected, atol=1e-5)
        assert (whole[rows] == 7.0).all()


@pytest.mark.parametrize(
    ("settings", "before"),
    [({"NUMBA_CPU_NAME": "generic"}, ""), ({}, UNKNOWN)],
    ids=["any processor", "one that LLVM does not know"],
)
def test_products_for_other_processors(settings, before, tmp_path):
    """Vectors are as long as those that Numba compiles for."""
    environment = {**os.environ, **settings, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", before + PRODUCT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "8", done.stderr


#: Changes of llvmlite that make the tiles impossible: when they are defined, and when they are compiled.
BROKEN = {
    "at import": "import numba.extending as extending\ndel extending.intrinsic\n",
    "when compiled": (
        "import llvmlite.ir as ir\n"
        "del ir.IRBuilder.shuffle_vector\n"
        "import numba\n"
        "numba.version_info = numba.version_info._replace(short=(9, 0))\n"
    ),
}


@pytest.mark.parametrize("moment", BROKEN)
def test_without_the_tiles_there_is_a_plain_product(moment, tmp_path):
    program = (
        "import numpy as np\n"
        "from photostereo.runtime import small_matmul\n"
        "assert small_matmul.multiply is small_matmul.multiply_plainly\n"
        "x, matrix = np.ones((5, 7), np.float32), np.ones((7, 53), np.float32)\n"
        "out = np.empty((5, 53), np.float32)\n"
        "small_matmul.multiply(x, matrix, out)\n"
        "assert (out == 7).all()\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BROKEN[moment] + program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_the_tiles_are_used_here():
    assert multiply is multiply_in_tiles and tiles_are_right()
