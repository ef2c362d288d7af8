"""Tiles of matrix products as compiled code, written in LLVM's own language.

This uses interfaces that Numba and llvmlite may change in any version. Only :mod:`.small_matmul` imports it, and does
without if anything here fails.
"""

from __future__ import annotations

import inspect
from typing import Any

import numba  # noqa: F401 (before its parts, or two threads that import them fail)
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

#: What Numba compiles for, as in the key of its cache: empty if LLVM does not know this processor.
FEATURES = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
#: Floats in a vector register.
LANES = 16 if "+avx512f" in FEATURES else 8
#: Rows and vectors of a wide tile: twelve sums, and registers for their factors.
ROWS = 4
VECTORS = 3
#: Columns of a wide and of a narrow tile.
WIDE = VECTORS * LANES
NARROW = 4
#: Whether a load names its type: newer versions of LLVM have pointers that do not know theirs.
_LOADS_ARE_TYPED = "typ" in inspect.signature(ir.IRBuilder.load).parameters


def _load(builder: Any, pointer: Any, kind: Any, align: int | None = None) -> Any:
    """Load a value of a type from a pointer."""
    if _LOADS_ARE_TYPED:
        return builder.load(pointer, align=align, typ=kind)
    return builder.load(pointer, align=align)


def _element(builder: Any, array: Any, row: Any, column: Any, kind: Any) -> Any:
    """Return a pointer to an element of an array with any strides."""
    strides = cgutils.unpack_tuple(builder, array.strides)
    address = builder.ptrtoint(array.data, row.type)
    address = builder.add(address, builder.mul(row, strides[0]))
    address = builder.add(address, builder.mul(column, strides[1]))
    return builder.inttoptr(address, kind.as_pointer())


def _tile(rows: int, vectors: int, lanes: int) -> Any:
    """Return the function that computes a tile of ``out = x @ matrix`` at a row and a column, without checks.

    Parameters
    ----------
    rows : int
        Rows of the tile.
    vectors : int
        Vectors in each row.
    lanes : int
        Floats in a vector.
    """
    single = ir.FloatType()
    vector = ir.VectorType(single, lanes)
    first_lane = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, matrix, out = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], values[:3], strict=True)
        )
        row, column = values[3:]
        zero = ir.Constant(vector, [0.0] * lanes)
        tile_rows = [builder.add(row, row.type(r)) for r in range(rows)]
        tile_columns = [builder.add(column, row.type(v * lanes)) for v in range(vectors)]
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in tile_columns] for _ in tile_rows]
        terms = cgutils.unpack_tuple(builder, x.shape)[1]
        with cgutils.for_range(builder, terms) as loop:
            factors = [
                _load(builder, _element(builder, matrix, loop.index, at, vector), vector, 4)
                for at in tile_columns
            ]
            for at, line in zip(tile_rows, sums, strict=True):
                value = _load(builder, _element(builder, x, at, loop.index, single), single)
                alone = builder.insert_element(zero, value, ir.IntType(32)(0))
                everywhere = builder.shuffle_vector(alone, zero, first_lane)
                for total, factor in zip(line, factors, strict=True):
                    product = builder.fmul(everywhere, factor, flags=("contract",))
                    before = _load(builder, total, vector)
                    builder.store(builder.fadd(product, before, flags=("contract",)), total)
        for r, line in zip(tile_rows, sums, strict=True):
            for at, total in zip(tile_columns, line, strict=True):
                target = _element(builder, out, r, at, vector)
                builder.store(_load(builder, total, vector), target, align=4)
        return context.get_dummy_value()

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, x: Any, matrix: Any, out: Any, row: Any, column: Any) -> Any:
        return types.void(x, matrix, out, row, column), generate

    return tile


wide_tile = _tile(ROWS, VECTORS, LANES)
narrow_tile = _tile(ROWS, 1, NARROW)
wide_row = _tile(1, VECTORS, LANES)
narrow_row = _tile(1, 1, NARROW)
single_element = _tile(1, 1, 1)
