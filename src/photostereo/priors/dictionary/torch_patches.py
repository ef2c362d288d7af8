"""Extract patches of normals and add them back: :class:`.PatchGrid` for torch tensors, with kernels on a GPU.

Arrays may have a leading axis for several normal maps over the same mask.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.runtime.cuda_kernels import c_name, launch

Tensor = Any

_THREADS = 256


class TorchPatches:
    """The patches of a grid for tensors on one device: the part of :class:`.PatchGrid` that a prior needs."""

    def __init__(self, grid: PatchGrid, device: str) -> None:
        self._grid, self._device = grid, device

    @cached_property
    def count(self) -> Tensor:
        """Number of patches that cover each pixel, (N,)."""
        first_row, last_row, first_col, last_col = self._covering
        return (last_row - first_row).double() * (last_col - first_col)

    def add_extract(self, n: Tensor, out: Tensor) -> Tensor:
        """Add all patches of the normals ``n`` (..., N, 3) to ``out`` (..., w, m), in place."""
        grid = self._grid
        if not n.is_cuda:
            for one, own in zip(n.reshape(-1, *n.shape[-2:]), out.view(-1, *out.shape[-2:]), strict=True):
                grid.add_extract(one.numpy(), own.numpy())
            return out
        problems, (w_x, w_y, _) = n[..., 0, 0].numel(), grid.size
        sizes = (problems, grid.n_pixels, grid.mask.shape[1], grid.window_rows.size, w_y, w_x)
        total = problems * grid.window_rows.size * w_y * w_x
        self._launch("add_patches", total, (n.contiguous(), *self._gather_tables, out, *sizes))
        return out

    def pull(self, n: Tensor, R: Tensor, lam: Tensor) -> Tensor:
        """Return ``lam (count * n - adjoint(R))``, (..., N, 3)."""
        grid = self._grid
        problems, (w_x, w_y, _) = R[..., 0, 0].numel(), grid.size
        if not R.is_cuda:
            arrays = (array.reshape(-1, *array.shape[-2:]).numpy() for array in (n, R))
            pulls = map(grid.pull, *arrays, lam.expand(problems).tolist())
            return torch.stack([torch.from_numpy(one) for one in pulls]).view(n.shape)
        sums = R.new_empty(*R.shape[:-2], grid.n_pixels, 3)
        sizes = (problems, grid.n_pixels, grid.col_starts.size, grid.window_rows.size, w_y, w_x)
        self._launch("sum_patches", sums.numel() // 3, (R.contiguous(), *self._scatter_tables, sums, *sizes))
        return (self.count[:, None] * n - sums).mul_(lam[..., None, None])

    def _launch(self, name: str, total: int, arguments: tuple[Any, ...]) -> None:
        blocks, real = min(-(-total // _THREADS), 1 << 20), {"REAL": c_name(arguments[0].dtype)}
        launch(__package__, "patches.cu", name, real, arguments, blocks, _THREADS)

    # Index tables are computed on the GPU, which is faster than copying them to it.

    @cached_property
    def _gather_tables(self) -> tuple[Tensor, Tensor, Tensor]:
        grid = self._grid
        index = torch.full(grid.mask.shape, -1, dtype=torch.int32, device=self._device)
        index[self._positions] = torch.arange(grid.n_pixels, dtype=torch.int32, device=self._device)
        return index, self._put(grid.window_rows), self._put(grid.window_cols)

    @cached_property
    def _scatter_tables(self) -> tuple[Tensor, ...]:
        positions = torch.stack(self._positions, 1).int()
        return self._put(self._grid._window_index), positions, *self._covering

    @cached_property
    def _positions(self) -> tuple[Tensor, Tensor]:
        """Row and column of each mask pixel, (N,)."""
        rows, cols = self._put(self._grid.mask).nonzero(as_tuple=True)
        return rows, cols

    @cached_property
    def _covering(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``PatchGrid._covering_lines`` for each mask pixel."""
        rows, cols = self._positions
        first_row, last_row, first_col, last_col = map(self._put, self._grid._covering_lines)
        return first_row[rows], last_row[rows], first_col[cols], last_col[cols]

    def _put(self, array: Any) -> Tensor:
        return torch.as_tensor(np.array(array, order="C"), device=self._device)
