"""The dictionary prior on the normal map: one half of block coordinate descent.

    λ ( Σ_j ‖P_j n − Σ_i B[i, j] d_i‖² + μ² ‖B‖₀ )     subject to  |B| ≤ q,  ‖d_i‖ = 1

The prior keeps the residual ``R = P − BᵀD`` (one row per patch). Everything else follows from R:
the cost is ‖R‖² + μ² ‖B‖₀, and the pull on the pixels is ``r = Σ P_jᵀ D b_j = c n − Pᵀ R``, so D
b_j is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.priors.dictionary import compiled
from photostereo.priors.dictionary.atoms import (
    check_atom_count,
    check_thresholds,
    initial_dictionary,
)
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.priors.protocol import Lesson, Prior, PriorState
from photostereo.runtime.arrays import CPU, Array, Device, cast, is_tensor, like, to_numpy, zeros


class DictionaryPrior(Prior):
    """Sparse patches in a learned dictionary, as a prior on the normals of a mask.

    The module docstring has the cost and its symbols. The state holds ``atoms`` (K, m), ``codes``
    (K, w), ``residual`` (w, m), and ``initial``, the initial atoms. With tensors, λ and μ may also
    be tensors, with one value per problem on the leading axis.

    Parameters
    ----------
    grid : PatchGrid
        The patches of a mask.
    lam : float
        λ, the weight.
    mu, q : float
        Threshold and bound of the codes, μ ≤ q.
    atoms : int, optional
        Their number; by default as many as values in a patch.
    dictionary : str or array
        The initial dictionary, see :func:`.initial_dictionary`.
    learn : bool
        Whether atoms are updated; otherwise only the codes.
    lessons : sequence of dict
        The atoms after each pass of another descent (:meth:`lesson`), which replace learning: each
        atom is inserted when it would have been learned.
    rng : Generator or int
        For random patches as the initial dictionary.
    dtype : dtype
        Of the pass, float32 or float64.
    device : Device
        Of the normals and the state.

    References
    ----------
    A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, Robust Photometric Stereo via Dictionary
    Learning, IEEE Transactions on Computational Imaging, 2018, arXiv:1710.08873.
    """

    def __init__(
        self,
        grid: PatchGrid,
        *,
        lam: Array = 1.0,
        mu: Array,
        q: float = 1e3,
        atoms: int | None = None,
        dictionary: str | NDArray[Any] = "dct",
        learn: bool = True,
        lessons: Sequence[Lesson] = (),
        rng: np.random.Generator | int | None = 0,
        dtype: Any = np.float32,
        device: Device = CPU,
    ) -> None:
        check_thresholds(float(np.max(to_numpy(mu))), q)
        self.grid = grid
        # NumPy arrays use the compiled loops, tensors their counterparts in torch.
        self._patches: Any = grid
        self._passes: Any = compiled
        if device.uses_torch:
            from photostereo.priors.dictionary import torch_pass

            self._patches = torch_pass.TorchPatches(grid, device.torch_name)
            self._passes = torch_pass
        self.lam = lam
        self.mu = mu
        self.q = q
        self.learn = learn
        self._dictionary = dictionary
        self._rng = rng
        self._dtype = np.dtype(dtype)
        if lessons:
            atoms = len(lessons[0]["atoms"])  # a narrow band may have fewer patches than the sample
        elif atoms is None and isinstance(dictionary, str):
            # A square dictionary; for a very small object, as many atoms as there are patches.
            atoms = min(self.grid.patch_length, self.grid.n_patches)
        self._atoms = atoms
        self._lessons = lessons
        self._weight: Array | None = None  # λ c
        if learn and not lessons:
            check_atom_count(atoms or len(dictionary), self.grid.n_patches)

    def begin(self, normals: Array) -> PriorState:
        """Start from the initial dictionary, with all codes zero."""
        problems = tuple(normals.shape[:-2])
        patches = self.grid.n_patches
        # With all codes zero, the residual is the patches themselves.
        residual = zeros((*problems, patches, self.grid.patch_length), normals, self._dtype.name)
        self.follow({"residual": residual}, normals)
        examples = None
        if isinstance(self._dictionary, str) and self._dictionary == "random-patches":
            examples = to_numpy(residual).reshape(-1, *residual.shape[-2:])[0]
        atoms = initial_dictionary(
            self._dictionary, self.grid.size, self._atoms, patches=examples, rng=self._rng
        )
        codes = zeros((*problems, len(atoms), patches), residual, self._dtype.name)
        atoms = np.broadcast_to(atoms, (*problems, *atoms.shape)).astype(self._dtype, order="C")
        # Kept for the page, which shows the dictionary before and after.
        initial = like(atoms.copy(), residual)
        return {
            "atoms": like(atoms, residual),
            "codes": codes,
            "residual": residual,
            "initial": initial,
        }

    def update(
        self, state: PriorState, normals: Array, iteration: int, control: Control = SILENT
    ) -> None:
        """Run one pass over the atoms: the (D, B) half-step."""
        arrays = (state["residual"], state["atoms"], state["codes"])
        if not self._lessons:
            self._passes.dictionary_pass(*arrays, mu=self.mu, q=self.q, update_atoms=self.learn)
            return
        # A band may run longer than the sample did; its atoms then stay.
        lesson = self._lessons[min(iteration, len(self._lessons) - 1)]
        atoms = cast(like(lesson["atoms"], state["residual"]), self._dtype.name)
        self._passes.follow_atoms(*arrays, atoms, mu=self.mu, q=self.q, control=control)

    def pull(self, state: PriorState, normals: Array) -> tuple[Array, Array]:
        """Return λ c, with c the number of patches that cover a pixel, and λ r = λ Σ P_jᵀ D b_j."""
        lam = self.lam
        if not is_tensor(lam):
            lam = like(np.asarray(lam, dtype=np.float64), normals)
        # λ c does not change during a descent.
        if self._weight is None:
            self._weight = lam[..., None] * self._patches.count
        return self._weight, self._patches.pull(normals, state["residual"], lam)

    def follow(self, state: PriorState, change: Array) -> None:
        """Update the residual after the normals have changed by ``change`` (N, 3)."""
        if is_tensor(change):  # NumPy arrays are converted while they are cut into patches
            change = cast(change, self._dtype.name)
        self._patches.add_extract(change, state["residual"])

    def cost(self, state: PriorState, normals: Array) -> dict[str, Array]:
        """``fit``, λ Σ ‖P_j n − D b_j‖², and ``sparsity``, λ μ² ‖B‖₀."""
        residual = state["residual"]
        sparsity = self.mu * self.mu * cast(_nonzeros(state["codes"]), "float64")
        if is_tensor(residual):
            # Rows in their own precision, their sum in double: float32 sums over millions of values
            # lose digits.
            fit = cast((residual * residual).sum(-1), "float64").sum(-1)
        else:
            fit = compiled.squared_norm(residual)
        return {"fit": self.lam * fit, "sparsity": self.lam * sparsity}

    def record(self, state: PriorState) -> dict[str, Array]:
        """``nonzeros``, the share of codes that are not zero."""
        codes = state["codes"]
        return {"nonzeros": cast(_nonzeros(codes), "float64") / (codes.shape[-1] * codes.shape[-2])}

    def results(self, state: PriorState) -> dict[str, NDArray[Any]]:
        """Return both dictionaries, and how much they are used.

        ``atom_use`` is the share of patches that use each atom, ``codes_per_patch`` the number of
        patches with 0, 1, 2, ... codes.
        """
        used = state["codes"] != 0  # count on the device, since there are many codes
        per_atom = to_numpy(used.sum(1))
        per_patch = to_numpy(used.sum(0))
        return {
            "dictionary_initial": np.array(to_numpy(state["initial"])),
            "dictionary": np.array(to_numpy(state["atoms"])),
            "atom_use": per_atom / max(per_patch.size, 1),
            "codes_per_patch": np.bincount(per_patch, minlength=1),
        }

    def lesson(self, state: PriorState) -> Lesson:
        """The atoms after a pass."""
        return {"atoms": np.array(to_numpy(state["atoms"]))}


def _nonzeros(codes: Array) -> Array:
    """Number of non-zero codes of each problem."""
    used = codes != 0
    return used.sum((-2, -1)) if is_tensor(used) else np.asarray(np.count_nonzero(used))
