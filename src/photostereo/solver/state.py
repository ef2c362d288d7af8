"""The state of a descent and its file, from which a solve can be resumed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Iteration
from photostereo.core.errors import CaptureError, OutputError, ParameterError
from photostereo.io.atomic import write_arrays
from photostereo.io.safe import exists, names_in_npz, read_npz
from photostereo.priors.protocol import PriorState
from photostereo.reflectance.model import Unknowns
from photostereo.runtime.arrays import CPU, Array, Device, to_numpy

#: Arrays of a file: the normals, and with these prefixes the unknowns, the prior's state and the history columns.
NORMALS, UNKNOWN, PRIOR, HISTORY = "normals", "unknown_", "prior_", "history_"
#: The only array that may contain NaN, for an unknown error.
ERROR = f"{HISTORY}error"
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

    def copy_to(self, device: Device) -> SolveState:
        """Return a copy of the state on a device that shares no array with this one."""

        def moved(array: Array) -> Array:
            return device.put(np.array(to_numpy(array)))

        return SolveState(
            moved(self.normals),
            {name: moved(value) for name, value in self.unknowns.items()},
            {name: moved(value) for name, value in self.prior.items()},
            self.history,
        )

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
        write_arrays(path, **self.copy_to(CPU).arrays(), **columns)

    @classmethod
    def load(cls, path: str | Path) -> SolveState:
        """Read what :meth:`save` wrote."""
        arrays = read_npz(Path(path), "saved state", remedy=_REMEDY)
        missing = REQUIRED - arrays.keys()
        if missing:
            raise _damaged(path, f"it has no {', '.join(sorted(missing))}")
        parts: dict[str, dict[str, NDArray[Any]]] = {UNKNOWN: {}, PRIOR: {}, HISTORY: {}}
        for name, array in arrays.items():
            if array.dtype.kind not in "fiu" or not (name == ERROR or np.isfinite(array).all()):
                raise _damaged(path, f"{name} holds values that are not finite numbers")
            for prefix, part in parts.items():
                if name.startswith(prefix):
                    part[name.removeprefix(prefix)] = array
        columns = parts[HISTORY]
        lengths = {column.shape for column in columns.values()}
        if len(lengths) != 1 or len(lengths.pop()) != 1:
            raise _damaged(path, "the columns of its history have different lengths")
        needed = {"number", "cost", "data", "change", "seconds", "error"}
        if len(columns["number"]) and not columns.keys() >= needed:
            raise _damaged(path, f"its history has no {', '.join(sorted(needed - columns.keys()))}")
        history = tuple(_record(columns, row) for row in range(len(columns["number"])))
        return cls(arrays[NORMALS], parts[UNKNOWN], parts[PRIOR], history)


def require_checkpoint(path: str | Path) -> None:
    """Raise an :class:`OutputError` if a file exists that is not a saved state: it is never overwritten."""
    if exists(Path(path)) and not names_in_npz(Path(path)) >= REQUIRED:
        raise OutputError(code="checkpoint-exists", file=path)


def resumed(saved: SolveState | str | Path, first: SolveState, device: Device) -> SolveState:
    """Return a copy of a saved state on a device if it fits the solve that would start with ``first``."""
    state = saved if isinstance(saved, SolveState) else SolveState.load(saved)
    file = None if isinstance(saved, SolveState) else saved
    for kind, ours, theirs in (
        ("method", first.unknowns, state.unknowns),
        ("prior", first.prior, state.prior),
    ):
        if ours.keys() != theirs.keys():
            raise ParameterError(
                f"The saved state belongs to another {kind}: it holds {', '.join(theirs) or 'nothing'}, but this "
                f"{kind} needs {', '.join(ours) or 'nothing'}. {_REMEDY}",
                code=f"state-of-another-{kind}",
                file=file,
                found=list(theirs),
                expected=list(ours),
            )
    needed = first.arrays()
    for name, array in state.arrays().items():
        found, expected = _kind_of(array), _kind_of(needed[name])
        if found != expected:
            raise ParameterError(
                f"The saved state does not fit this capture and these parameters: its {name} has the shape {found[0]} and "
                f"type {found[1]}, but {expected[0]} and {expected[1]} are needed. Resume with the same capture and "
                "parameters, or start again without `resume`.",
                code="state-does-not-fit",
                file=file,
                array=name,
                found=list(found),
                expected=list(expected),
            )
    return state.copy_to(device)  # a resumed solve must not change the caller's state


def _kind_of(array: Array) -> tuple[tuple[int, ...], str]:
    return tuple(array.shape), str(array.dtype).split(".")[-1]


def _record(columns: dict[str, NDArray[Any]], row: int) -> Iteration:
    facts: dict[str, Any] = {name: float(column[row]) for name, column in columns.items()}
    error = facts["error"]
    return Iteration.from_dict(
        {**facts, "number": int(facts["number"]), "error": None if np.isnan(error) else error}
    )


def _damaged(path: str | Path, problem: str) -> CaptureError:
    return CaptureError(code="damaged-state", file=path, problem=problem, advice=_REMEDY)
