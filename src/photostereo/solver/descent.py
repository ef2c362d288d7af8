"""Block coordinate descent on a model with a prior: iterations, records, stopping rules, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from photostereo.core.control import Control, Iteration
from photostereo.diagnosis.metrics import angle_between
from photostereo.priors.protocol import Lesson, Prior
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import Array, is_tensor, namespace, to_numpy
from photostereo.solver.state import SolveState

#: Iterations between fetches of the figures from a GPU: each transfer makes it wait.
FETCH_EVERY = 10


@dataclass(eq=False)
class Descent:
    """A descent from a state, which changes in place.

    On a GPU the figures are fetched every :data:`FETCH_EVERY` iterations, at each checkpoint and at the end; if the
    cost or the change can end the descent, in every iteration.
    """

    model: Model
    prior: Prior
    state: SolveState
    max_iter: int
    tol: float  #: stop when an iteration lowers the cost by less than this share of it; 0 for never
    still: float  #: stop when an iteration changes the normals by less than this share; 0 for never
    goal: Array | None  #: (N, 3) ground truth
    checkpoint: str | Path | None
    checkpoint_every: int
    keeps_lessons: bool
    control: Control
    lessons: list[Lesson] = field(default_factory=list)  #: what the prior learned in each iteration

    def run(self) -> str:
        """Iterate; return ``"converged"``, or ``"iterations"`` if the limit was reached."""
        first = len(self.state.history) + 1
        self.control.stage("iterations", self.max_iter)
        self.control.advance(first - 1)
        never_ends_early = self.tol == self.still == 0
        on_gpu = is_tensor(self.state.normals)
        fetch_every = FETCH_EVERY if on_gpu and never_ends_early else 1
        figures: list[dict[str, Array]] = []
        began = time.perf_counter()
        for number in range(first, self.max_iter + 1):
            figures.append(self._iterate(number - 1))
            if self.keeps_lessons:
                self.lessons.append(self.prior.lesson(self.state.prior))
            saves = self._saves_after(number)
            if not saves and len(figures) < fetch_every and number < self.max_iter:
                continue
            seconds = (time.perf_counter() - began) / len(figures)
            ends = self._record(_as_records(figures, number, seconds))
            if self.checkpoint is not None and (saves or ends):
                self.state.save(self.checkpoint)
            if ends:
                return "converged"
            figures = []
            began = time.perf_counter()
        return "iterations"

    def _saves_after(self, number: int) -> bool:
        if self.checkpoint is None:
            return False
        return number % self.checkpoint_every == 0 or number == self.max_iter

    def _record(self, records: Sequence[Iteration]) -> bool:
        """Add records to the history and report them; return whether the descent has converged."""
        history = self.state.history
        before = history[-1].cost if history else np.inf
        self.state.history = (*history, *records)
        for record in records:
            self.control.iteration(record)
            self.control.advance()
        last = records[-1]
        if self.still > 0 and last.change <= self.still:
            return True
        if self.tol > 0 and np.isfinite(before):
            return bool(before - last.cost <= self.tol * abs(before))
        return False

    def _iterate(self, iteration: int) -> dict[str, Array]:
        """Run one iteration in place and return its figures by name; nothing is fetched from a GPU.

        ``cost`` is the sum of ``data`` and the terms of the prior; ``change`` is the change of the normals relative to
        their length; ``error`` is the mean angle to the ground truth, NaN without it.
        """
        state = self.state
        before = state.normals
        change = state.step(self.model, self.prior, iteration, self.control)
        moved = _squared_norm(change) / (_squared_norm(before) + 1e-300)
        data = self.model.cost(state.normals, state.unknowns)
        terms = self.prior.cost(state.prior, state.normals)
        error = data * np.nan
        if self.goal is not None:
            error = angle_between(state.normals, self.goal).mean(-1)
        return {
            "cost": sum(terms.values(), start=data),
            "data": data,
            "change": moved**0.5,
            "error": error,
            **terms,
            **self.prior.record(state.prior),
        }


def _as_records(figures: Sequence[dict[str, Array]], last: int, seconds: float) -> list[Iteration]:
    """Fetch the figures of consecutive iterations together; for several problems, each figure is an array."""
    names = list(figures[0])
    stack = namespace(figures[0]["data"]).stack
    table = to_numpy(stack([stack([row[name] for name in names]) for row in figures]))
    first = last - len(table) + 1
    records = []
    for number, row in enumerate(table.tolist() if table.ndim == 2 else table, start=first):
        facts = dict(zip(names, row, strict=True))
        if np.isnan(facts["error"]).all():
            facts["error"] = None
        records.append(Iteration.from_dict({"number": number, "seconds": seconds, **facts}))
    return records


def _squared_norm(n: Array) -> Array:
    """Return ``‖n‖²`` of (..., N, 3) for each problem."""
    # On a GPU, two plain steps are faster than one einsum.
    if is_tensor(n):
        return (n * n).sum((-2, -1))
    return np.einsum("...ij,...ij->...", n, n)
