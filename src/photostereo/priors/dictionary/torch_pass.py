"""Dictionary pass and patches for torch tensors.

CUDA kernels run on a GPU, the compiled loops elsewhere.

Arrays may have a leading axis of problems (for example the (lambda, mu) pairs of a grid) over the
same mask, each with its own normals, dictionary and codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from photostereo.core.control import SILENT, Control
from photostereo.priors.dictionary import compiled
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.runtime.cuda_kernels import c_name, launch

Tensor = Any

#: Threads per block of the kernels for patches.
THREADS = 256
#: Warps (of 32 threads) per block of the CUDA kernel.
WARPS = 16
#: Warps per block of the following kernel, whose blocks are independent.
FOLLOWING_WARPS = 4
#: Minimum patches per block: with fewer, a block would mostly wait.
FEWEST_PATCHES = 32
#: Larger teams of blocks compute their sums in two steps.
WIDEST_DIRECT_SUM = 24


def dictionary_pass(
    R: Tensor, D: Tensor, B: Tensor, *, mu: Tensor, q: float, update_atoms: bool = True
) -> None:
    """Run :func:`.compiled.dictionary_pass`, **in place**.

    ``mu`` is one value for all problems or one for each.
    """
    problems = R.shape[0] if R.ndim == 3 else 1
    R, D, B = (array.view(problems, *array.shape[-2:]) for array in (R, D, B))
    # Create the tensor on the device: a copy from the host would wait for all queued work.
    least = mu
    if not torch.is_tensor(mu):
        least = torch.full((problems,), mu, dtype=R.dtype, device=R.device)
    least = least.to(R.dtype).expand(problems).contiguous()
    if R.is_cuda:
        fused_pass(R, D, B, least, torch.full_like(least, q), update_atoms)
        return
    for g in range(problems):
        arrays = (array[g].numpy() for array in (R, D, B))
        compiled.dictionary_pass(*arrays, mu=float(least[g]), q=q, update_atoms=update_atoms)


def follow_atoms(
    R: Tensor,
    D: Tensor,
    B: Tensor,
    successors: Tensor,
    *,
    mu: float,
    q: float,
    control: Control = SILENT,
) -> None:
    """Run :func:`.compiled.follow_atoms`, **in place**, for the tensors of one problem."""
    if not R.is_cuda:
        arrays = (part.numpy() for part in (R, D, B, successors))
        compiled.follow_atoms(*arrays, mu=mu, q=q, control=control)
        return
    patches, length = R.shape
    blocks = min(-(-patches // (8 * FOLLOWING_WARPS)), 1 << 16)
    arguments = (R, D, successors.contiguous(), B, float(mu), float(q), patches, len(D))
    built = {"REAL": c_name(R.dtype), "LENGTH": length, "WARPS": FOLLOWING_WARPS}
    launch(
        __package__,
        "follow_atoms.cu",
        "follow_atoms",
        built,
        arguments,
        blocks,
        32 * FOLLOWING_WARPS,
    )
    D.copy_(successors)


@dataclass(frozen=True)
class LaunchPlan:
    """Layout of the problems on the multiprocessors."""

    team: int  #: blocks per problem
    group: int  #: blocks per first-level sum; 1 for a small team
    rows: int  #: patches per block
    resident: bool  #: whether a block keeps its patches in shared memory
    at_once: int  #: problems per launch; all their blocks run at the same time
    shared: int  #: bytes of shared memory per block


def plan_launch(
    problems: int, patches: int, length: int, itemsize: int, *, processors: int, shared_limit: int
) -> LaunchPlan:
    """Plan the launch of problems of one size on a GPU, one block per multiprocessor.

    A single problem is spread over many small blocks, since a pass waits for their sums longer than
    it computes. Many problems share the GPU in the fewest rounds in which their residuals fit into
    shared memory.

    Parameters
    ----------
    problems : int
        Number of problems.
    patches, length : int
        w and m of each.
    itemsize : int
        Bytes of a number.
    processors : int
        Multiprocessors of the GPU.
    shared_limit : int
        Bytes of shared memory of a block.

    Examples
    --------
    >>> plan = plan_launch(64, 3000, 192, 4, processors=132, shared_limit=232448)
    >>> plan.team, plan.resident, plan.at_once
    (12, True, 11)
    """
    padded = 32 * math.ceil(length / 32)
    # Total, gathered, and a little for the compiler.
    fixed = 8 * (length + 1) + itemsize * WARPS * padded + 256
    per_row = 2 * itemsize
    per_resident_row = itemsize * (padded + 2)
    most_rows = max((shared_limit - fixed) // per_resident_row, 1)
    smallest_team = math.ceil(patches / most_rows)
    resident = smallest_team <= processors
    if not resident or problems == 1:
        team = min(processors, max(1, math.ceil(patches / FEWEST_PATCHES)))
        team = max(team, smallest_team) if resident else processors
        at_once = 1
    else:
        rounds = math.ceil(problems / (processors // smallest_team))
        at_once = math.ceil(problems / rounds)
        team = min(processors // at_once, max(smallest_team, math.ceil(patches / FEWEST_PATCHES)))
    rows = math.ceil(patches / team)
    team = math.ceil(patches / rows)
    group = math.ceil(math.sqrt(team)) if team > WIDEST_DIRECT_SUM else 1
    shared = fixed + rows * (per_resident_row if resident else per_row)
    return LaunchPlan(team, group, rows, resident, at_once, shared)


def fused_pass(
    R: Tensor,
    D: Tensor,
    B: Tensor,
    mu: Tensor,
    q: Tensor,
    update_atoms: bool,
    plan: LaunchPlan | None = None,
) -> None:
    """Run the pass on a GPU as one CUDA kernel per round of problems, ``dictionary_pass.cu``."""
    problems, patches, length = R.shape
    atoms = D.shape[1]
    if plan is None:
        gpu = torch.cuda.get_device_properties(R.device)
        plan = plan_launch(
            problems,
            patches,
            length,
            R.element_size(),
            processors=gpu.multi_processor_count,
            shared_limit=gpu.shared_memory_per_block_optin,
        )
    # Partial sums of the blocks of a team, twice: one is read while the other is written.
    groups = math.ceil(plan.team / plan.group)
    shares = R.new_empty(
        2 * plan.at_once * (plan.team + groups) * (length + 1), dtype=torch.float64
    )
    for first in range(0, problems, plan.at_once):
        part = slice(first, min(first + plan.at_once, problems))
        count = part.stop - part.start
        # Counters on which the blocks of a team wait for each other.
        arrived = torch.zeros(count * (1 + groups), dtype=torch.int32, device=R.device)
        arrays = (R[part], D[part], B[part], mu[part], q[part], shares, arrived)
        launch(
            __package__,
            "dictionary_pass.cu",
            "dictionary_pass",
            {"REAL": c_name(R.dtype), "LENGTH": length, "WARPS": WARPS},
            (
                *arrays,
                patches,
                atoms,
                plan.team,
                plan.group,
                plan.rows,
                plan.resident,
                update_atoms,
            ),
            count * plan.team,
            32 * WARPS,
            shared=plan.shared,
            cooperative=True,
        )


class TorchPatches:
    """The patches of a grid for tensors on one device.

    It is the part of :class:`.PatchGrid` that a prior needs, with kernels on a GPU.
    """

    def __init__(self, grid: PatchGrid, device: str) -> None:
        self._grid = grid
        self._device = device

    @cached_property
    def count(self) -> Tensor:
        """Number of patches that cover each pixel, (N,)."""
        first_row, last_row, first_col, last_col = self._covering
        return (last_row - first_row).double() * (last_col - first_col)

    def add_extract(self, n: Tensor, out: Tensor) -> Tensor:
        """Add all patches of the normals ``n`` (..., N, 3) to ``out`` (..., w, m), in place."""
        grid = self._grid
        if not n.is_cuda:
            for one, own in zip(
                n.reshape(-1, *n.shape[-2:]), out.view(-1, *out.shape[-2:]), strict=True
            ):
                grid.add_extract(one.numpy(), own.numpy())
            return out
        problems = n[..., 0, 0].numel()
        (w_x, w_y, _) = grid.size
        sizes = (problems, grid.n_pixels, grid.mask.shape[1], grid.window_rows.size, w_y, w_x)
        total = problems * grid.window_rows.size * w_y * w_x
        self._launch("add_patches", total, (n.contiguous(), *self._gather_tables, out, *sizes))
        return out

    def pull(self, n: Tensor, R: Tensor, lam: Tensor) -> Tensor:
        """Return ``lam (count * n - sum_j P_j^T r_j)``, (..., N, 3)."""
        grid = self._grid
        problems = R[..., 0, 0].numel()
        (w_x, w_y, _) = grid.size
        if not R.is_cuda:
            arrays = (array.reshape(-1, *array.shape[-2:]).numpy() for array in (n, R))
            pulls = map(grid.pull, *arrays, lam.expand(problems).tolist())
            return torch.stack([torch.from_numpy(one) for one in pulls]).view(n.shape)
        sums = R.new_empty(*R.shape[:-2], grid.n_pixels, 3)
        sizes = (problems, grid.n_pixels, grid.col_starts.size, grid.window_rows.size, w_y, w_x)
        self._launch(
            "sum_patches", sums.numel() // 3, (R.contiguous(), *self._scatter_tables, sums, *sizes)
        )
        return (self.count[:, None] * n - sums).mul_(lam[..., None, None])

    def _launch(self, name: str, total: int, arguments: tuple[Any, ...]) -> None:
        blocks = min(-(-total // THREADS), 1 << 20)
        real = {"REAL": c_name(arguments[0].dtype)}
        launch(__package__, "patches.cu", name, real, arguments, blocks, THREADS)

    # Index tables are computed on the GPU, which is faster than copying them to it.

    @cached_property
    def _gather_tables(self) -> tuple[Tensor, Tensor, Tensor]:
        grid = self._grid
        index = torch.full(grid.mask.shape, -1, dtype=torch.int32, device=self._device)
        index[self._positions] = torch.arange(grid.n_pixels, dtype=torch.int32, device=self._device)
        return index, self._put(grid.window_rows), self._put(grid.window_cols)

    @cached_property
    def _scatter_tables(self) -> tuple[Tensor, ...]:
        # 32-bit indices: half the memory traffic of the kernels.
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
