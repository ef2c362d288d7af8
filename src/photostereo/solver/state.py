"""The state of a descent, its step, and its file, from which a solve can be resumed."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import exists
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control, Iteration
from photostereo.core.errors import CaptureError, OutputError, ParameterError
from photostereo.io.atomic import write_arrays
from photostereo.io.safe import explained, names_in_npz, read_npz
from photostereo.priors.protocol import Prior, PriorState
from photostereo.reflectance.model import Unknowns
from photostereo.runtime.arrays import Array, like, to_numpy

#: Name of the normals in a file of a state.
NORMALS = "normals"
#: Prefix of the model's unknowns.
UNKNOWN = "unknown_"
#: Prefix of the prior's state.
PRIOR = "prior_"
#: Prefix of the columns of the history.
HISTORY = "history_"
#: Content of every file.
REQUIRED = frozenset({NORMALS, f"{HISTORY}number", f"{HISTORY}cost"})
_REMEDY = "Resume from the file that `checkpoint` wrote, or start again without `resume`."


@dataclass
class SolveState:
    """Everything that block coordinate descent carries from one iteration to the next."""

    normals: Array  #: (N, 3), scaled normals of the mask pixels.
    unknowns: Unknowns  #: Of the model, by name.
    prior: PriorState  #: Of the prior, by name.
    history: tuple[Iteration, ...] = ()  #: A record of every iteration so far.

    def step(self, model: Any, prior: Prior, iteration: int, control: Control = SILENT) -> Array:
        """Update the prior's unknowns, then the normals, in place; return the change of the normals."""
        prior.update(self.prior, self.normals, iteration, control)
        weight, pull = prior.pull(self.prior, self.normals)
        control.check()
        normals = model.update_normals(self.unknowns, weight, pull)
        del pull  # as large as the normals
        control.check()
        self.unknowns = model.update_unknowns(normals, self.unknowns)
        change = normals - self.normals
        prior.follow(self.prior, change)
        self.normals = normals
        return change

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by their names in the file."""
        return {
            NORMALS: self.normals,
            **{UNKNOWN + name: value for name, value in self.unknowns.items()},
            **{PRIOR + name: value for name, value in self.prior.items()},
        }

    def save(self, path: str | Path) -> None:
        """Write the state to an ``.npz`` file atomically: an interruption leaves the old file intact.

        Raises
        ------
        OutputError
            If the file exists and is not a saved state, such as a photograph.
        """
        require_checkpoint(path)
        rows = [record.as_dict() for record in self.history]
        columns: dict[str, Any] = {
            HISTORY + name: np.array([np.nan if row[name] is None else row[name] for row in rows])
            for name in (rows[0] if rows else ("number", "cost"))
        }
        write_arrays(
            path, **{name: to_numpy(array) for name, array in self.arrays().items()}, **columns
        )

    @classmethod
    def load(cls, path: str | Path) -> SolveState:
        """Read what :meth:`save` wrote."""
        arrays = read_npz(Path(path), "saved state", remedy=_REMEDY)

        def complaint(problem: str) -> CaptureError:
            return CaptureError(
                f"{path} is not the saved state of a solve: {problem}. {_REMEDY}",
                code="damaged-state",
                file=path,
                problem=problem,
            )

        if missing := REQUIRED - arrays.keys():
            raise complaint(f"it has no {', '.join(sorted(missing))}")
        for name, array in arrays.items():  # NaN is an unknown error
            if array.dtype.kind not in "fiu" or not (
                name == f"{HISTORY}error" or np.isfinite(array).all()
            ):
                raise complaint(f"{name} holds values that are not finite numbers")
        unknowns, prior, columns = (
            {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            for prefix in (UNKNOWN, PRIOR, HISTORY)
        )
        with explained(complaint):
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            history = tuple(_record(dict(zip(columns, row, strict=True))) for row in rows)
        return cls(arrays[NORMALS], unknowns, prior, history)


def require_checkpoint(path: str | Path) -> None:
    """Raise an :class:`OutputError` if a file exists that is not a saved state: it is never overwritten."""
    if exists(Path(path)) and not names_in_npz(Path(path)) >= REQUIRED:
        raise OutputError(
            f"{path} exists and is not the saved state of a solve, so it is not overwritten. "
            "Choose another name for the checkpoint.",
            code="checkpoint-exists",
            file=path,
        )


def resumed(saved: SolveState | str | Path, first: SolveState) -> SolveState:
    """Return a copy of a saved state, on the same device, if it fits the solve that would start with ``first``."""
    state = saved if isinstance(saved, SolveState) else SolveState.load(saved)
    found, needed = ({name: _kind_of(a) for name, a in s.arrays().items()} for s in (state, first))
    for name in [*found, *needed]:
        if found.get(name) != needed.get(name):
            has = found.get(name, "missing")
            needs = needed.get(name, "none")
            raise ParameterError(
                f"The saved state does not fit this solve: its {name} is {has}, but this method "
                f"with this capture and these parameters needs {needs}. {_REMEDY}",
                code="state-does-not-fit",
                file=None if isinstance(saved, SolveState) else saved,
                array=name,
                found=has,
                needed=needs,
            )

    def moved(
        arrays: dict[str, Array],
    ) -> dict[str, Array]:  # copied: the caller's state must not change
        return {
            name: like(np.array(to_numpy(array)), first.normals) for name, array in arrays.items()
        }

    normals = moved({NORMALS: state.normals})[NORMALS]
    return SolveState(normals, moved(state.unknowns), moved(state.prior), state.history)


def _kind_of(array: Array) -> str:
    return f"{' × '.join(map(str, array.shape))} of type {str(array.dtype).split('.')[-1]}"


def _record(facts: dict[str, Any]) -> Iteration:
    unknown = np.isnan(facts["error"])
    return Iteration.from_dict(
        {**facts, "number": int(facts["number"]), "error": None if unknown else facts["error"]}
    )
