"""The paper's experiments, by name."""

from __future__ import annotations

from photostereo.core.errors import ParameterError, did_you_mean
from photostereo.lab.paper.runs.full_data import RUNS as _FULL_DATA
from photostereo.lab.paper.runs.learning import RUNS as _LEARNING
from photostereo.lab.paper.runs.named import NamedRun
from photostereo.lab.paper.runs.noise_curves import RUNS as _NOISE_CURVES

_ORDER = (
    "table-pls", "table-diligent", "table-runtime", "representation", "few-images", "ten-images",
    "salt-pepper",
    "poisson-pls", "poisson", "poisson-all", "harvard-hippo", "harvard-cat", "convergence", "pieces", "atoms",
)  # fmt: skip

_KNOWN = {run.name: run for run in (*_FULL_DATA, *_NOISE_CURVES, *_LEARNING)}

#: Every named run, in the paper's order.
NAMED_RUNS: dict[str, NamedRun] = {name: _KNOWN[name] for name in _ORDER}


def find_run(name: str) -> NamedRun:
    """The run of that name, or an error that lists the known ones."""
    if name not in NAMED_RUNS:
        raise ParameterError(
            f'There is no run "{name}".{did_you_mean(name, NAMED_RUNS)} Known runs: {", ".join(NAMED_RUNS)}.'
        )
    return NAMED_RUNS[name]


__all__ = ["NAMED_RUNS", "NamedRun", "find_run"]
