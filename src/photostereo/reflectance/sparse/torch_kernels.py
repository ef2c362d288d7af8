"""The per-pixel loops of sparse regression on torch tensors, with the names and arguments of the compiled ones.

On a GPU they are the kernels of ``sparse.cu``; elsewhere the compiled ones work on the memory of the tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from photostereo.reflectance.sparse import absolute_kernels, kernels

Tensor = Any

#: Threads per block.
THREADS = 64
#: Threads that share the photographs of one pixel in ``sbl_em``; as in ``sparse.cu``.
SHARING = 8


def batch_size(photographs: int) -> int:
    """Pixels per launch: enough to fill a GPU, with at most a gigabyte of scratch memory."""
    return max((1 << 25) // photographs, 1)


def sbl_em(Y, L, scale, noise, prior_variance, tol, settled, max_iter, n, iterations, weights) -> None:  # type: ignore[no-untyped-def]
    """As :func:`.kernels.sbl_em`."""
    numbers = (float(noise), float(prior_variance), float(tol), float(settled), int(max_iter))
    if not Y.is_cuda:
        _on_cpu(kernels.sbl_em, Y, L, scale, *numbers, n, iterations, weights)
        return
    count, photographs = Y.shape
    sizes = (count, photographs, len(weights) == count, _apart(L))
    scratch = n.new_empty(2 * count * photographs)
    arguments = (Y, L, scale, *numbers, n, iterations, weights, scratch, *sizes)
    _launch("sbl_em", Y, arguments, threads=SHARING * count)


def l1_regression(Y, L, start, floor, tol, max_iter, n, iterations) -> None:  # type: ignore[no-untyped-def]
    """As :func:`.absolute_kernels.l1_regression`."""
    if not Y.is_cuda:
        _on_cpu(absolute_kernels.l1_regression, Y, L, start, floor, tol, max_iter, n, iterations)
        return
    count, photographs = Y.shape
    scratch = n.new_empty(3 * count * photographs)
    numbers = (float(floor), float(tol), int(max_iter))
    _launch(
        "l1_regression", Y, (Y, L, start, *numbers, n, iterations, scratch, count, photographs, _apart(L))
    )


def reweigh(Y, L, n, threshold, redescending, gram, moment, rest) -> None:  # type: ignore[no-untyped-def]
    """As :func:`.kernels.reweigh`; all but Y, L and the threshold may have a leading axis of problems."""
    count, photographs = Y.shape
    outputs = [array.view(-1, count, *array.shape[n.ndim - 1 :]) for array in (gram, moment, rest)]
    if Y.is_cuda:
        sizes = (rest.numel() // count, count, photographs, redescending, _apart(L))
        _launch("reweigh", Y, (Y, L, n, threshold, *outputs, *sizes), threads=rest.numel())
        return
    for g, normals in enumerate(n.view(-1, count, 3)):
        own = (array[g] for array in outputs)
        _on_cpu(kernels.reweigh, Y, L, normals, threshold, redescending, *own)


def _on_cpu(loop: Callable[..., None], *arguments: Any) -> None:
    loop(*(value.numpy() if hasattr(value, "numpy") else value for value in arguments))


def _apart(L: Tensor) -> int:
    """Numbers from the lights of one pixel to those of the next."""
    return 0 if len(L) == 1 else L[0].numel()


def _launch(name: str, Y: Tensor, arguments: tuple[Any, ...], *, threads: int | None = None) -> None:
    from photostereo.runtime.cuda_kernels import c_name, compile_kernel, device_of

    with device_of(Y):
        types = {"INTENSITY": c_name(Y.dtype), "DIRECTION": c_name(arguments[1].dtype)}
        kernel = compile_kernel("photostereo.reflectance.sparse", "sparse.cu", name, **types)
        kernel.launch(-(-(threads or len(Y)) // THREADS), THREADS, arguments)
