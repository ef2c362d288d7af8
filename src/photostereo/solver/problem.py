"""A problem: a reflectance model and an optional prior.

    minimize  Σ_pixels data(n, u)  +  prior(n, s)

Without a prior the model is solved on its own. With one, block coordinate descent runs: the same loop for a single
solve, a grid of strengths and the trials of a sweep.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control, Iteration
from photostereo.core.errors import ConvergenceWarning, ParameterError
from photostereo.core.findings import Finding
from photostereo.priors.protocol import Lesson, Prior, PriorState
from photostereo.reflectance.model import Model, Unknowns
from photostereo.runtime.arrays import CPU, Array, Device, namespace
from photostereo.solver.descent import STILL, descend, half_steps
from photostereo.solver.share import best_share
from photostereo.solver.state import SolveState, resumed
from photostereo.solver.within_noise import WithinNoise


@dataclass(frozen=True)
class Solution:
    """Minimizer of a :class:`Problem`, still in the model's own arrays.

    If several problems descended together, every array (including those of the history) has a leading axis.
    """

    normals: Array  #: (N, 3) albedo × normal
    unknowns: Unknowns  #: the model's own
    status: str  #: ``"closed form"``, ``"converged"`` or ``"iterations"`` (the limit was reached)
    iterations: int
    history: tuple[Iteration, ...] = ()  #: a record of each iteration
    prior: Prior | None = None
    state: PriorState = field(default_factory=dict)  #: that of the prior at the end
    share: float = 1.0  #: of the prior's shift that was kept, see :mod:`photostereo.solver.share`
    lessons: Sequence[Lesson] = ()  #: what the prior learned in each iteration, if asked for

    def select(self, g: int) -> Solution:
        """Return one of several problems that descended together."""
        return replace(
            self,
            normals=self.normals[g],
            unknowns={name: value[g] for name, value in self.unknowns.items()},
            history=tuple(record.select(g) for record in self.history),
            state={name: value[g] for name, value in self.state.items()},
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the prior stores with the result, by name."""
        return {} if self.prior is None else self.prior.results(self.state)


@dataclass(frozen=True)
class Problem:
    """A model with its statistics and an optional prior.

    Examples
    --------
    >>> import numpy as np
    >>> from photostereo.reflectance.lambertian.model import Lambertian
    >>> L = np.array([[0, 0.6, 0], [0, 0, 0.6], [1, 0.8, 0.8]])
    >>> Problem(Lambertian(np.array([[0.1, 0.2, 0.9]]) @ L, L)).solve().status
    'closed form'
    """

    model: Model
    prior: Prior | None = None
    start: tuple[Array, Unknowns] | None = (
        None  #: normals and unknowns to begin with; by default the model's own
    )
    problems: int = 0  #: if not 0, this many problems with different strengths descend together, on a GPU
    #: share of the prior's shift to keep if the model stays within the noise; by default the best by Stein's estimate
    share: float | None = None
    device: Device = CPU  #: where the arrays live

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
        keep_lessons: bool = False,
    ) -> Solution:
        """Return the minimizer; see :func:`photostereo.solve` for the options."""
        if self.prior is None:
            if resume is not None or checkpoint is not None:
                raise ParameterError(code="nothing-to-resume")
            return self._alone(control)
        state = first = self._first(control)
        start = state.normals, state.unknowns
        if resume is not None:
            state = resumed(resume, first, self.device)
        del first
        lessons: list[Lesson] | None = [] if keep_lessons else None
        status = descend(
            state,
            self.model,
            self.prior,
            limit=max_iter,
            tolerance=tol,
            still=STILL if isinstance(self.model, WithinNoise) and not self.problems else 0.0,
            control=control,
            truth=truth,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            lessons=lessons,
        )
        share = self.share
        if share is None and isinstance(self.model, WithinNoise):
            share = best_share(self.model, self.prior, start, state, control)
        normals, unknowns, share = self._tempered(state, share)
        return Solution(
            normals,
            unknowns,
            status,
            len(state.history),
            state.history,
            self.prior,
            state.prior,
            share,
            lessons or (),
        )

    def follow(self, passes: int, control: Control = SILENT) -> Solution:
        """Run ``passes`` iterations with a prior that follows the lessons of another; no figures are recorded."""
        assert self.prior is not None
        state = self._first(control)
        for number in range(passes):
            half_steps(state, self.model, self.prior, number, control)
            control.advance()
        normals, unknowns, share = self._tempered(state, self.share)
        return Solution(normals, unknowns, "iterations", passes, share=share)

    def _first(self, control: Control) -> SolveState:
        assert self.prior is not None
        normals, unknowns = self.model.start(control) if self.start is None else self.start
        control.check()
        if self.problems:
            normals = namespace(normals).stack([normals] * self.problems)
        return SolveState(normals, unknowns, self.prior.begin(normals))

    def _tempered(self, state: SolveState, share: float | None) -> tuple[Array, Unknowns, float]:
        """Return normals and unknowns at the end of a descent, and the share of the prior's shift worth keeping."""
        if share is None or not isinstance(self.model, WithinNoise):
            return state.normals, state.unknowns, 1.0
        normals = self.model.tempered(state.normals, share)
        return normals, self.model.update_unknowns(normals, state.unknowns), share

    def _alone(self, control: Control) -> Solution:
        fit = self.model.alone(control)
        if not fit.converged:
            warnings.warn(
                ConvergenceWarning(Finding("model-not-converged", iterations=fit.iterations)),
                stacklevel=4,
            )
        status = "closed form" if fit.iterations == 0 else "converged" if fit.converged else "iterations"
        return Solution(fit.normals, fit.unknowns, status, fit.iterations)
