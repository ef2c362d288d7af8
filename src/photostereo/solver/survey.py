"""One look at all photographs of a large capture, and what their sample teaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.capture.capture import SAMPLED_PIXELS, gray_of
from photostereo.core.control import SILENT, Control, Iteration
from photostereo.diagnosis.noise_table import PixelNoise
from photostereo.photographs.digest import digest_of, hash_of
from photostereo.priors.protocol import Domain, Lesson
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import CPU, Array, Device
from photostereo.solver.compose import compose
from photostereo.solver.conditions import Conditions, measure_conditions
from photostereo.solver.methods import Method
from photostereo.solver.prepared import also_seen
from photostereo.solver.sample import Sample
from photostereo.solver.within_noise import NoiseEvidence


@dataclass(frozen=True, eq=False)
class Survey:
    """What one look at all photographs gives.

    Attributes
    ----------
    scale : the brightness scale of :meth:`Capture.intensity_scale`
    pixels, colors : (N, d) intensities of the sample, divided by the scale; (N, d, 3) if the model sees them
    digest : that of :attr:`Capture.digest`
    conditions : noise and light strengths, measured on the sample; its pixels are corrected already
    noise : of each pixel of the sample, if the model needs it
    truth : (N, 3) true normals of the sample, if they are known
    """

    scale: float
    pixels: NDArray[np.float32]
    digest: str
    conditions: Conditions = field(default_factory=Conditions)
    noise: PixelNoise | None = None
    colors: NDArray[np.float32] | None = None
    truth: NDArray[Any] | None = None


def take_survey(
    capture: Capture,
    sample: Sample,
    control: Control = SILENT,
    *,
    strengths: str = "given",
    sees: Sequence[str] = (),
) -> Survey:
    """Look at every photograph once."""
    spread = np.flatnonzero(capture.mask)[:: max(1, capture.pixel_count // SAMPLED_PIXELS)]
    brightness = np.empty((len(capture), spread.size), dtype=np.float32)
    pixels = np.empty((sample.index.size, len(capture)), dtype=np.float32)
    colors = None
    if capture.is_color and "colors" in sees:
        colors = np.empty((*pixels.shape, 3), dtype=np.float32)
    hashes = []
    control.stage("survey", len(capture))
    with ThreadPoolExecutor(max_workers=1) as pool:
        for number, frame in enumerate(capture.photographs.frames()):
            hashes.append(pool.submit(hash_of, frame))
            brightness[number] = gray_of(frame, spread)
            pixels[:, number] = gray_of(frame, sample.index)
            if colors is not None:
                colors[:, number] = frame.reshape(-1, 3)[sample.index]
            if number:
                hashes[number - 1].result()  # no more than two photographs wait
            control.advance()
    scale = float(np.percentile(brightness, 99))
    scale = scale if scale > 0 else 1.0
    pixels /= np.float32(scale)
    if colors is not None:
        colors /= np.float32(scale)
    digest = digest_of(
        capture.photographs.shape,
        (h.result() for h in hashes),
        capture.lights.directions,
        np.asarray(capture.mask),
    )
    lights = capture.lights.matrix
    conditions = measure_conditions(
        pixels, lights, sample.mask, strengths=strengths, model_needs_noise="noise" in sees
    )
    noise = conditions.noise_of(sees, pixels)
    conditions.correct(pixels)
    if colors is not None:
        conditions.correct(colors)
    truth = None if capture.truth is None else capture.truth.reshape(-1, 3)[sample.index]
    return Survey(scale, pixels, digest, conditions, noise, colors, truth)


@dataclass(frozen=True, eq=False)
class Learned:
    """What the sample taught: all parameters, the model of the sample, and the prior's lesson of every iteration.

    ``bound`` is the noise and the mean Hessian that a prior of automatic strength has to stay within, ``share`` how
    much of its shift is kept.
    """

    values: dict[str, Any]
    model: Model
    lessons: Sequence[Lesson] = ()
    iterations: int = 0
    history: tuple[Iteration, ...] = ()
    arrays: Mapping[str, NDArray[Any]] | None = None
    bound: tuple[NoiseEvidence, NDArray[Any]] | None = None
    share: float = 1.0


def learn(
    entry: Method,
    values: Mapping[str, Any],
    sample: Sample,
    survey: Survey,
    lights: Any,
    control: Control,
    device: Device = CPU,
) -> Learned:
    """Measure the noise on the sample, choose the strengths, and let the prior learn."""
    pixels = device.put(survey.pixels)
    colors = None if survey.colors is None else device.put(survey.colors)
    options = {**entry.of_model(values), **also_seen(entry, sample.mask, colors, survey.noise)}
    model = entry.model.build(pixels, lights, **options)
    if entry.prior is None:
        return Learned(dict(values), model)

    def again(other: Array) -> Model:
        return entry.model.build(other, lights, **options)

    def evidence() -> NoiseEvidence:
        return NoiseEvidence.of(model, pixels, lights, sample.mask, again)

    composed = compose(
        model, entry.prior, values, Domain(sample.mask, sample.side), evidence, control, device
    )
    chosen = composed.values
    solution = composed.problem.solve(
        max_iter=chosen["max_iter"],
        tol=chosen["tol"],
        control=control,
        truth=survey.truth,
        keep_lessons=True,
    )
    return Learned(
        chosen,
        model,
        solution.lessons,
        solution.iterations,
        solution.history,
        solution.arrays(),
        composed.bound,
        solution.share,
    )
