"""A prior on a model: strengths that are left open are chosen from the noise, and the answer then stays within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.priors.entry import PriorEntry, Setting
from photostereo.priors.protocol import Domain
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import CPU, Device
from photostereo.solver.problem import Problem
from photostereo.solver.within_noise import NoiseEvidence, WithinNoise


@dataclass(frozen=True, eq=False)
class Composed:
    """A problem, all parameters of the method with their values, and the noise that the answer stays within."""

    problem: Problem
    values: dict[str, Any]
    bound: tuple[NoiseEvidence, NDArray[Any]] | None = None


def compose(
    model: Model,
    entry: PriorEntry,
    values: Mapping[str, Any],
    domain: Domain,
    evidence: Callable[[], NoiseEvidence],
    control: Control,
    device: Device = CPU,
) -> Composed:
    """The problem of a model with a prior; ``evidence`` of the noise is asked for only if a strength is open."""
    start = model.start(control)
    found = evidence() if entry.is_open(values) else None
    hessian = model.mean_hessian(start[1])
    sigma = 0.0 if found is None else found.sigma
    prior, chosen = entry.build(values, Setting(domain, sigma, hessian, device))
    if found is None or not sigma or not entry.weight_is_open(values):
        return Composed(Problem(model, prior, start, device=device), chosen)
    bounded = WithinNoise(model, start, found, hessian)
    return Composed(Problem(bounded, prior, start, device=device), chosen, (found, hessian))
