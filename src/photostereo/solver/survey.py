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
from photostereo.priors.entry import Setting
from photostereo.priors.protocol import Domain, Lesson
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import CPU, Array, Device
from photostereo.solver.conditions import Conditions, measure_conditions
from photostereo.solver.methods import Method
from photostereo.solver.prepared import also_seen
from photostereo.solver.problem import Problem
from photostereo.solver.sample import Sample
from photostereo.solver.within_noise import NoiseEvidence, WithinNoise


@dataclass(frozen=True, eq=False)
class Survey:
    """What one look at all photographs gives.

    Attributes
    ----------
    scale : the brightness scale of :meth:`Capture.intensity_scale`
    pixels : (N, d) intensities of the sample, divided by the scale
    digest : that of :attr:`Capture.digest`
    conditions : noise and light strengths, measured on the sample; its pixels are corrected already
    noise : of each pixel of the sample, if the model needs it
    """

    scale: float
    pixels: NDArray[np.float32]
    digest: str
    conditions: Conditions = field(default_factory=Conditions)
    noise: PixelNoise | None = None


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
    hashes = []
    control.stage("survey", len(capture))
    with ThreadPoolExecutor(max_workers=1) as pool:
        for number, frame in enumerate(capture.photographs.frames()):
            hashes.append(pool.submit(hash_of, frame))
            brightness[number] = gray_of(frame, spread)
            pixels[:, number] = gray_of(frame, sample.index)
            if number:
                hashes[number - 1].result()  # no more than two photographs wait
            control.advance()
    scale = float(np.percentile(brightness, 99))
    scale = scale if scale > 0 else 1.0
    pixels /= np.float32(scale)
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
    return Survey(scale, conditions.correct(pixels), digest, conditions, noise)


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
    # The sample is kept in gray; a model that looks at neighbors is told where its pixels lie.
    beyond = also_seen(entry, sample.mask, None, survey.noise)
    options = {**entry.of_model(values), **beyond}
    model = entry.model.build(pixels, lights, **options)
    if entry.prior is None:
        return Learned(dict(values), model)

    def again(other: Array) -> Model:
        return entry.model.build(other, lights, **options)

    start, evidence, noise = model.start(control), None, 0.0
    hessian = model.mean_hessian(start[1])
    if entry.prior.is_open(values):
        evidence = NoiseEvidence.of(model, pixels, lights, sample.mask, again)
        noise = evidence.sigma
    setting = Setting(Domain(sample.mask, sample.side), noise, hessian, device)
    prior, chosen = entry.prior.build(values, setting)
    control.stage("prior", 1)
    bound = (
        (evidence, hessian) if evidence is not None and entry.prior.weight_is_open(values) and noise else None
    )
    bounded = model if bound is None else WithinNoise(model, start, *bound)
    solution = Problem(bounded, prior, start, device=device).solve(
        max_iter=chosen["max_iter"], tol=chosen["tol"], control=control, keep_lessons=True
    )
    return Learned(
        chosen,
        model,
        solution.lessons,
        solution.iterations,
        solution.history,
        solution.arrays(),
        bound,
        solution.share,
    )
