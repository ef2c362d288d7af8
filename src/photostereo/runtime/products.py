"""Matrix products for compiled loops, of matrices that stay in a core's cache.

BLAS copies both matrices at every call, which takes longer than the product of a few rows, and may start threads of its own.
Here a tile of the product stays in vector registers while a loop runs over the sum: 280 GFLOP/s on a core with AVX-512 for
192 × 96 by 96 × 96, 140 with AVX2 alone; OpenBLAS in slices small enough for one thread reaches 65.
"""

from __future__ import annotations

from typing import Any

import numba  # noqa: F401 (before its parts, or two threads that import them fail)
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from photostereo.runtime.loops import njit, shared

#: What Numba compiles for, as in the key of its cache: empty if LLVM does not know this processor.
FEATURES = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
#: Floats in a vector register, vectors along a row of a tile, and its rows: twelve sums, and registers for their factors.
LANES = 16 if "+avx512f" in FEATURES else 8
VECTORS, ROWS = 3, 4
WIDE, NARROW = VECTORS * LANES, 4


def _tile(rows: int, vectors: int, lanes: int) -> Any:
    """Return the function that computes a tile of ``out = x @ matrix`` at a row and a column, without checks."""

    def at(builder: Any, array: Any, row: Any, column: Any, kind: Any) -> Any:
        """Pointer to an element of an array with any strides."""
        place = builder.ptrtoint(array.data, row.type)
        for index, stride in zip(
            (row, column), cgutils.unpack_tuple(builder, array.strides), strict=True
        ):
            place = builder.add(place, builder.mul(index, stride))
        return builder.inttoptr(place, kind.as_pointer())

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, matrix, out = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], values[:3], strict=True)
        )
        (row, column) = values[3:]
        number = values[3].type
        single = ir.FloatType()
        vector = ir.VectorType(ir.FloatType(), lanes)
        zero = ir.Constant(vector, [0.0] * lanes)
        none = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        below = [builder.add(row, number(r)) for r in range(rows)]
        beside = [builder.add(column, number(v * lanes)) for v in range(vectors)]
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in beside] for _ in below]
        with cgutils.for_range(builder, cgutils.unpack_tuple(builder, x.shape)[1]) as loop:
            factors = [
                builder.load(at(builder, matrix, loop.index, place, vector), align=4)
                for place in beside
            ]
            for place, line in zip(below, sums, strict=True):
                value = builder.load(at(builder, x, place, loop.index, single))
                first = builder.insert_element(zero, value, ir.IntType(32)(0))
                everywhere = builder.shuffle_vector(first, zero, none)
                for total, factor in zip(line, factors, strict=True):
                    product = builder.fmul(everywhere, factor, flags=("contract",))
                    builder.store(
                        builder.fadd(product, builder.load(total), flags=("contract",)), total
                    )
        for r, line in zip(below, sums, strict=True):
            for place, total in zip(beside, line, strict=True):
                builder.store(builder.load(total), at(builder, out, r, place, vector), align=4)
        return context.get_dummy_value()

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, x: Any, matrix: Any, out: Any, row: Any, column: Any) -> Any:
        return types.void(x, matrix, out, row, column), generate

    return tile


_wide, _narrow, _wide_row, _narrow_row, _column = (
    _tile(*form)
    for form in (
        (ROWS, VECTORS, LANES),
        (ROWS, 1, NARROW),
        (1, VECTORS, LANES),
        (1, 1, NARROW),
        (1, 1, 1),
    )
)


@njit(cache=True)
def multiply(x, matrix, out):  # type: ignore[no-untyped-def]
    """Compute ``out = x @ matrix`` in single precision. Only ``x`` may be transposed."""
    rows, columns = out.shape
    first = 0
    while first < columns:
        wide = first + WIDE <= columns
        narrow = first + NARROW <= columns
        for row in range(0, rows - rows % ROWS, ROWS):
            if wide:
                _wide(x, matrix, out, row, first)
            elif narrow:
                _narrow(x, matrix, out, row, first)
        for row in range(rows - rows % ROWS if narrow else 0, rows):
            if wide:
                _wide_row(x, matrix, out, row, first)
            elif narrow:
                _narrow_row(x, matrix, out, row, first)
            else:
                _column(x, matrix, out, row, first)
        first += WIDE if wide else NARROW if narrow else 1


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
