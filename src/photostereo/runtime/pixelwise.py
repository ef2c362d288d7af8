"""Small steps that a descent repeats for every pixel, as one launch each on a GPU (``pixelwise.cu``).

Each has a readable form in array operations, which serves every other kind of array: :func:`~photostereo.runtime.
algebra.solve_shifted_3x3`, :func:`~photostereo.runtime.algebra.quadratic_form`,
:func:`~photostereo.diagnosis.metrics.angle_between`.
"""

from __future__ import annotations

from typing import Any

from photostereo.runtime.arrays import Array, is_tensor

Tensor = Any

_THREADS = 256


def fits(first: Array, *others: Array) -> bool:
    """Whether these are tensors on a GPU in double precision, the others with the axes of the first or its last ones."""
    arrays = (first, *others)
    return all(
        is_tensor(array) and array.is_cuda and array.dtype.itemsize == 8 and array.is_floating_point()
        for array in arrays
    ) and all(other.ndim > 0 for other in others)


def solve_shifted(entries: Tensor, weight: Tensor, right: Tensor) -> Tensor:
    """``(H + w I) n = b``: entries (N, 6) or (..., N, 6), w (N) or (..., N), b (..., N, 3)."""
    out = right.new_empty(right.shape)
    counts = (entries.numel() // 6, weight.numel())
    _launch("solve_shifted", right, (entries, weight, right, out), counts)
    return out


def quadratic_form(entries: Tensor, n: Tensor) -> Tensor:
    """``nᵀH n``: entries (N, 6) or (..., N, 6), n (..., N, 3)."""
    out = n.new_empty(n.shape[:-1])
    _launch("quadratic_form", n, (entries, n, out), (entries.numel() // 6,))
    return out


def angle_between(a: Tensor, b: Tensor) -> Tensor:
    """Degrees between a (..., N, 3) and b (N, 3) or (..., N, 3)."""
    out = a.new_empty(a.shape[:-1])
    _launch("angle_between", a, (a, b, out), (b.numel() // 3,))
    return out


def _launch(name: str, vectors: Tensor, arrays: tuple[Tensor, ...], counts: tuple[int, ...]) -> None:
    from photostereo.runtime.cuda_kernels import compile_kernel, device_of

    total = vectors.numel() // 3
    arguments = tuple(array.contiguous() for array in arrays)
    with device_of(vectors):
        kernel = compile_kernel("photostereo.runtime", "pixelwise.cu", name)
        kernel.launch(min(-(-total // _THREADS), 1 << 20), _THREADS, (*arguments, *counts, total))
