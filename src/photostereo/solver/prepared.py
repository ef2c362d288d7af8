"""A capture reduced to a model's statistics, once, for any number of solves.

A single solve, a grid of the prior's strengths and the trials of a sweep all go this way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.capture.intensities import intensities
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.noise import MaskPixels
from photostereo.diagnosis.noise_table import PixelNoise
from photostereo.priors.protocol import Domain
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import CPU, Array, Device, find_device, in_full_precision, like
from photostereo.runtime.threads import shorten_spinning
from photostereo.solver.compose import compose
from photostereo.solver.conditions import Conditions, measure_conditions
from photostereo.solver.finish import as_reconstruction
from photostereo.solver.methods import Method, find_method, method_for, method_names
from photostereo.solver.problem import Problem
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.state import SolveState
from photostereo.solver.within_noise import NoiseEvidence


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a solve needs of a capture before a prior matters: its intensities and the model's statistics.

    One of these serves every strength of a grid. ``pixels`` holds the scaled intensities until the first solve, where the
    method has a prior that may measure their noise; ``seconds`` is what making it took, by stage; ``colors`` (N, d, 3) are
    kept on a GPU, where the model saw them, for the albedo.
    """

    method: Method
    capture: Capture
    model_values: dict[str, Any]
    scale: float
    pixels: list[Array]
    model: Model
    seconds: dict[str, float]
    device: Device = CPU
    colors: Array | None = None
    conditions: Conditions = field(default_factory=Conditions)

    @cached_property
    def evidence(self) -> NoiseEvidence:
        """Of the noise of the scaled intensities: computed only if a strength is chosen from it."""
        pixels = self.pixels[0] if self.pixels else None
        if pixels is None:
            pixels = self.conditions.correct(intensities(self.capture, self.device).pixels)
        lights = self.capture.lights.matrix

        def again(other: Array) -> Model:
            colors = self.colors
            if colors is None and "colors" in self.method.model.sees and self.capture.is_color:
                colors = self.conditions.correct(self.capture.colors(self.scale))
            seen = also_seen(self.method, self.capture.mask, colors)
            return self.method.model.build(other, lights, **self.model_values, **seen)

        return NoiseEvidence.of(self.model, pixels, lights, self.capture.mask, again)

    def require(self, capture: Capture, method: Method, values: Mapping[str, Any], device: Device) -> None:
        """Raise a :class:`ParameterError` if this was prepared for something else."""
        same_model = all(np.array_equal(values[name], value) for name, value in self.model_values.items())
        if (capture, method.name, device) != (self.capture, self.method.name, self.device) or not same_model:
            raise ParameterError(
                f"The statistics were prepared for {self.method.name} on {self.capture.name} with "
                f"{self.model_values or 'no parameters'} on {self.device.name}, but something else is to be solved: "
                f"{method.name} on {capture.name} on {device.name}. Prepare again with the same capture, method, "
                "model parameters and device.",
                code="prepared-for-something-else",
            )

    def solve(
        self,
        values: Mapping[str, Any],
        *,
        control: Control = SILENT,
        resume: SolveState | str | Path | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
    ) -> Reconstruction:
        """The reconstruction with these values of all parameters (of :meth:`Method.resolve`)."""
        clock = Clock(self.seconds)
        problem, values = self._problem(values, control)
        clock.lap("start")
        solution = problem.solve(
            max_iter=values.get("max_iter", 1),
            tol=values.get("tol", 0.0),
            control=control,
            truth=self.capture.truth_in_mask(),
            resume=resume,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        clock.lap("solve")
        return self._finish(solution, values, clock.laps)

    def solve_together(self, settings: Sequence[Mapping[str, Any]]) -> list[Reconstruction]:
        """All settings as one problem with a leading axis; only the prior's strengths may differ. For GPUs."""
        assert self.method.prior is not None
        began = time.perf_counter()
        like_pixels = self.model.start(SILENT)[0]
        strengths = {
            name: like(np.array([values[name] for values in settings], dtype=np.float64), like_pixels)
            for name in self.method.prior.strengths
        }
        problem, _ = self._problem({**settings[0], **strengths}, SILENT)
        truth = self.capture.truth_in_mask()
        solution = replace(problem, problems=len(settings)).solve(
            max_iter=settings[0]["max_iter"], truth=truth
        )
        seconds = {**self.seconds, "solve": (time.perf_counter() - began) / len(settings)}
        return [self._finish(solution.select(g), values, seconds) for g, values in enumerate(settings)]

    def _problem(self, values: Mapping[str, Any], control: Control) -> tuple[Problem, Mapping[str, Any]]:
        if self.method.prior is None:
            return Problem(self.model, device=self.device), values
        composed = compose(
            self.model,
            self.method.prior,
            values,
            Domain(self.capture.mask),
            lambda: self.evidence,
            control,
            self.device,
        )
        self.pixels.clear()
        return composed.problem, composed.values

    def _finish(
        self, solution: Any, values: Mapping[str, Any], seconds: Mapping[str, float]
    ) -> Reconstruction:
        clock = Clock(seconds)
        result = as_reconstruction(
            self.capture,
            self.model,
            solution,
            self.scale,
            method=self.method.name,
            parameters=values,
            seconds=clock.laps,
            device=self.device,
            colors=self.colors,
            conditions=self.conditions,
        )
        clock.lap("finish")
        return result


@in_full_precision
def prepare(
    capture: Capture,
    method: str | Method,
    *,
    prior: str | None = None,
    device: str = "cpu",
    strengths: str = "auto",
    **parameters: Any,
) -> Prepared:
    """Reduce the photographs to the model's statistics once, for many calls of :func:`photostereo.solve`.

    Only the parameters of the reflectance model matter here; those of the prior may be given and are ignored.
    """
    shorten_spinning()  # before the compiled kernels bring OpenMP
    entry, _ = method_for(capture, method, prior)
    values = entry.of_model(entry.resolve(parameters))
    where = device_for(entry, device)
    clock = Clock()
    capture.require_light()
    lights = capture.lights.matrix
    options: dict[str, Any] = {"strengths": strengths, "model_needs_noise": "noise" in entry.model.sees}
    from_frames = entry.model.from_frames
    if from_frames is not None and not entry.has_prior and not where.uses_torch:
        # Its sums need no second copy of the photographs, ordered by pixels.
        scale = capture.intensity_scale()
        view = MaskPixels(capture.images, capture.mask, scale)
        conditions = measure_conditions(view, lights, capture.mask, **options)
        clock.lap("prepare")
        blocks = conditions.correct_blocks(capture.blocks_in_mask(scale))
        summed = from_frames(blocks, lights)
        clock.lap("statistics")
        return Prepared(entry, capture, values, scale, [], summed, clock.laps, where, conditions=conditions)
    seen = intensities(capture, where, colors="colors" in entry.model.sees)
    conditions = measure_conditions(seen.pixels, lights, capture.mask, **options)
    noise = conditions.noise_of(entry.model.sees, seen.pixels)
    conditions.correct(seen.pixels)
    if seen.colors is not None:
        conditions.correct(seen.colors)
    clock.lap("prepare")
    beyond = also_seen(entry, capture.mask, seen.colors, noise)
    model = entry.model.build(seen.pixels, lights, **values, **beyond)
    clock.lap("statistics")
    held = [seen.pixels] if entry.has_prior else []
    beside = seen.colors if where.uses_torch else None  # the computer looks at its photographs again
    return Prepared(entry, capture, values, seen.scale, held, model, clock.laps, where, beside, conditions)


def also_seen(
    entry: Method, mask: BoolArray, colors: Array | None, noise: PixelNoise | None = None
) -> dict[str, Any]:
    """What the method's model is given beyond gray pixels and lights; see ``ModelEntry.sees``."""
    available = {"mask": mask, "colors": colors, "noise": noise}
    return {name: available[name] for name in entry.model.sees if available[name] is not None}


def device_for(entry: Method, name: str) -> Device:
    """The device of that name, if the method runs on it."""
    device = find_device(name)
    if device.uses_torch and not entry.on_gpu:
        able = ", ".join(other for other in method_names() if find_method(other).on_gpu)
        raise ParameterError(
            f"Method {entry.name} does not run on {name}, only on the CPU. Leave the device out, or choose one of "
            f"{able}.",
            code="method-not-on-device",
            method=entry.name,
            device=name,
        )
    return device


class Clock:
    """Wall-clock time by stage."""

    def __init__(self, laps: Mapping[str, float] | None = None) -> None:
        self.laps: dict[str, float] = dict(laps or {})
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = now - self._last
        self._last = now
