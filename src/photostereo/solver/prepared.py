"""Reduce a capture, or a sample of it, to a model's statistics, on which a prior learns.

A single solve, a grid of the prior's strengths, the trials of a sweep and the tiles of a large capture all start here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.capture.capture import SAMPLED_PIXELS, gray_of
from photostereo.capture.intensities import Intensities, intensities
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.expected_error import (
    error_of_three,
    factor_of_detail,
    factor_of_many,
)
from photostereo.diagnosis.metrics import summarize_error
from photostereo.diagnosis.noise import Noise
from photostereo.lights.unknown.crops import Crop
from photostereo.photographs.frames import digest_of, hash_of
from photostereo.priors.entry import Setting
from photostereo.priors.protocol import Lesson
from photostereo.reflectance.model import Facts, Model, Overview
from photostereo.runtime.arrays import Array, Device, find_device, in_full_precision, like
from photostereo.runtime.illumination import PixelLights
from photostereo.runtime.threads import processors, shorten_spinning
from photostereo.solver.conditions import Conditions, measure_conditions
from photostereo.solver.confidence_ball import NoiseEvidence, Shares, WithinNoise
from photostereo.solver.finish import Pictures, pictures_of, versions
from photostereo.solver.methods import Method, find_method, method_for, method_names
from photostereo.solver.problem import Problem, Solution
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.tiles import Part

#: Pixels along a side of the small photographs for a model's view of the whole object: two for each cell of the context
#: network, as in its training.
SMALL = 160


@dataclass(frozen=True, eq=False)
class Measured:
    """Quantities measured once for all parts of a capture, used to build the model of each part."""

    method: Method
    values: dict[str, Any]  #: of the model's parameters
    scale: float  #: brightness of the photographs
    conditions: Conditions  #: their noise and strengths
    facts: Facts | None = None  #: about the whole object, if the model uses any

    def model_of(
        self,
        part: Part,
        lights: PixelLights,
        pixels: Array,
        colors: Array | None,
        control: Control = SILENT,
        *,
        corrected: bool = False,
    ) -> Model:
        """Build the model of a part with all it needs (see ``ModelEntry.sees``). Unless they are already ``corrected``, its
        intensities are corrected in place, and their noise is measured; gray ones are already divided by the fall-off."""
        entry = self.method.model
        noise = None
        if not corrected:
            if "noise" in entry.sees and self.conditions.noise is not None:
                noise = self.conditions.noise.at(pixels, lights.amplified)
            control.check()
            self.conditions.correct(pixels)
            if colors is not None:
                self.conditions.correct(lights.even(colors))
        facts = self.facts
        if facts is not None:
            facts = control.aside(partial(facts.at, *part.places))
        available = {
            "mask": part.mask,
            "colors": colors,
            "noise": noise,
            "facts": facts,
            "fall_off": lights.fall_off,
        }
        inputs = {name: available[name] for name in entry.sees if available[name] is not None}
        model: Model = entry.kind(pixels, lights.matrix, **self.values, **inputs)
        return model


@dataclass(frozen=True, eq=False)
class FromSample:
    """What the tiles of a capture reuse from its sample."""

    measured: Measured  #: with the facts that the model of the sample found
    values: dict[str, Any]  #: all parameters
    #: lessons, iterations: of the prior, in each iteration
    lessons: Sequence[Lesson] = ()
    iterations: int = 0
    shares: Shares = (1.0, 1.0)  #: how much of the prior's shift is kept
    #: the noise and the mean Hessian that bound a prior of automatic strength
    bound: tuple[NoiseEvidence, NDArray[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """Intensities and model statistics of a capture: everything a solve needs before the prior.

    One instance serves every strength of a grid.
    """

    measured: Measured
    capture: Capture
    part: Part  #: all of it, or a sample
    lights: PixelLights
    model: Model
    device: Device
    digest: Callable[[], str]  #: of the photographs; may still be computing
    seconds: dict[str, float]  #: preparation time by stage
    #: noise of the corrected intensities, if the method has a prior, until a strength is chosen from it
    noise: list[Noise]
    colors: Array | None  #: (N, d, 3) of a sample, and on a GPU

    @cached_property
    def _evidence(self) -> NoiseEvidence:
        """Noise of the scaled intensities, which are freed; computed only if a strength is chosen from it."""

        def again(other: Array) -> Model:
            return self.measured.model_of(
                self.part, self.lights, other, self.colors, corrected=True
            )

        return NoiseEvidence.of(self.model, self.noise.pop(), again)

    def require(
        self, capture: Capture, method: Method, values: Mapping[str, Any], device: Device
    ) -> None:
        """Raise a :class:`ParameterError` if this was prepared for something else."""
        own = self.measured.values
        entry = self.measured.method
        same_model = all(np.array_equal(values[name], value) for name, value in own.items())
        if (capture, method.name, device) != (
            self.capture,
            entry.name,
            self.device,
        ) or not same_model:
            prepared = f"{entry.name} on {self.capture.name}"
            asked = f"{method.name} on {capture.name}"
            raise ParameterError(
                f"The statistics were prepared for {prepared}, but this solve is for {asked}, or "
                "has other model parameters or another device. Prepare again.",
                code="prepared-for-something-else",
                prepared=prepared,
                asked=asked,
            )

    def solve(
        self, values: Mapping[str, Any], control: Control = SILENT, **state: Any
    ) -> Reconstruction:
        """Return the reconstruction for these values of all parameters (from :meth:`Method.resolve`).

        ``state`` gives the states to resume from and save to: see :meth:`Problem.solve`.
        """
        clock = Clock(self.seconds)
        problem, values = self._problem(values, control)
        clock.lap("start")
        solution = self._solved(problem, values, control, **state)
        clock.lap("solve")
        return self._finish(solution, values, clock)

    def solve_together(self, settings: Sequence[Mapping[str, Any]]) -> list[Reconstruction]:
        """Solve all settings as one problem with a leading axis; only the prior's strengths may differ. For GPUs."""
        assert self.measured.method.prior is not None
        began = time.perf_counter()
        like_pixels = self.model.start(SILENT)[0]
        strengths = {
            name: like(
                np.array([values[name] for values in settings], dtype=np.float64), like_pixels
            )
            for name in self.measured.method.prior.strengths
        }
        problem, _ = self._problem({**settings[0], **strengths}, SILENT)
        solution = self._solved(replace(problem, problems=len(settings)), settings[0])
        seconds = {**self.seconds, "solve": (time.perf_counter() - began) / len(settings)}
        return [
            self._finish(solution.select(g), values, Clock(seconds))
            for g, values in enumerate(settings)
        ]

    def learn(
        self, values: Mapping[str, Any], control: Control
    ) -> tuple[FromSample, dict[str, Any]]:
        """Return what tiles reuse from a descent on the sample, and the history and arrays of the result."""
        if self.measured.method.prior is None:
            measured = replace(self.measured, facts=self.model.facts(control))
            return FromSample(measured, dict(values)), {}
        problem, values = self._problem(values, control)
        solution = self._solved(problem, values, control, keep_lessons=True)
        learned = FromSample(
            measured=replace(self.measured, facts=self.model.facts(control)),
            values=dict(values),
            lessons=solution.lessons,
            iterations=solution.iterations,
            shares=solution.shares,
            bound=problem.model.bound if isinstance(problem.model, WithinNoise) else None,
        )
        return learned, {"history": solution.history, "arrays": solution.arrays()}

    def _solved(
        self, problem: Problem, values: Mapping[str, Any], control: Control = SILENT, **options: Any
    ) -> Solution:
        limits = {name: values[name] for name in ("max_iter", "tol") if name in values}
        truth = self.capture.truth
        if truth is not None:
            truth = self.lights.in_view(truth.reshape(-1, 3)[self.part.index])
        return problem.solve(**limits, control=control, truth=truth, **options)

    def _problem(
        self, values: Mapping[str, Any], control: Control
    ) -> tuple[Problem, Mapping[str, Any]]:
        """Return model and prior; unset strengths are chosen from the noise, and the answer then stays within it."""
        model = self.model
        entry = self.measured.method.prior
        if entry is None:
            return Problem(model), values
        start = model.start(control)
        control.check()
        evidence = None
        sigma = 0.0
        if entry.is_open(values):
            evidence = self._evidence
            sigma = evidence.sigma
        control.check()
        hessian = model.mean_hessian(start[1])
        setting = Setting(self.part.mask, self.part.side, sigma, hessian, self.device)
        prior, chosen = entry.build(values, setting)
        control.check()
        if evidence is not None and sigma and entry.weight_is_open(values):
            model = WithinNoise(model, start, evidence, hessian, self.part.mask)
        return Problem(model, prior, start), chosen

    def _finish(
        self, solution: Solution, values: Mapping[str, Any], clock: Clock
    ) -> Reconstruction:
        pictures = pictures_of(
            self.part.mask,
            self.measured.conditions.correct_frames(self.capture.images)
            if self.capture.is_color
            else None,
            self.lights,
            self.model,
            solution,
            self.measured.scale,
            colors=self.colors,
        )
        return self.result(
            pictures, values, clock, history=solution.history, arrays=solution.arrays()
        )

    def result(
        self, pictures: Pictures, values: Mapping[str, Any], clock: Clock, **facts: Any
    ) -> Reconstruction:
        """Return the result with these pictures of the whole capture; ``facts`` are further fields of it."""
        capture = self.capture
        mask = np.asarray(self.capture.mask)
        truth = self.capture.truth
        if (
            "spread" in pictures.maps
        ):  # single pixels know neither the surface nor what photographs share
            spread = pictures.maps["spread"]
            factor = factor_of_detail(pictures.normals, mask) * factor_of_many(len(capture))
            np.multiply(spread, np.float32(factor), out=spread)
            if len(capture) == 3:  # without a residual, the spread means nothing
                spread[mask] = error_of_three(capture.lights.directions)
        result = Reconstruction(
            **pictures._asdict(),
            mask=mask,
            method=self.measured.method.name,
            parameters=dict(values),
            capture=capture.name,
            digest=self.digest(),
            angular_error=None if truth is None else summarize_error(pictures.normals, truth, mask),
            versions={**versions(), **self.device.facts()},
            strengths=self.measured.conditions.factors,
            **facts,
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
    sample: Part | None = None,
    control: Control = SILENT,
    **parameters: Any,
) -> Prepared:
    """Reduce the photographs to the model's statistics once, for many calls of :func:`photostereo.solve`.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    method, prior, device, strengths
        As in :func:`photostereo.solve`.
    sample : Part, optional
        Keep only these pixels.
    control : Control
        Progress and cancellation.
    **parameters
        Parameters of the method. Only those of the reflectance model matter; those of the prior are ignored.
    """
    entry, _ = method_for(capture, method, prior)
    return prepare_planned(
        capture,
        entry,
        entry.of_model(entry.resolve(parameters)),
        device_for(entry, device),
        strengths=strengths,
        sample=sample,
        control=control,
    )


@in_full_precision
def prepare_planned(
    capture: Capture,
    entry: Method,
    values: dict[str, Any],
    where: Device,
    *,
    strengths: str = "auto",
    sample: Part | None = None,
    control: Control = SILENT,
) -> Prepared:
    """Do the same as :func:`prepare`, with everything looked up.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    entry : Method
        The method.
    values : dict
        All parameters of the method's model, checked.
    where : Device
        Where to compute.
    strengths, sample, control
        As in :func:`prepare`.
    """
    shorten_spinning()  # before the compiled kernels load OpenMP
    clock = Clock()
    if sample is None:
        part = Part.rows(capture.mask)
        digest: Callable[[], str] = partial(str, capture.digest)
        capture.require_light()
        seen = intensities(capture, where, colors=entry.sees_colors)
    else:
        part = sample
        small = Crop(capture.mask, SMALL) if entry.model.surveys else None
        seen, digest, images = _read_sample(
            capture, sample, where, control, small, colors=entry.sees_colors
        )
    lights = capture.lights_at(part.index)
    pixels = lights.even(seen.pixels)
    colors = seen.colors
    noise = Noise(pixels, lights.matrix, part.mask, lights.amplified)
    conditions = measure_conditions(
        noise, strengths=strengths, model_needs_noise="noise" in entry.model.sees
    )
    measured = Measured(entry, values, seen.scale, conditions)
    if sample is not None and small is not None:
        measured = replace(measured, facts=_survey(measured, capture, small, images, control))
    clock.lap("prepare")
    model = measured.model_of(part, lights, pixels, colors)
    if conditions.corrects:
        noise = Noise(pixels, lights.matrix, part.mask, lights.amplified)
    clock.lap("statistics")
    if sample is None and not where.uses_torch:
        colors = None  # on the CPU the photographs are read again
    held = [noise] if entry.has_prior else []
    return Prepared(measured, capture, part, lights, model, where, digest, clock.laps, held, colors)


def _read_sample(
    capture: Capture,
    sample: Part,
    device: Device,
    control: Control,
    small: Crop | None,
    *,
    colors: bool,
) -> tuple[Intensities, Callable[[], str], list[NDArray[np.float32]]]:
    """Read every photograph once; return the intensities of a sample, the digest of the capture once it is known, and
    small photographs."""
    spread = np.flatnonzero(capture.mask)[:: max(1, capture.pixel_count // SAMPLED_PIXELS)]
    brightness = np.empty((len(capture), spread.size), dtype=np.float32)
    pixels = np.empty((sample.index.size, len(capture)), dtype=np.float32)
    tinted = np.empty((*pixels.shape, 3), dtype=np.float32) if colors and capture.is_color else None
    hashes = []
    images = []
    capture.photographs.keep_decoded()
    control.stage("survey", len(capture))
    ahead = max(1, processors() // 2)
    pool = ThreadPoolExecutor(ahead)
    try:
        for number, frame in enumerate(capture.photographs.frames(control)):
            hashes.append(pool.submit(hash_of, frame))
            brightness[number] = gray_of(frame, spread)
            pixels[:, number] = gray_of(frame, sample.index)
            if tinted is not None:
                tinted[:, number] = frame.reshape(-1, 3)[sample.index]
            if small is not None:
                images.append(small.shrink(frame)[small.mask])
            if number >= ahead and not capture.in_memory:
                hashes[number - ahead].result()  # limits the photographs waiting
            control.advance()
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown(wait=False)  # what is in memory is hashed while the capture is solved
    if not brightness.any():
        capture.require_light()
    scale = float(np.percentile(brightness, 99))
    scale = scale if scale > 0 else 1.0
    for found in (pixels, tinted):
        if found is not None:
            found /= np.float32(scale)
    seen = Intensities(device.put(pixels), scale, None if tinted is None else device.put(tinted))
    shape = capture.photographs.shape
    directions = capture.lights.directions
    mask = np.asarray(capture.mask)
    return (
        seen,
        lambda: digest_of(shape, (job.result() for job in hashes), directions, mask),
        images,
    )


def _survey(
    measured: Measured,
    capture: Capture,
    small: Crop,
    images: Sequence[NDArray[np.float32]],
    control: Control,
) -> Facts | None:
    """Let the model look at small photographs of the whole object."""
    colors = np.stack(images, 1) / np.float32(measured.scale)
    frame = capture.frame
    lights = PixelLights(capture.lights.matrix)
    if capture.lights.is_near:  # at the centers of the small pixels
        rows, columns = np.indices(frame, dtype=np.float32)
        down, right = (small.shrink(part)[small.mask, 0] for part in (rows, columns))
        lights = capture.lights.over(down, right, frame)
    measured.conditions.correct(lights.even(colors))
    overview = Overview(
        pixels=gray_from_rgb(colors),
        lights=lights.matrix,
        mask=small.mask,
        full_mask=capture.mask,
        colors=colors if capture.is_color else None,
    )
    model: type[Model] = measured.method.model.kind
    return model.survey(overview, control.unreported(), **measured.values)


def device_for(entry: Method, name: str) -> Device:
    """Return the device of that name if the method runs on it."""
    device = find_device(name)
    if device.uses_torch and not entry.model.on_gpu:
        able = ", ".join(other for other in method_names() if find_method(other).model.on_gpu)
        raise ParameterError(
            f"Method {entry.name} does not run on {name}, only on the CPU. Leave the device out, "
            f"or choose one of {able}.",
            code="method-not-on-device",
            method=entry.name,
            device=name,
            able=able,
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
