"""A capture, or a sample of it, reduced to a model's statistics: what a prior learns on.

A single solve, a grid of the prior's strengths, the trials of a sweep and the tiles of a large capture all begin here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.capture.capture import SAMPLED_PIXELS, gray_of
from photostereo.capture.intensities import Intensities, intensities
from photostereo.core.control import SILENT, Control, Iteration
from photostereo.core.conventions import BoolArray
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.noise import Noise, PixelNoise
from photostereo.photographs.source import digest_of, hash_of
from photostereo.priors.entry import Setting
from photostereo.priors.protocol import Domain, Lesson
from photostereo.reflectance.model import Model, Whole
from photostereo.runtime.arrays import Array, Device, find_device, in_full_precision, like
from photostereo.runtime.illumination import PixelLights
from photostereo.runtime.threads import processors, shorten_spinning
from photostereo.solver.conditions import Conditions, measure_conditions
from photostereo.solver.finish import pictures_of, reconstruction_of
from photostereo.solver.methods import Method, find_method, method_for, method_names
from photostereo.solver.problem import Problem, Solution
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.sample import Sample
from photostereo.solver.state import SolveState
from photostereo.solver.whole import SmallPhotographs, at_pixels
from photostereo.solver.within_noise import NoiseEvidence, WithinNoise

#: Photographs that are hashed at a time, at most, for the digest: a core hashes 1.7 GB a second.
HASHED = 6


@dataclass(frozen=True, eq=False)
class Learned:
    """What the tiles of a capture take over from its sample."""

    values: dict[str, Any]  #: all parameters
    model: Model  #: of the sample
    #: scale, conditions: brightness, noise and strengths of the photographs
    scale: float
    conditions: Conditions
    #: lessons, iterations: of the prior, in each iteration
    lessons: Sequence[Lesson] = ()
    iterations: int = 0
    #: the noise and the mean Hessian that a prior of automatic strength has to stay within
    bound: tuple[float | NoiseEvidence, NDArray[Any]] | None = None
    share: float = 1.0  #: how much of the prior's shift is kept
    #: history, arrays: of the result
    history: tuple[Iteration, ...] = ()
    arrays: Mapping[str, NDArray[Any]] | None = None
    whole: Whole | None = None  #: what the model knows of the whole object, if that matters


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a solve needs of a capture before a prior matters: intensities and the model's statistics.

    One of these serves every strength of a grid. ``noise`` holds the scaled intensities and their noise until the first
    solve, if the method has a prior that may need it; ``seconds`` is what making it took, by stage; ``colors`` (N, d, 3) are
    kept of a sample, and on a GPU.
    """

    method: Method
    capture: Capture
    sample: Sample
    model_values: dict[str, Any]
    scale: float
    digest: Callable[[], str]
    noise: list[Noise]
    model: Model
    seconds: dict[str, float]
    device: Device
    colors: Array | None
    conditions: Conditions
    lights: PixelLights
    whole: Whole | None = None

    @cached_property
    def evidence(self) -> NoiseEvidence:
        """Of the noise of the scaled intensities: computed only if a strength is chosen from it."""
        lights = self.lights.matrix
        if self.noise:
            noise = self.noise[0]
        else:
            pixels = self._corrected(intensities(self.capture, self.device).pixels)
            noise = Noise(pixels, lights, self.sample.mask, self.lights.amplified)

        def again(other: Array) -> Model:
            colors = self.colors
            if colors is None and "colors" in self.method.model.sees and self.capture.is_color:
                colors = self._corrected(self.capture.colors(self.scale))
            seen = also_seen(self.method, self.sample.mask, self.lights, colors, around=self._surroundings)
            return self.method.model.build(other, lights, **self.model_values, **seen)

        return NoiseEvidence.of(self.model, noise, again)

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
            truth=self._truth,
            resume=resume,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        clock.lap("solve")
        return self._finish(solution, values, clock)

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
        together = replace(problem, problems=len(settings))
        solution = together.solve(max_iter=settings[0]["max_iter"], truth=self._truth)
        seconds = {**self.seconds, "solve": (time.perf_counter() - began) / len(settings)}
        return [self._finish(solution.select(g), values, Clock(seconds)) for g, values in enumerate(settings)]

    def learn(self, values: Mapping[str, Any], control: Control) -> Learned:
        """What tiles take over, from a descent on the sample."""
        if self.method.prior is None:
            return Learned(dict(values), self.model, self.scale, self.conditions, whole=self.whole)
        problem, values = self._problem(values, control)
        solution = problem.solve(
            max_iter=values["max_iter"],
            tol=values["tol"],
            control=control,
            truth=self._truth,
            keep_lessons=True,
        )
        return Learned(
            dict(values),
            self.model,
            self.scale,
            self.conditions,
            solution.lessons,
            solution.iterations,
            problem.model.bound if isinstance(problem.model, WithinNoise) else None,
            solution.share,
            solution.history,
            solution.arrays(),
            self.whole,
        )

    def _corrected(self, values: Array) -> Array:
        return self.conditions.correct(self.lights.even(values))

    @property
    def _surroundings(self) -> Any:
        return at_pixels(self.whole, self.sample.index, self.capture.frame[1])

    @property
    def _truth(self) -> NDArray[Any] | None:
        truth = self.capture.truth
        return None if truth is None else self.lights.in_view(truth.reshape(-1, 3)[self.sample.index])

    def _problem(self, values: Mapping[str, Any], control: Control) -> tuple[Problem, Mapping[str, Any]]:
        """Model and prior; strengths that are open are chosen from the noise, and the answer then stays within it."""
        model, entry, device = self.model, self.method.prior, self.device
        if entry is None:
            return Problem(model, device=device), values
        start = model.start(control)
        control.check()
        found = self.evidence if entry.is_open(values) else None
        control.check()
        self.noise.clear()
        hessian = model.mean_hessian(start[1])
        sigma = 0.0 if found is None else found.sigma
        domain = Domain(self.sample.mask, self.sample.side)
        prior, chosen = entry.build(values, Setting(domain, sigma, hessian, device))
        control.check()
        if found is not None and sigma and entry.weight_is_open(values):
            model = WithinNoise(model, start, found, hessian)
        return Problem(model, prior, start, device=device), chosen

    def _finish(self, solution: Solution, values: Mapping[str, Any], clock: Clock) -> Reconstruction:
        pictures = pictures_of(
            self.capture.mask,
            self.conditions.correct_frames(self.capture.images) if self.capture.is_color else (),
            self.lights,
            self.model,
            solution,
            self.scale,
            color=self.capture.is_color,
            colors=self.colors,
        )
        result = reconstruction_of(
            self.capture,
            pictures,
            device=self.device,
            method=self.method.name,
            parameters=dict(values),
            digest=self.digest(),
            status=solution.status,
            iterations=solution.iterations,
            history=solution.history,
            arrays=solution.arrays(),
            strengths=self.conditions.factors,
        )
        clock.lap("finish")
        return replace(result, seconds=clock.laps)


@in_full_precision
def prepare(
    capture: Capture,
    method: str | Method,
    *,
    prior: str | None = None,
    device: str = "cpu",
    strengths: str = "auto",
    sample: Sample | None = None,
    control: Control = SILENT,
    **parameters: Any,
) -> Prepared:
    """Reduce the photographs to the model's statistics once, for many calls of :func:`photostereo.solve`.

    Only the parameters of the reflectance model matter here; those of the prior may be given and are ignored. With a
    ``sample`` only its pixels are kept.
    """
    shorten_spinning()  # before the compiled kernels bring OpenMP
    entry, _ = method_for(capture, method, prior)
    values = entry.of_model(entry.resolve(parameters))
    where = device_for(entry, device)
    clock = Clock()
    sees = entry.model.sees
    digest: Callable[[], str] = partial(getattr, capture, "digest")
    if sample is None:
        sample = Sample.whole(capture.mask)
        capture.require_light()
        seen = intensities(capture, where, colors="colors" in sees)
    else:
        small = SmallPhotographs(capture, entry)
        seen, digest = _survey(capture, sample, where, control, small, colors="colors" in sees)
    lights = capture.lights_at(sample.index)
    pixels, colors = lights.even(seen.pixels), seen.colors
    measured = Noise(pixels, lights.matrix, sample.mask, lights.amplified)
    conditions = measure_conditions(measured, strengths=strengths, model_needs_noise="noise" in sees)
    noise = conditions.noise_of(sees, pixels, lights.amplified)
    if conditions.corrects:
        measured = Noise(conditions.correct(pixels), lights.matrix, sample.mask, lights.amplified)
    if colors is not None:
        conditions.correct(lights.even(colors))
    whole = small.look(seen.scale, conditions, values, control) if sample.side else None
    clock.lap("prepare")
    around = at_pixels(whole, sample.index, capture.frame[1])
    beyond = also_seen(entry, sample.mask, lights, colors, noise, around)
    model = entry.model.build(pixels, lights.matrix, **values, **beyond)
    if sample.side:
        model.lead(capture.pixel_count)
    clock.lap("statistics")
    held = [measured] if entry.has_prior else []
    if not (sample.side or where.uses_torch):
        colors = None  # the computer looks at its photographs again
    return Prepared(
        entry,
        capture,
        sample,
        values,
        seen.scale,
        digest,
        held,
        model,
        clock.laps,
        where,
        colors,
        conditions,
        lights,
        whole,
    )


def _survey(
    capture: Capture,
    sample: Sample,
    device: Device,
    control: Control,
    small: SmallPhotographs,
    *,
    colors: bool,
) -> tuple[Intensities, Callable[[], str]]:
    """The intensities of a sample, from one look at every photograph, and what gives the digest of the capture.

    Photographs that stay in memory are hashed while the work goes on.
    """
    spread = np.flatnonzero(capture.mask)[:: max(1, capture.pixel_count // SAMPLED_PIXELS)]
    brightness = np.empty((len(capture), spread.size), dtype=np.float32)
    pixels = np.empty((sample.index.size, len(capture)), dtype=np.float32)
    tinted = np.empty((*pixels.shape, 3), dtype=np.float32) if colors and capture.is_color else None
    hashes = []
    capture.photographs.keep_decoded()
    control.stage("survey", len(capture))
    ahead, pool = max(1, processors() // 2), ThreadPoolExecutor(min(HASHED, processors()))
    try:
        for number, frame in enumerate(capture.photographs.frames(control)):
            hashes.append(pool.submit(hash_of, frame))
            brightness[number] = gray_of(frame, spread)
            pixels[:, number] = gray_of(frame, sample.index)
            if tinted is not None:
                tinted[:, number] = frame.reshape(-1, 3)[sample.index]
            small.add(frame)
            if number >= ahead and not capture.in_memory:
                hashes[number - ahead].result()  # no more photographs wait
            control.advance()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown(wait=False)
    if not brightness.any():
        capture.require_light()
    scale = float(np.percentile(brightness, 99))
    scale = scale if scale > 0 else 1.0
    for found in (pixels, tinted):
        if found is not None:
            found /= np.float32(scale)
    seen = Intensities(device.put(pixels), scale, None if tinted is None else device.put(tinted))

    def digest() -> str:
        found = (job.result() for job in hashes)
        return digest_of(
            capture.photographs.shape, found, capture.lights.directions, np.asarray(capture.mask)
        )

    return seen, digest


def also_seen(
    entry: Method,
    mask: BoolArray,
    lights: PixelLights,
    colors: Array | None,
    noise: PixelNoise | None = None,
    around: Any = None,
) -> dict[str, Any]:
    """What the method's model is given beyond gray pixels and lights; see ``ModelEntry.sees``."""
    available = {
        "mask": mask,
        "colors": colors,
        "noise": noise,
        "surroundings": around,
        "fall_off": lights.fall_off,
    }
    return {name: available[name] for name in entry.model.sees if available[name] is not None}


def device_for(entry: Method, name: str) -> Device:
    """The device of that name, if the method runs on it."""
    device = find_device(name)
    if device.uses_torch and not entry.on_gpu:
        able = ", ".join(other for other in method_names() if find_method(other).on_gpu)
        raise ParameterError(code="method-not-on-device", method=entry.name, device=name, able=able)
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
