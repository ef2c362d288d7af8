"""Cutting patches out of normals and adding them back, on torch tensors: :class:`.PatchGrid`, on a GPU with kernels.

Every array may have a leading axis: several normal maps over the same mask.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from photostereo.priors.dictionary.patches import PatchGrid

Tensor = Any

_THREADS = 256


class TorchPatches:
    """The patches of a grid for tensors on one device: the same methods as :class:`.PatchGrid`, same results.

    >>> import torch
    >>> grid = PatchGrid.from_mask(np.ones((12, 9), bool), size=(4, 4, 3), stride=2)
    >>> patches, n = TorchPatches(grid, "cpu"), torch.ones(grid.n_pixels, 3)
    >>> bool((patches.adjoint(patches.extract(n)) == patches.count[:, None] * n).all())
    True
    """

    def __init__(self, grid: PatchGrid, device: str) -> None:
        self._grid, self._device = grid, device

    @cached_property
    def count(self) -> Tensor:
        """(N,) how many patches cover each pixel."""
        first_row, last_row, first_col, last_col = self._covering
        return (last_row - first_row).double() * (last_col - first_col)

    def extract(self, n: Tensor) -> Tensor:
        """All patches of the normals ``n`` (..., N, 3): one row per patch, (..., w, m)."""
        import torch

        grid = self._grid
        empty = torch.zeros(*n.shape[:-2], grid.n_patches, grid.patch_length, dtype=n.dtype, device=n.device)
        return self.add_extract(n, empty)

    def add_extract(self, n: Tensor, out: Tensor) -> Tensor:
        """``out += extract(n)`` in place."""
        if n.is_cuda:
            self._add_on_gpu(n.contiguous(), out)
        else:
            problems, patches = n.reshape(-1, *n.shape[-2:]), out.view(-1, *out.shape[-2:])
            for one, own in zip(problems, patches, strict=True):
                self._grid.add_extract(one.numpy(), own.numpy())
        return out

    def adjoint(self, P: Tensor) -> Tensor:
        """``sum_j P_j^T p_j``: (..., w, m) to (..., N, 3), in the dtype of ``P``."""
        if P.is_cuda:
            return self._sum_on_gpu(P.contiguous())
        import torch

        sums = [torch.from_numpy(self._grid.adjoint(one.numpy())) for one in P.reshape(-1, *P.shape[-2:])]
        return torch.stack(sums).view(*P.shape[:-2], -1, 3)

    def pull(self, n: Tensor, R: Tensor, lam: Tensor) -> Tensor:
        """``lam (count * n - adjoint(R))``, (..., N, 3)."""
        return (self.count[:, None] * n - self.adjoint(R)).mul_(lam[..., None, None])

    # CUDA: the loops of patch_kernels.py.

    def _add_on_gpu(self, n: Tensor, out: Tensor) -> None:
        grid = self._grid
        pixel_index, rows, cols = self._gather_tables
        problems, (w_x, w_y, _) = n[..., 0, 0].numel(), grid.size
        sizes = (problems, grid.n_pixels, grid.mask.shape[1], grid.window_rows.size, w_y, w_x)
        total = problems * grid.window_rows.size * w_y * w_x
        self._launch("add_patches", total, n.dtype, (n, pixel_index, rows, cols, out, *sizes))

    def _sum_on_gpu(self, P: Tensor) -> Tensor:
        grid = self._grid
        problems, (w_x, w_y, _) = P[..., 0, 0].numel(), grid.size
        out = P.new_empty(*P.shape[:-2], grid.n_pixels, 3)
        sizes = (problems, grid.n_pixels, grid.col_starts.size, grid.window_rows.size, w_y, w_x)
        arguments = (P, *self._scatter_tables, out, *sizes)
        self._launch("sum_patches", problems * grid.n_pixels, P.dtype, arguments)
        return out

    def _launch(self, name: str, total: int, dtype: Any, arguments: tuple[Any, ...]) -> None:
        from photostereo.runtime.cuda_kernels import c_name, compile_kernel, device_of

        with device_of(arguments[0]):
            kernel = compile_kernel("photostereo.priors.dictionary", "patches.cu", name, REAL=c_name(dtype))
            kernel.launch(min(-(-total // _THREADS), 1 << 20), _THREADS, arguments)

    @cached_property
    def _gather_tables(self) -> tuple[Tensor, Tensor, Tensor]:
        import torch

        grid = self._grid
        index = torch.full(grid.mask.shape, -1, dtype=torch.int32, device=self._device)
        rows, cols = self._positions
        index[rows, cols] = torch.arange(grid.n_pixels, dtype=torch.int32, device=self._device)
        return index, self._put(grid.window_rows), self._put(grid.window_cols)

    @cached_property
    def _scatter_tables(self) -> tuple[Tensor, ...]:
        import torch

        positions = torch.stack(self._positions, 1).int()
        return self._put(self._grid._window_index), positions, *self._covering

    # What is known of each pixel is looked up where it is used: a GPU does it faster than tables of it arrive.

    @cached_property
    def _positions(self) -> tuple[Tensor, Tensor]:
        """(N,) row and column of each mask pixel."""
        rows, cols = self._put(self._grid.mask).nonzero(as_tuple=True)
        return rows, cols

    @cached_property
    def _covering(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As ``PatchGrid._covering``."""
        rows, cols = self._positions
        first_row, last_row, first_col, last_col = map(self._put, self._grid._covering_lines)
        return first_row[rows], last_row[rows], first_col[cols], last_col[cols]

    def _put(self, array: Any) -> Tensor:
        import torch

        return torch.as_tensor(np.array(array, order="C"), device=self._device)
