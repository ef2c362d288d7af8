"""Matrix products for compiled loops, of matrices that stay in a core's cache.

BLAS copies both matrices at every call, which takes longer than the product of a few rows, and may start threads of its
own. Here a tile of the product stays in vector registers while a loop runs over the sum (:mod:`.matmul_tiles`): 280
GFLOP/s on a core with AVX-512 for 192 × 96 by 96 × 96, 140 with AVX2 alone; OpenBLAS in slices small enough for one
thread reaches 65. If the tiles cannot be compiled, three plain loops do the same, several times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from photostereo.runtime.loops import NUMBA_VERSION, njit, shared

try:
    from photostereo.runtime.matmul_tiles import (
        NARROW,
        ROWS,
        WIDE,
        narrow_row,
        narrow_tile,
        single_element,
        wide_row,
        wide_tile,
    )
except Exception:  # whatever another version of Numba or llvmlite raises
    HAS_TILES = False
else:
    HAS_TILES = True

#: The newest version of Numba that the tests know; with a later one the tiles are tried before they are used.
TESTED = (0, 68)


@njit(cache=True)
def multiply_in_tiles(x, matrix, out):  # type: ignore[no-untyped-def]
    """Compute ``out = x @ matrix`` in single precision. Only ``x`` may be transposed."""
    rows, columns = out.shape
    first = 0
    while first < columns:
        wide = first + WIDE <= columns
        narrow = first + NARROW <= columns
        for row in range(0, rows - rows % ROWS, ROWS):
            if wide:
                wide_tile(x, matrix, out, row, first)
            elif narrow:
                narrow_tile(x, matrix, out, row, first)
        for row in range(rows - rows % ROWS if narrow else 0, rows):
            if wide:
                wide_row(x, matrix, out, row, first)
            elif narrow:
                narrow_row(x, matrix, out, row, first)
            else:
                single_element(x, matrix, out, row, first)
        first += WIDE if wide else NARROW if narrow else 1


@njit(cache=True)
def multiply_plainly(x, matrix, out):  # type: ignore[no-untyped-def]
    """Compute ``out = x @ matrix`` in single precision, with three loops."""
    rows, columns = out.shape
    for row in range(rows):
        for column in range(columns):
            out[row, column] = 0
        for term in range(x.shape[1]):
            factor = x[row, term]
            for column in range(columns):
                out[row, column] += factor * matrix[term, column]


def tiles_are_right() -> bool:
    """Compile a product in tiles, and compare it with NumPy's."""
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    matrix = np.arange(7 * 53, dtype=np.float32).reshape(7, 53) / 53
    out = np.empty((5, 53), dtype=np.float32)
    try:
        multiply_in_tiles(x, matrix, out)
    except Exception:  # as above
        return False
    return np.allclose(out, x @ matrix, rtol=1e-5)


def product() -> Any:
    """Return the fastest product that works with this version of Numba."""
    if HAS_TILES and (NUMBA_VERSION <= TESTED or tiles_are_right()):
        return multiply_in_tiles
    return multiply_plainly


#: Computes ``out = x @ matrix`` in single precision, in compiled loops. Only ``x`` may be transposed.
multiply = product()


@shared("lines")
def convolve_lines(first, last, padded, matrix, bias, stride, lines):  # type: ignore[no-untyped-def]
    """Each line is one matrix product, of patches that stay in the cache."""
    wide, outputs = lines.shape[1:]
    tall = len(lines) // len(padded)
    third = len(matrix) // 3
    step = third // 3 * stride
    patches = np.empty((wide, len(matrix)), dtype=np.float32)
    for line in range(first, last):
        picture = line // tall
        top = line % tall * stride
        for x in range(wide):
            for row in range(3):
                for k in range(third):
                    patches[x, row * third + k] = padded[picture, top + row, x * step + k]
        multiply(patches, matrix, lines[line])
        for x in range(wide):
            for k in range(outputs):
                lines[line, x, k] += bias[k]
