"""Block coordinate descent: what every method with a dictionary repeats.

    minimize  Σ_pixels data(n, u)  +  λ ( Σ_patches ‖P_j n − D b_j‖² + μ² ‖B‖₀ )

One iteration is a pass over the atoms (D and B at fixed n) and the model's exact update (n and u at fixed D
and B). Neither can raise the cost. Arrays are NumPy's or torch's; with a leading axis, several problems
descend at once, each with its own λ and μ.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control, Iteration
from photostereo.core.errors import CaptureError, OutputError, ParameterError
from photostereo.diagnosis.metrics import mean_angle
from photostereo.io.atomic import write_arrays
from photostereo.io.safe import exists, explained, names_in_npz, read_npz
from photostereo.priors.dictionary.prior import DictionaryPrior, DictionaryState
from photostereo.reflectance.model import Model, Unknowns
from photostereo.runtime.arrays import CPU, Array, Device, cast, is_tensor, like, namespace, to_numpy

#: Iterations whose figures stay on a GPU before they are fetched together: a transfer would make it wait.
FETCH_EVERY = 10
#: What a saved state holds, besides the model's own unknowns.
_STATE_ARRAYS = frozenset({"normals", "atoms", "codes", "residual", "history"})


@dataclass
class SolveState:
    """Everything that block coordinate descent carries from one iteration to the next."""

    normals: Array
    unknowns: Unknowns
    dictionary: DictionaryState
    history: tuple[Iteration, ...] = ()

    def copy_to(self, device: Device) -> SolveState:
        """A copy of the state that shares no array with this one, on a device."""

        def moved(array: Array) -> Array:
            return device.put(np.array(to_numpy(array)))

        dictionary = self.dictionary
        return SolveState(
            moved(self.normals),
            {name: moved(value) for name, value in self.unknowns.items()},
            DictionaryState(moved(dictionary.atoms), moved(dictionary.codes), moved(dictionary.residual)),
            self.history,
        )

    def save(self, path: str | Path) -> None:
        """Write the state to an ``.npz`` file, replaced at once: an interruption leaves the old one.

        Raises
        ------
        OutputError
            If the file exists and is not a saved state: a photograph is not overwritten.
        """
        require_checkpoint(path)
        state = self.copy_to(CPU)
        arrays: dict[str, Any] = {f"unknown_{name}": value for name, value in state.unknowns.items()}
        # NaN stands for "no truth known" in the error column.
        history = [[np.nan if v is None else float(v) for v in r.as_dict().values()] for r in self.history]
        write_arrays(
            path,
            normals=state.normals,
            atoms=state.dictionary.atoms,
            codes=state.dictionary.codes,
            residual=state.dictionary.residual,
            history=np.array(history).reshape(len(history), -1),
            **arrays,
        )

    @classmethod
    def load(cls, path: str | Path) -> SolveState:
        """Read what :meth:`save` wrote."""
        remedy = "Give the file that `checkpoint` wrote, or start again without `resume`."

        def complaint(problem: str) -> CaptureError:
            return CaptureError(f"{path} is not the saved state of a solve ({problem}). {remedy}")

        arrays = read_npz(Path(path), "saved state", remedy=remedy)
        missing = _STATE_ARRAYS - arrays.keys()
        if missing:
            raise complaint(f"it has no {', '.join(sorted(missing))}")
        for name, array in arrays.items():
            if array.ndim == 0 or (name != "history" and not np.isfinite(array).all()):
                raise complaint(f"{name} holds values that are not finite numbers")
        with explained(complaint):
            unknowns = {
                name.removeprefix("unknown_"): array
                for name, array in arrays.items()
                if name.startswith("unknown_")
            }
            history = tuple(record_from(row) for row in arrays["history"].tolist())
        dictionary = DictionaryState(arrays["atoms"], arrays["codes"], arrays["residual"])
        return cls(arrays["normals"], unknowns, dictionary, history)


def require_checkpoint(path: str | Path) -> None:
    """Raise an :class:`OutputError` where a file is there that is not a saved state: it is never overwritten."""
    if exists(Path(path)) and not names_in_npz(Path(path)) >= _STATE_ARRAYS:
        raise OutputError(
            f"{path} exists and is not the saved state of a solve, so it is not overwritten. Give another name for "
            "the checkpoint."
        )


def begin(
    normals: Array,
    unknowns: Unknowns,
    prior: DictionaryPrior,
    *,
    resume: SolveState | str | Path | None = None,
    device: Device = CPU,
) -> SolveState:
    """The first state, or a copy of the one to resume."""
    if resume is None:
        return SolveState(normals, unknowns, prior.begin(normals))
    state = resume if isinstance(resume, SolveState) else SolveState.load(resume)
    dictionary = state.dictionary
    expected = (prior.grid.n_pixels, prior.grid.n_patches, prior.grid.patch_length)
    found = (len(state.normals), *dictionary.residual.shape)
    if expected != found:
        raise ParameterError(
            f"The saved state has {found[0]} pixels and {found[1]} patches of {found[2]} values, but this "
            f"capture and these parameters give {expected[0]}, {expected[1]} and {expected[2]}. Resume with "
            "the same capture and parameters, or start again without `resume`."
        )
    if state.unknowns.keys() != unknowns.keys():
        raise ParameterError(
            "The saved state is that of another method: it holds "
            f"{', '.join(state.unknowns) or 'normals only'}, but this one needs {', '.join(unknowns) or 'normals only'}. "
            "Resume with the method that saved it, or start again without `resume`."
        )
    atoms = dictionary.atoms.shape[0]
    fits = [
        (state.normals, (expected[0], 3), normals.dtype),
        (dictionary.atoms, (atoms, expected[2]), prior.dtype),
        (dictionary.codes, (atoms, expected[1]), prior.dtype),
        (dictionary.residual, expected[1:], prior.dtype),
        *((value, unknowns[name].shape, unknowns[name].dtype) for name, value in state.unknowns.items()),
    ]
    for array, shape, kind in fits:
        if tuple(array.shape) != tuple(shape) or str(array.dtype).split(".")[-1] != str(kind).split(".")[-1]:
            raise ParameterError(
                f"The saved state holds an array of shape {tuple(array.shape)} and type {array.dtype} where "
                f"{tuple(shape)} and {kind} are needed: it is damaged, or was saved with other parameters. Resume "
                "with the same parameters, or start again without `resume`."
            )
    return state.copy_to(device)  # a resumed solve must not change the caller's state


def iterate(
    state: SolveState, model: Model, prior: DictionaryPrior, lam: Array, truth: Array | None
) -> Array:
    """One iteration in place.

    Parameters
    ----------
    lam : array without an axis, or of one λ per problem
    truth : (N, 3) true normals where they are known

    Returns
    -------
    (6,) or (6, problems) array of the state's own kind
        Data, fit and sparsity (the terms of the cost), share of non-zero codes, relative change of the
        normals, mean angular error (NaN without truth). Nothing is fetched from a GPU.
    """
    before = state.normals
    change = half_steps(state, model, prior, lam)
    normals = state.normals
    moved = _squared_norm(change) / (_squared_norm(before) + 1e-300)

    data = model.cost(normals, state.unknowns)
    fit, sparsity = (lam * term for term in prior.cost(state.dictionary))
    codes = state.dictionary.codes
    nonzeros = cast(state.dictionary.nonzeros, "float64") / (codes.shape[-1] * codes.shape[-2])
    error = data * np.nan if truth is None else mean_angle(normals, truth)
    return namespace(normals).stack([data, fit, sparsity, nonzeros, moved**0.5, error])


def _squared_norm(n: Array) -> Array:
    """``‖n‖²`` of (..., N, 3), for each problem."""
    # A GPU is sooner told two plain steps than one of einsum's.
    return (n * n).sum((-2, -1)) if is_tensor(n) else np.einsum("...ij,...ij->...", n, n)


def half_steps(state: SolveState, model: Model, prior: DictionaryPrior, lam: Array) -> Array:
    """Dictionary and codes, then the normals, in place; the change of the normals."""
    prior.update(state.dictionary)
    pull = prior.pull(state.dictionary, state.normals)
    pull *= lam[..., None, None]
    normals = model.update_normals(state.unknowns, lam[..., None] * prior.count, pull)
    state.unknowns = model.update_unknowns(normals, state.unknowns)
    change = normals - state.normals
    prior.follow(state.dictionary, change)
    state.normals = normals
    return change


def descend(
    state: SolveState,
    model: Model,
    prior: DictionaryPrior,
    lam: Array,
    *,
    limit: int,
    tolerance: float,
    control: Control,
    truth: NDArray[Any] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
) -> str:
    """Iterate up to ``limit`` iterations in all, in place; the status, ``"converged"`` or ``"iterations"``.

    ``lam`` may be one λ for each of several problems on a leading axis; those need a tolerance of 0.

    On a GPU the figures are fetched every :data:`FETCH_EVERY` iterations, at each checkpoint and at the end;
    in every iteration where a tolerance has to look at them.
    """
    control.stage("iterations", limit)
    control.advance(len(state.history))
    weight = lam if is_tensor(lam) else like(np.asarray(lam, dtype=np.float64), state.normals)
    goal = None if truth is None else like(truth, state.normals)
    fetch_every = FETCH_EVERY if is_tensor(state.normals) and tolerance == 0 else 1
    waiting: list[Array] = []
    began = time.perf_counter()
    for number in range(len(state.history) + 1, limit + 1):
        waiting.append(iterate(state, model, prior, weight, goal))
        saves = checkpoint is not None and (number % checkpoint_every == 0 or number == limit)
        if not (saves or len(waiting) == fetch_every or number == limit):
            continue
        before = state.history[-1].cost if state.history else np.inf
        now = time.perf_counter()
        records = as_records(waiting, number, (now - began) / len(waiting))
        state.history = (*state.history, *records)
        for record in records:
            control.iteration(record)
            control.advance()
        done = tolerance > 0 and np.isfinite(before) and before - records[-1].cost <= tolerance * abs(before)
        if checkpoint is not None and (saves or done):
            state.save(checkpoint)
        if done:
            return "converged"
        waiting, began = [], time.perf_counter()
    return "iterations"


def as_records(figures: Sequence[Array], last: int, seconds: float) -> list[Iteration]:
    """The figures of consecutive iterations, fetched together; of several problems, arrays of them."""
    table = to_numpy(namespace(figures[0]).stack(list(figures)))
    first = last - len(table) + 1
    rows = table.tolist() if table.ndim == 2 else table
    return [record_of(row, first + k, seconds) for k, row in enumerate(rows)]


def record_of(row: Sequence[float], number: int, seconds: float) -> Iteration:
    """One row of figures as a record."""
    data, fit, sparsity, nonzeros, change, error = row
    return Iteration(
        number=number,
        cost=data + fit + sparsity,
        data=data,
        fit=fit,
        sparsity=sparsity,
        nonzeros=nonzeros,
        change=change,
        seconds=seconds,
        error=None if np.isnan(error).all() else error,
    )


def record_from(row: Sequence[float]) -> Iteration:
    """A record from the columns that :meth:`SolveState.save` writes."""
    number, cost, data, fit, sparsity, nonzeros, change, seconds, error = row
    known = None if np.isnan(error) else error
    return Iteration(int(number), cost, data, fit, sparsity, nonzeros, change, seconds, known)
