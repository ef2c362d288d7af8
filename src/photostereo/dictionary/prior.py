"""The dictionary prior on the normal map: one half of block coordinate descent.

    λ ( Σ_j ‖P_j n − Σ_i B[i, j] d_i‖² + μ² ‖B‖₀ )     subject to  |B| ≤ q,  ‖d_i‖ = 1

The prior keeps the residual ``R = P − BᵀD`` (one row per patch). Everything it is asked for follows from R: its cost is
‖R‖² + μ² ‖B‖₀, and its pull on the pixels is ``r = Σ P_jᵀ D b_j = c n − Pᵀ R``, so D b_j is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.dictionary.atoms import check_atom_count, initial_dictionary
from photostereo.dictionary.patches import PatchGrid
from photostereo.dictionary.readable import check_thresholds


@dataclass
class DictionaryState:
    """Atoms, codes and residual; the pass updates them in place.

    Attributes
    ----------
    atoms : (K, m) one atom per row
    codes : (K, w)
    residual : (w, m) P − BᵀD
    """

    atoms: NDArray[Any]
    codes: NDArray[Any]
    residual: NDArray[Any]

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.codes))


class DictionaryPrior:
    """Sparse patches in a learned dictionary, as a prior on the normals of a mask.

    Parameters
    ----------
    mask : (H, W) bool
    mu, q : threshold and bound of the codes, μ ≤ q
    patch, stride, atoms, dictionary, rng : see :class:`.PatchGrid` and :func:`.initial_dictionary`
    learn : update the atoms; otherwise the codes only
    dtype : of the pass, float32 or float64
    """

    def __init__(
        self,
        mask: NDArray[np.bool_],
        *,
        mu: float,
        q: float = 1e3,
        patch: tuple[int, int, int] = (8, 8, 3),
        stride: int = 4,
        atoms: int | None = None,
        dictionary: str | NDArray[Any] = "dct",
        learn: bool = True,
        rng: np.random.Generator | int | None = 0,
        dtype: Any = np.float32,
    ) -> None:
        check_thresholds(mu, q)
        self.grid = PatchGrid.from_mask(mask, size=patch, stride=stride)
        self.mu, self.q, self.learn = mu, q, learn
        self._dictionary, self._rng, self._dtype = dictionary, rng, np.dtype(dtype)
        if atoms is None and isinstance(dictionary, str):
            # A square dictionary, or as many atoms as a very small object has patches to learn them from.
            atoms = min(self.grid.patch_length, self.grid.n_patches)
        self._atoms = atoms
        if learn:
            check_atom_count(atoms or len(dictionary), self.grid.n_patches)

    @property
    def count(self) -> NDArray[np.float64]:
        """(N,) how many patches cover each pixel."""
        return self.grid.count

    def begin(self, normals: NDArray[Any]) -> DictionaryState:
        """The initial dictionary and no codes."""
        residual = self.grid.extract(normals.astype(self._dtype))
        atoms = initial_dictionary(
            self._dictionary, self.grid.size, self._atoms, patches=residual, rng=self._rng
        )
        codes = np.zeros((len(atoms), self.grid.n_patches), dtype=self._dtype)
        return DictionaryState(np.ascontiguousarray(atoms, dtype=self._dtype), codes, residual)

    def update(self, state: DictionaryState) -> None:
        """One pass over the atoms: the (D, B) half-step."""
        from photostereo.dictionary.compiled import dictionary_pass

        dictionary_pass(
            state.residual, state.atoms, state.codes, mu=self.mu, q=self.q, update_atoms=self.learn
        )

    def pull(self, state: DictionaryState, normals: NDArray[Any]) -> NDArray[np.float64]:
        """(N, 3) r = Σ P_jᵀ D b_j, where R belongs to these normals."""
        return self.count[:, None] * normals - self.grid.adjoint(state.residual)

    def follow(self, state: DictionaryState, change: NDArray[Any]) -> None:
        """Bring the residual up to date after the normals have changed by ``change`` (N, 3)."""
        self.grid.add_extract(change.astype(self._dtype), state.residual)

    def cost(self, state: DictionaryState) -> tuple[float, float]:
        """The two terms without λ: Σ ‖P_j n − D b_j‖² and μ² ‖B‖₀."""
        residual = state.residual.ravel()
        if residual.dtype == np.float32:
            # Blocks summed in double precision: a float32 dot product over millions of values loses digits.
            fit = float(np.sum(np.einsum("ij,ij->i", state.residual, state.residual), dtype=np.float64))
        else:
            fit = float(residual @ residual)
        return fit, self.mu**2 * state.nonzeros
