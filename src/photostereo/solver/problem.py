"""A problem: a reflectance model and an optional prior.

    minimize  Σ_pixels data(n, u)  +  prior(n, s)

Without a prior the model is solved on its own. With one, block coordinate descent runs: one iteration updates the prior's
own unknowns s at fixed n, and then, by the model's exact step, n and u at fixed s (:meth:`SolveState.step`). Neither
step can raise the cost. Arrays are NumPy or torch; with a leading axis, several problems descend at once.
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
from photostereo.runtime.arrays import Array, like, namespace
from photostereo.solver.confidence_ball import Shares, WithinNoise
from photostereo.solver.descent import Descent
from photostereo.solver.shrinkage import best_share
from photostereo.solver.state import SolveState, resumed

#: With a prior strength chosen from the noise, stop when an iteration changes the normals by less than this share of
#: their length (0.09°). On five objects from clean to 5 dB, errors are then 0.90 to 1.003 times those after all
#: iterations; with 0.003 up to 1.03 times, with 0.0007 half of the time is saved.
STILL = 1.5e-3


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
    #: of the prior's shift that were kept, see :mod:`photostereo.solver.shrinkage`
    shares: Shares = (1.0, 1.0)
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
        if self.prior is None:
            return {}
        return self.prior.results(self.state)


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
    #: normals and unknowns to begin with; by default the model's own
    start: tuple[Array, Unknowns] | None = None
    problems: int = (
        0  #: if not 0, this many problems with different strengths descend together, on a GPU
    )
    #: shares of the prior's shift to keep if the model stays within the noise; by default the best by Stein's estimate
    shares: Shares | None = None

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
        """Return the minimizer.

        Parameters
        ----------
        max_iter : int
            Maximum number of iterations.
        tol : float
            Stop when an iteration lowers the cost by less than this share of it. Several problems require 0.
        control : Control
            Progress and cancellation.
        truth : (N, 3) array, optional
            Ground truth, for the error of each iteration.
        resume : SolveState or path, optional
            Continue from a saved state.
        checkpoint : path, optional
            Where to save the state.
        checkpoint_every : int
            Number of iterations between saves.
        keep_lessons : bool
            Keep what the prior learned in each iteration, for the bands of a large capture.
        """
        if self.prior is None:
            if resume is not None or checkpoint is not None:
                raise ParameterError(
                    "A method without a prior has no iteration to save or resume. Leave out "
                    "`resume` and `checkpoint`, or use a method with a prior, such as pdlnv.",
                    code="nothing-to-resume",
                )
            return self._alone(control)
        state = self._first(control)
        start = state.normals, state.unknowns
        if resume is not None:
            state = resumed(resume, state)
        descent = Descent(
            self.model,
            self.prior,
            state,
            max_iter=max_iter,
            tol=tol,
            still=STILL if isinstance(self.model, WithinNoise) and not self.problems else 0.0,
            goal=None if truth is None else like(truth, state.normals),
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            keeps_lessons=keep_lessons,
            control=control,
        )
        status = descent.run()
        shares = self.shares
        if shares is None and isinstance(self.model, WithinNoise):
            shares = best_share(self.model, self.prior, start, state, control)
        solution = self._ended(state, status, len(state.history), shares)
        return replace(
            solution,
            history=state.history,
            prior=self.prior,
            state=state.prior,
            lessons=descent.lessons,
        )

    def follow(self, passes: int, control: Control = SILENT) -> Solution:
        """Run ``passes`` iterations with a prior that follows the lessons of another; no figures are recorded."""
        assert self.prior is not None
        state = self._first(control)
        for number in range(passes):
            state.step(self.model, self.prior, number, control)
        return self._ended(state, "iterations", passes, self.shares)

    def _first(self, control: Control) -> SolveState:
        assert self.prior is not None
        normals, unknowns = self.model.start(control) if self.start is None else self.start
        control.check()
        if self.problems:
            normals = namespace(normals).stack([normals] * self.problems)
        return SolveState(normals, unknowns, self.prior.begin(normals))

    def _ended(
        self, state: SolveState, status: str, iterations: int, shares: Shares | None
    ) -> Solution:
        """Return the end of a descent, with the shares of the prior's shift that are worth keeping."""
        if shares is None or not isinstance(self.model, WithinNoise):
            return Solution(state.normals, state.unknowns, status, iterations)
        normals = self.model.tempered(state.normals, shares)
        unknowns = self.model.update_unknowns(normals, state.unknowns)
        return Solution(normals, unknowns, status, iterations, shares=shares)

    def _alone(self, control: Control) -> Solution:
        fit = self.model.alone(control)
        if not fit.converged:
            finding = Finding("model-not-converged", iterations=fit.iterations)
            warnings.warn(ConvergenceWarning(finding), stacklevel=4)
        status = "converged" if fit.converged else "iterations"
        if fit.iterations == 0:
            status = "closed form"
        return Solution(fit.normals, fit.unknowns, status, fit.iterations)
