"""The dictionary prior on the normal map: one half of block coordinate descent.

    λ ( Σ_j ‖P_j n − Σ_i B[i, j] d_i‖² + μ² ‖B‖₀ )     subject to  |B| ≤ q,  ‖d_i‖ = 1

The prior keeps the residual ``R = P − BᵀD`` (one row per patch). Everything it is asked for follows from R:
its cost is ‖R‖² + μ² ‖B‖₀, and its pull on the pixels is ``r = Σ P_jᵀ D b_j = c n − Pᵀ R``, so D b_j is never
formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.priors.dictionary.atoms import check_atom_count, initial_dictionary
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.priors.dictionary.readable import check_thresholds
from photostereo.runtime.arrays import CPU, Array, Device, cast, empty, is_tensor, like, to_numpy


@dataclass
class DictionaryState:
    """Atoms, codes and residual; the pass updates them in place.

    Attributes
    ----------
    atoms : (K, m) one atom per row
    codes : (K, w)
    residual : (w, m) P − BᵀD
    passes : how many were made
    counted : codes that are not zero, where the last pass counted them

    On a GPU the arrays are tensors and may have a leading axis: several problems solved at once.
    """

    atoms: Array
    codes: Array
    residual: Array
    passes: int = 0
    counted: Array | None = None

    @property
    def nonzeros(self) -> Array:
        """How many codes are not zero, for each problem."""
        return (self.codes != 0).sum((-2, -1)) if self.counted is None else self.counted


class DictionaryPrior:
    """Sparse patches in a learned dictionary, as a prior on the normals of a mask.

    Parameters
    ----------
    grid : the patches of a mask
    mu, q : threshold and bound of the codes, μ ≤ q
    atoms, dictionary, rng : see :func:`.initial_dictionary`
    learn : update the atoms; otherwise the codes only
    follows : the atoms after each pass of a descent elsewhere (see :meth:`keep_atoms`): they take the place of
        learning, at the moments when it would have taken place
    dtype : of the pass, float32 or float64
    device : where the normals and the state live

    With tensors μ may be a tensor too, one threshold for each of the problems on the leading axis.
    """

    def __init__(
        self,
        grid: PatchGrid,
        *,
        mu: Array,
        q: float = 1e3,
        atoms: int | None = None,
        dictionary: str | NDArray[Any] = "dct",
        learn: bool = True,
        follows: Sequence[NDArray[Any]] | None = None,
        rng: np.random.Generator | int | None = 0,
        dtype: Any = np.float32,
        device: Device = CPU,
    ) -> None:
        check_thresholds(float(np.max(to_numpy(mu))), q)
        self.grid = grid
        self._patches = self._patches_on(device)
        self.mu, self.q, self.learn = mu, q, learn
        self._dictionary, self._rng, self._dtype = dictionary, rng, np.dtype(dtype)
        if follows is not None:
            atoms = len(follows[0])  # also where a narrow band has fewer patches than the sample
        elif atoms is None and isinstance(dictionary, str):
            # A square dictionary, or as many atoms as a very small object has patches to learn them from.
            atoms = min(self.grid.patch_length, self.grid.n_patches)
        self._atoms = atoms
        self._follows = follows
        #: The atoms after each pass, where :meth:`keep_atoms` was called.
        self.learned: list[NDArray[Any]] | None = None
        if learn and follows is None:
            check_atom_count(atoms or len(dictionary), self.grid.n_patches)

    def _patches_on(self, device: Device) -> Any:
        if not device.uses_torch:
            return self.grid
        from photostereo.priors.dictionary.torch_patches import TorchPatches

        return TorchPatches(self.grid, device.torch_name)

    @property
    def count(self) -> Array:
        """(N,) how many patches cover each pixel."""
        return self._patches.count

    @property
    def dtype(self) -> Any:
        """Of the pass."""
        return self._dtype

    def begin(self, normals: Array) -> DictionaryState:
        """The initial dictionary and no codes."""
        residual = self._patches.extract(cast(normals, self._dtype.name))
        problems, patches = residual.shape[:-2], residual.shape[-2]
        examples = None
        if isinstance(self._dictionary, str) and self._dictionary == "random-patches":
            examples = to_numpy(residual).reshape(-1, *residual.shape[-2:])[0]
        atoms = initial_dictionary(
            self._dictionary, self.grid.size, self._atoms, patches=examples, rng=self._rng
        )
        codes = empty((*problems, len(atoms), patches), residual, self._dtype.name)
        codes[:] = 0
        atoms = np.broadcast_to(atoms, (*problems, *atoms.shape)).astype(self._dtype, order="C")
        return DictionaryState(like(atoms, residual), codes, residual)

    def keep_atoms(self) -> None:
        """Keep the atoms after every pass from now on, for others to follow."""
        self.learned = []

    def update(self, state: DictionaryState) -> None:
        """One pass over the atoms: the (D, B) half-step."""
        arrays = (state.residual, state.atoms, state.codes)
        given = None
        if self._follows is not None:
            given = self._follows[min(state.passes, len(self._follows) - 1)]
        state.passes += 1
        if is_tensor(state.residual):
            from photostereo.priors.dictionary import torch_pass

            state.counted = None
            if given is None:
                torch_pass.dictionary_pass(*arrays, mu=self.mu, q=self.q, update_atoms=self.learn)
                state.counted = (state.codes != 0).sum((-2, -1))
            else:
                atoms = cast(like(given, state.residual), self._dtype.name)
                torch_pass.follow_atoms(*arrays, atoms, mu=float(self.mu), q=self.q)
        else:
            from photostereo.priors.dictionary import compiled

            if given is None:
                found = compiled.dictionary_pass(
                    *arrays, mu=float(self.mu), q=self.q, update_atoms=self.learn
                )
                state.counted = np.asarray(found.nonzeros)
            else:
                compiled.follow_atoms(*arrays, given, mu=float(self.mu), q=self.q)
                state.counted = None
        if self.learned is not None:
            self.learned.append(np.array(to_numpy(state.atoms)))

    def pull(self, state: DictionaryState, normals: Array) -> Array:
        """(N, 3) r = Σ P_jᵀ D b_j, where R belongs to these normals."""
        return self._patches.pull(normals, state.residual)

    def follow(self, state: DictionaryState, change: Array) -> None:
        """Bring the residual up to date after the normals have changed by ``change`` (N, 3)."""
        # On the CPU the patches take what they need in their own precision.
        self._patches.add_extract(
            cast(change, self._dtype.name) if is_tensor(change) else change, state.residual
        )

    def cost(self, state: DictionaryState) -> tuple[Array, Array]:
        """The two terms without λ: Σ ‖P_j n − D b_j‖² and μ² ‖B‖₀."""
        residual, sparsity = state.residual, self.mu * self.mu * cast(state.nonzeros, "float64")
        if not is_tensor(residual):
            from photostereo.priors.dictionary.compiled import squared_norm

            return squared_norm(residual), sparsity
        # Rows in their own precision, their sum in double: float32 over millions of values loses digits.
        return cast((residual * residual).sum(-1), "float64").sum(-1), sparsity
