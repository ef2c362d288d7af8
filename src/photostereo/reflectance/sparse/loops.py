"""Per-pixel loops of sparse regression, on the processor or on a GPU.

Each function chooses between the compiled loops and the kernels of ``sparse.cu``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from photostereo.reflectance.model import BATCH
from photostereo.reflectance.sparse import kernels
from photostereo.runtime.arrays import Array, is_tensor, to_numpy
from photostereo.runtime.cuda_kernels import c_name, launch

#: Threads per block.
THREADS = 64
#: Threads per pixel in ``sbl_em``, which share its photographs; as in ``sparse.cu``.
SHARING = 8


def batch_size(pixels: Array) -> int:
    """Pixels per call: for tensors enough to fill a GPU, with at most a gigabyte of scratch memory."""
    return max((1 << 25) // pixels.shape[1], 1) if is_tensor(pixels) else BATCH


def sbl_em(  # type: ignore[no-untyped-def]
    Y, L, scale, noise, prior_variance, tol, settled, max_iter, n, iterations, weights
) -> None:
    """See :func:`.kernels.sbl_em`."""
    numbers = (float(noise), float(prior_variance), float(tol), float(settled), int(max_iter))
    if not _on_gpu(Y):
        _run(kernels.sbl_em, Y, L, scale, *numbers, n, iterations, weights)
        return
    count, photographs = Y.shape
    sizes = (count, photographs, len(weights) == count, _apart(L))
    scratch = n.new_empty(2 * count * photographs)
    _launch(
        "sbl_em", SHARING * count, Y, L, scale, *numbers, n, iterations, weights, scratch, *sizes
    )


def l1_regression(Y, L, start, floor, tol, max_iter, n, iterations) -> None:  # type: ignore[no-untyped-def]
    """See :func:`.kernels.l1_regression`."""
    numbers = (float(floor), float(tol), int(max_iter))
    if not _on_gpu(Y):
        _run(kernels.l1_regression, Y, L, start, *numbers, n, iterations)
        return
    count, photographs = Y.shape
    scratch = n.new_empty(3 * count * photographs)
    sizes = (count, photographs, _apart(L))
    _launch("l1_regression", count, Y, L, start, *numbers, n, iterations, scratch, *sizes)


def reweigh(Y, L, n, threshold, redescending, gram, moment, rest) -> None:  # type: ignore[no-untyped-def]
    """See :func:`.kernels.reweigh`."""
    if not _on_gpu(Y):
        _run(kernels.reweigh, Y, L, n, threshold, redescending, gram, moment, rest)
        return
    sizes = (1, *Y.shape, redescending, _apart(L))
    _launch("reweigh", len(Y), Y, L, n, threshold, gram, moment, rest, *sizes)


def _on_gpu(pixels: Array) -> bool:
    return is_tensor(pixels) and bool(pixels.is_cuda)


def _run(loop: Callable[..., None], *arguments: Any) -> None:
    loop(*(to_numpy(value) if is_tensor(value) else value for value in arguments))


def _apart(L: Any) -> int:
    """Stride between the lights of consecutive pixels, in numbers."""
    return 0 if len(L) == 1 else int(L[0].numel())


def _launch(name: str, threads: int, *arguments: Any) -> None:
    types = {"INTENSITY": c_name(arguments[0].dtype), "DIRECTION": c_name(arguments[1].dtype)}
    launch(__package__, "sparse.cu", name, types, arguments, -(-threads // THREADS), THREADS)
