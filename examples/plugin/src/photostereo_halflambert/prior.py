"""A prior that draws every normal towards the mean of all: λ Σ |n − m|²."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.parameters import integer, number
from photostereo.priors.entry import Preset, PriorEntry, Setting
from photostereo.priors.protocol import Lesson, Prior, PriorState
from photostereo.reflectance.entry import Look
from photostereo.runtime.arrays import Array, like, to_numpy


@dataclass(frozen=True)
class MeanParameters:
    """Of :class:`MeanPrior`, and of the descent with it."""

    lam: float = number(1e-4, "weight of the prior", minimum=0)
    max_iter: int = integer(20, "outer iterations", minimum=1)
    tol: float = number(
        0.0, "stop when the cost falls by less than this fraction; 0: never", minimum=0
    )


class MeanPrior(Prior):
    """Its own unknown is the mean m, which each iteration computes anew."""

    def __init__(self, lam: float, lessons: list[Lesson]) -> None:
        self._lam = lam
        self._lessons = lessons

    def begin(self, normals: Array) -> PriorState:
        return {"mean": normals.mean(-2)[..., None, :]}

    def update(
        self, state: PriorState, normals: Array, iteration: int, control: Control = SILENT
    ) -> None:
        if self._lessons:  # a band of a large capture uses the mean of the sample
            state["mean"][:] = like(self._lessons[iteration]["mean"], normals)
        else:
            state["mean"][:] = normals.mean(-2)[..., None, :]

    def pull(self, state: PriorState, normals: Array) -> tuple[Array, Array]:
        weight = self._lam + 0.0 * normals[..., 0]
        return weight, weight[..., None] * state["mean"]

    def cost(self, state: PriorState, normals: Array) -> dict[str, Array]:
        return {"spread": self._lam * ((normals - state["mean"]) ** 2).sum((-2, -1))}

    def results(self, state: PriorState) -> dict[str, np.ndarray]:
        return {"mean": np.array(to_numpy(state["mean"]))}

    def lesson(self, state: PriorState) -> Lesson:
        return {"mean": np.array(to_numpy(state["mean"]))}


def _build(values: Mapping[str, Any], setting: Setting) -> tuple[MeanPrior, dict[str, Any]]:
    return MeanPrior(values["lam"], list(setting.lessons)), dict(values)


MEAN = PriorEntry(
    name="mean",
    title="Normals near their mean",
    parameters=MeanParameters,
    build=_build,
    citation="An example; no publication.",
    strengths=("lam",),
    files={"mean": "The mean of all normals, times albedo."},
    presets=(
        Preset(
            name="meanls",
            model="ls",
            title="Least squares, near the mean of all normals",
            assumes="A nearly flat, matte object.",
            look=Look("mean LS", "#999933", "p"),
            defaults={"max_iter": 5},
        ),
    ),
)
