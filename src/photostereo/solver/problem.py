"""A problem: a reflectance model, perhaps a prior, and its weight.

    minimize  Σ_pixels data(n, u)  +  λ prior(n)

Without a prior the model answers alone. With one, block coordinate descent: one loop for a single solve, for a
grid of (λ, μ) and for the trials of a sweep.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control, Iteration
from photostereo.core.errors import ConvergenceWarning, ParameterError
from photostereo.priors.dictionary.prior import DictionaryPrior, DictionaryState
from photostereo.reflectance.model import Model, Unknowns
from photostereo.runtime.arrays import CPU, Array, Device, like, namespace, to_numpy
from photostereo.solver.descent import SolveState, begin, descend, half_steps
from photostereo.solver.share import best_share
from photostereo.solver.within_noise import WithinNoise


@dataclass(frozen=True)
class Solution:
    """The minimizer of a :class:`Problem`, still in the model's own arrays.

    Attributes
    ----------
    normals : (N, 3) albedo × normal
    unknowns : the model's own
    status : ``"closed form"``, ``"converged"`` or ``"iterations"`` (the limit was reached)
    iterations, history : how many, and a record of each
    dictionary : atoms and codes at the end, where the prior has them
    first_atoms : the atoms it began with
    share : of the prior's shift that was kept, see :mod:`photostereo.solver.share`

    Where several problems descended together, every array (also those of the history) has a leading axis.
    """

    normals: Array
    unknowns: Unknowns
    status: str
    iterations: int
    history: tuple[Iteration, ...] = ()
    dictionary: DictionaryState | None = None
    first_atoms: NDArray[Any] | None = None
    share: float = 1.0

    def select(self, g: int) -> Solution:
        """One of several problems that descended together."""
        assert self.dictionary is not None and self.first_atoms is not None
        atoms, codes, residual = self.dictionary.atoms, self.dictionary.codes, self.dictionary.residual
        return Solution(
            self.normals[g],
            {name: value[g] for name, value in self.unknowns.items()},
            self.status,
            self.iterations,
            tuple(record.select(g) for record in self.history),
            DictionaryState(atoms[g], codes[g], residual[g]),
            self.first_atoms[g],
        )

    def facts(self) -> dict[str, NDArray[Any]]:
        """What is worth keeping of the prior: the dictionaries, and how often each atom was used."""
        if self.dictionary is None or self.first_atoms is None:
            return {}
        used = self.dictionary.codes != 0  # counted where they are: the codes are many
        per_atom, per_patch = to_numpy(used.sum(1)), to_numpy(used.sum(0))
        return {
            "dictionary_initial": self.first_atoms,
            "dictionary": np.array(to_numpy(self.dictionary.atoms)),
            "atom_use": per_atom / max(per_patch.size, 1),
            "codes_per_patch": np.bincount(per_patch, minlength=1),
        }


@dataclass(frozen=True)
class Problem:
    """A model with its statistics, perhaps a prior, and the prior's weight λ.

    Parameters
    ----------
    model : Model
    prior : DictionaryPrior, optional
    lam : λ; on a GPU perhaps one for each of several problems, which then descend together
    start : normals and unknowns to begin with; the model's own where missing
    share : of the prior's shift to keep, where the model stays within the noise; by default the best by Stein's
        estimate
    device : where the arrays live

    Examples
    --------
    >>> from photostereo.reflectance.lambertian.model import Lambertian
    >>> L = np.array([[0, 0.6, 0], [0, 0, 0.6], [1, 0.8, 0.8]])
    >>> Problem(Lambertian(np.array([[0.1, 0.2, 0.9]]) @ L, L)).solve().status
    'closed form'
    """

    model: Model
    prior: DictionaryPrior | None = None
    lam: Array = 0.0
    start: tuple[Array, Unknowns] | None = None
    share: float | None = None
    device: Device = CPU

    def solve(
        self,
        *,
        max_iter: int = 20,
        tol: float = 0.0,
        control: Control = SILENT,
        truth: NDArray[Any] | None = None,
        resume: SolveState | str | Path | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
    ) -> Solution:
        """The minimizer; see :func:`photostereo.solve` for the options."""
        if self.prior is None:
            if resume is not None or checkpoint is not None:
                raise ParameterError(
                    "A method without a prior has no iteration to save or resume. Leave out `resume` and "
                    "`checkpoint`, or use a method with a dictionary, such as pdlnv."
                )
            return self._alone(control)
        normals, unknowns = self.model.start(control) if self.start is None else self.start
        if np.ndim(to_numpy(self.lam)):
            normals = namespace(normals).stack([normals] * len(self.lam))
        state = begin(normals, unknowns, self.prior, resume=resume, device=self.device)
        first = state.dictionary if resume is None else self.prior.begin(normals)
        initial = np.array(to_numpy(first.atoms))
        del first
        status = descend(
            state,
            self.model,
            self.prior,
            self.lam,
            limit=max_iter,
            tolerance=tol,
            control=control,
            truth=truth,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        share = self.share
        if share is None and isinstance(self.model, WithinNoise):
            share = best_share(
                self.model, self.prior, self.lam, (normals, unknowns), state, control, self.device
            )
        normals, unknowns, share = self._tempered(state, share)
        return Solution(
            normals, unknowns, status, len(state.history), state.history, state.dictionary, initial, share
        )

    def follow(self, passes: int, control: Control = SILENT) -> Solution:
        """So many iterations with a prior that follows another's atoms: no figures are taken on the way."""
        assert self.prior is not None
        normals, unknowns = self.model.start(control) if self.start is None else self.start
        state = begin(normals, unknowns, self.prior, device=self.device)
        weight = like(np.asarray(self.lam, dtype=np.float64), normals)
        for _ in range(passes):
            half_steps(state, self.model, self.prior, weight)
            control.advance()
        normals, unknowns, share = self._tempered(state, self.share)
        return Solution(normals, unknowns, "iterations", passes, share=share)

    def _tempered(self, state: SolveState, share: float | None) -> tuple[Array, Unknowns, float]:
        """Normals and unknowns at the end of a descent, with as much of the prior's shift as is worth keeping."""
        if share is None or not isinstance(self.model, WithinNoise):
            return state.normals, state.unknowns, 1.0
        normals = self.model.tempered(state.normals, share)
        return normals, self.model.update_unknowns(normals, state.unknowns), share

    def _alone(self, control: Control) -> Solution:
        fit = self.model.alone(control)
        if not fit.converged:
            warnings.warn(
                f"The model stopped at its limit of {fit.iterations} iterations before every pixel met its tolerance.",
                ConvergenceWarning,
                stacklevel=4,
            )
        status = "closed form" if fit.iterations == 0 else "converged" if fit.converged else "iterations"
        return Solution(fit.normals, fit.unknowns, status, fit.iterations)
