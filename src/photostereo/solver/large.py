"""Captures larger than memory: surveyed once, learned on a sample, solved band by band.

1. **Survey**, photograph by photograph: the brightness scale, the intensities of the sample, the digest.
2. **Learn** on the sample: λ and μ, the noise, and the dictionary. Its whole history is kept.
3. **Solve** every band with what was learned. In pass t of a band, each atom is replaced by what the sample
   made of it in pass t, at the moment when it would have been learned. A dictionary that is final from the
   beginning does much worse (13.4° against 11.4° on cat at 5 dB): the codes and the atoms have to grow together.

Least squares alone needs no bands: three sums a pixel are kept of the photographs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.backend import CPU
from photostereo.capture.capture import SAMPLED_PIXELS, digest_of, gray_of, hash_of
from photostereo.capture.large import LargeCapture
from photostereo.conventions import gray_from_rgb
from photostereo.errors import ParameterError
from photostereo.files.memory import available_memory
from photostereo.monitor import SILENT, Iteration, Monitor
from photostereo.priors.dictionary.automatic import choose_strength
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.quality.metrics import summarise_error
from photostereo.reconstruction import Reconstruction
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.model import Model
from photostereo.reflectance.within_noise import WithinNoise, noise_to
from photostereo.solver.finish import pictures_of, versions
from photostereo.solver.methods import DEFAULT_METHOD, Method, find_method
from photostereo.solver.prepared import Clock
from photostereo.solver.problem import Problem
from photostereo.solver.sample import Sample, choose_sample
from photostereo.solver.tiles import READ_AT_A_TIME, Band, bytes_in_whole, plan_bands, require_for_sums
from photostereo.threads import shorten_spinning

#: Pixels that are transposed at a time.
BLOCK = 4096
#: Models that see all pixels at once: they cannot be solved in parts.
UNDIVIDED = ("rpca",)


@dataclass(frozen=True, eq=False)
class Survey:
    """What one look at all photographs gives.

    Attributes
    ----------
    scale : the brightness scale of :meth:`Capture.intensity_scale`
    pixels : (N, d) intensities of the sample, divided by the scale
    digest : that of :attr:`Capture.digest`
    """

    scale: float
    pixels: NDArray[np.float32]
    digest: str


def fits(capture: LargeCapture, method: Method, memory: int) -> bool:
    """Whether a solve in one go stays within so many bytes."""
    channels = 3 if capture.is_color else 1
    need = bytes_in_whole(
        capture.frame,
        len(capture),
        channels,
        prior=method.has_prior,
        colours=_looks_at_colours(capture, method),
    )
    return need <= memory


def _looks_at_colours(capture: LargeCapture, method: Method) -> bool:
    return capture.is_color and "colours" in method.model.sees


def take_survey(capture: LargeCapture, sample: Sample, monitor: Monitor = SILENT) -> Survey:
    """Look at every photograph once."""
    spread = np.flatnonzero(capture.mask)[:: max(1, capture.pixel_count // SAMPLED_PIXELS)]
    brightness = np.empty((len(capture), spread.size), dtype=np.float32)
    pixels = np.empty((sample.index.size, len(capture)), dtype=np.float32)
    hashes = []
    monitor.stage("survey", len(capture))
    with ThreadPoolExecutor(max_workers=1) as pool:
        for number, frame in enumerate(capture.photographs.frames()):
            hashes.append(pool.submit(hash_of, frame))
            brightness[number] = gray_of(frame, spread)
            pixels[:, number] = gray_of(frame, sample.index)
            if number:
                hashes[number - 1].result()  # no more than two photographs wait
            monitor.advance()
    scale = float(np.percentile(brightness, 99))
    scale = scale if scale > 0 else 1.0
    pixels /= np.float32(scale)
    digest = digest_of(
        capture.photographs.shape, (h.result() for h in hashes), capture.lights, np.asarray(capture.mask)
    )
    return Survey(scale, pixels, digest)


@dataclass(frozen=True, eq=False)
class Learned:
    """What the sample taught: all parameters, the model of the sample, and the atoms after every pass.

    ``bound`` is the noise and the mean Hessian that a prior of automatic strength has to stay within, ``share`` how
    much of its shift is kept.
    """

    values: dict[str, Any]
    model: Model
    follows: list[NDArray[Any]]
    history: tuple[Iteration, ...] = ()
    arrays: Mapping[str, NDArray[Any]] | None = None
    bound: tuple[float, NDArray[Any]] | None = None
    share: float = 1.0


def learn(
    entry: Method, values: Mapping[str, Any], sample: Sample, survey: Survey, lights: Any, monitor: Monitor
) -> Learned:
    """Measure noise and strengths on the sample and learn its dictionary."""
    # The sample is kept in gray; a model that looks at neighbours is told where its pixels lie.
    beyond = {"mask": sample.mask} if "mask" in entry.model.sees else {}
    model = entry.model.build(survey.pixels, lights, **entry.of_model(values), **beyond)
    if entry.prior is None:
        return Learned(dict(values), model, [])
    noise = noise_to(model, survey.pixels, lights, sample.mask)
    start = model.start(monitor)
    hessian = model.mean_hessian(start[1])
    settled = dict(values)
    if values["lam"] is None or values["mu"] is None:
        # As if the crops had neighbours: every pixel of a large picture lies in so many patches.
        cover = values["patch"][0] * values["patch"][1] / values["stride"] ** 2
        lam, mu = choose_strength(noise, hessian, cover=cover)
        settled["lam"] = lam if values["lam"] is None else values["lam"]
        settled["mu"] = mu if values["mu"] is None else values["mu"]
    grid = PatchGrid.of_crops(sample.mask, sample.side, size=values["patch"], stride=values["stride"])
    prior, _ = entry.prior.build(grid, settled, noise, np.eye(3), CPU)  # type: ignore[arg-type]
    prior.keep_atoms()
    monitor.stage("dictionary", 1)
    bound = (noise, hessian) if values["lam"] is None and noise else None
    bounded = model if bound is None else WithinNoise(model, start, *bound)
    solution = Problem(bounded, prior, settled["lam"], start).solve(
        max_iter=settled["max_iter"], tol=settled["tol"], monitor=monitor
    )
    return Learned(settled, model, prior.learned, solution.history, solution.facts(), bound, solution.share)


def solve_large(
    capture: LargeCapture,
    method: str | Method = DEFAULT_METHOD,
    *,
    prior: str | None = None,
    memory: int | None = None,
    monitor: Monitor = SILENT,
    **parameters: Any,
) -> Reconstruction:
    """Normals and albedo of a capture whose photographs do not fit into memory.

    Parameters
    ----------
    capture : LargeCapture
        See :func:`photostereo.capture.load_lazily`.
    method, prior, parameters
        As for :func:`photostereo.solve`. Not ``rpca``, which sees all pixels at once.
    memory : int, optional
        Bytes that may be used; half of what is free where missing. It decides the bands, not the result.

    Returns
    -------
    Reconstruction
        Without the maps that hold a number for every photograph.

    Raises
    ------
    ParameterError
        If even the smallest band does not fit, or the method cannot be solved in parts.

    Examples
    --------
    >>> import photostereo as ps
    >>> from photostereo.capture import LargeCapture
    >>> scene = ps.render_scene("sphere", size=64)
    >>> result = solve_large(LargeCapture.of(scene), "ls")
    >>> bool(np.abs(result.normals - ps.solve(scene, "ls").normals).max() < 1e-5)
    True
    """
    shorten_spinning()  # before the compiled kernels bring OpenMP
    entry = find_method(method, prior)
    values = entry.resolve(parameters)
    if entry.model.name in UNDIVIDED:
        raise ParameterError(
            f"{entry.name} sees all pixels at once and cannot be solved in parts. Use another method, allow more "
            "memory (--memory), or look at a part (--crop) or at a lower resolution (--scale)."
        )
    budget = available_memory() // 2 if memory is None else memory
    channels = 3 if capture.is_color else 1
    if entry.name == "ls":
        require_for_sums(capture.frame, capture.pixel_count, channels, budget)
        return _least_squares(capture, entry, monitor)
    present = np.flatnonzero(capture.mask.any(axis=1))
    bands = plan_bands(
        capture.frame,
        len(capture),
        channels,
        budget,
        prior=entry.has_prior,
        colours=_looks_at_colours(capture, entry),
        step=values.get("stride", 1),
        rows=(int(present[0]), int(present[-1]) + 1),
    )
    capture.photographs.keep_decoded()
    clock = Clock()
    lights = np.ascontiguousarray(capture.lights.T)
    sample = choose_sample(capture.mask)
    survey = take_survey(capture, sample, monitor)
    clock.lap("survey")
    learned = learn(entry, values, sample, survey, lights, monitor)
    clock.lap("learn")
    normals = np.zeros((*capture.frame, 3), dtype=np.float32)
    albedo = np.zeros(capture.photographs.shape[1:], dtype=np.float32)
    steps = len(learned.follows) or 1
    monitor.stage("bands", len(bands) * steps)
    iterations = 0
    for band in bands:
        inside = _Within(monitor)
        found = _solve_band(capture, entry, learned, survey, band, (normals, albedo), inside)
        iterations = max(iterations, found)
        monitor.advance(steps - inside.done)
    clock.lap("solve")
    return _result(
        capture,
        normals,
        albedo,
        method=entry.name,
        parameters=learned.values,
        digest=survey.digest,
        status="iterations" if iterations else "closed form",
        iterations=iterations,
        seconds=clock.laps,
        history=learned.history,
        arrays=learned.arrays or {},
    )


def _result(
    capture: LargeCapture, normals: NDArray[np.float32], albedo: NDArray[np.float32], **facts: Any
) -> Reconstruction:
    mask, truth = np.asarray(capture.mask), capture.truth
    return Reconstruction(
        normals=normals,
        albedo=albedo,
        mask=mask,
        capture=capture.name,
        angular_error=None if truth is None else summarise_error(normals, truth, mask),
        versions={**versions(), **CPU.facts()},
        **facts,
    )


def _least_squares(capture: LargeCapture, entry: Method, monitor: Monitor) -> Reconstruction:
    """One look at every photograph; in colour a second one, for the tint of the albedo."""
    clock = Clock()
    index = np.flatnonzero(capture.mask)
    hashes: list[bytes] = []

    def looked_at() -> Iterator[NDArray[np.float32]]:
        monitor.stage("photographs", len(capture))
        for frame in capture.photographs.frames():
            hashes.append(hash_of(frame))
            yield gray_of(frame, index)
            monitor.advance()

    model = Lambertian.from_frames(looked_at(), np.ascontiguousarray(capture.lights.T))
    clock.lap("statistics")
    solution = Problem(model).solve()
    mask = np.asarray(capture.mask)
    frames = capture.photographs.frames() if capture.is_color else ()
    normals, albedo = pictures_of(mask, frames, capture.lights, model, solution, 1.0, color=capture.is_color)
    clock.lap("solve")
    return _result(
        capture,
        normals,
        albedo,
        method=entry.name,
        parameters={},
        digest=digest_of(capture.photographs.shape, hashes, capture.lights, mask),
        status=solution.status,
        seconds=clock.laps,
    )


class _Within(Monitor):
    """Steps of a band, told as steps of the whole."""

    def __init__(self, whole: Monitor) -> None:
        self.whole, self.done = whole, 0

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        self.whole.advance(steps)


def pixels_of_band(
    capture: LargeCapture, band: Band, scale: float, *, colours: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Gray intensities (N, d) of a band's mask pixels divided by ``scale``, and those in colour (N, d, 3) if asked for.

    A few photographs at a time, so that there is never a second copy of them all.
    """
    index = np.flatnonzero(capture.mask[band.first : band.last])
    d = len(capture)
    gray = np.empty((index.size, d), dtype=np.float32)
    tinted = np.empty((index.size, d, 3), dtype=np.float32) if colours else None
    for first in range(0, d, READ_AT_A_TIME):
        some = slice(first, min(first + READ_AT_A_TIME, d))
        frames = capture.photographs.rows(band.first, band.last, some)
        flat = frames.reshape(len(frames), -1, *frames.shape[3:])
        for low in range(0, index.size, BLOCK):
            part = slice(low, low + BLOCK)
            values = flat[:, index[part]]
            if tinted is not None:
                tinted[part, some] = values.swapaxes(0, 1)
            gray[part, some] = (gray_from_rgb(values) if capture.is_color else values).T
    for found in (gray, tinted):
        if found is not None and scale != 1.0:
            found /= np.float32(scale)
    return gray, tinted


def _model_of_band(
    capture: LargeCapture, entry: Method, learned: Learned, survey: Survey, band: Band
) -> Model:
    """The model of a band, with what was measured on the sample; the photographs themselves are let go."""
    mask = np.asarray(capture.mask[band.first : band.last])
    pixels, colours = pixels_of_band(capture, band, survey.scale, colours=_looks_at_colours(capture, entry))
    seen: dict[str, Any] = {"mask": mask} if "mask" in entry.model.sees else {}
    if colours is not None:
        seen["colours"] = colours
    lights = np.ascontiguousarray(capture.lights.T)
    model = entry.model.build(pixels, lights, **entry.of_model(learned.values), **seen)
    model.adopt(learned.model)
    return model


def _solve_band(
    capture: LargeCapture,
    entry: Method,
    learned: Learned,
    survey: Survey,
    band: Band,
    pictures: tuple[NDArray[np.float32], NDArray[np.float32]],
    monitor: Monitor,
) -> int:
    """Solve a band and paste its own rows; the iterations it took."""
    if not capture.mask[band.first : band.last].any():
        return 0
    model = _model_of_band(capture, entry, learned, survey, band)
    mask = np.asarray(capture.mask[band.first : band.last])
    if entry.prior is None:
        solution = Problem(model).solve()
    else:
        start = model.start(SILENT)
        following = {**learned.values, "follows": learned.follows}
        prior, _ = entry.prior.build(mask, following, 0.0, np.eye(3), CPU)
        bounded = model if learned.bound is None else WithinNoise(model, start, *learned.bound)
        problem = Problem(bounded, prior, learned.values["lam"], start, learned.share)
        solution = problem.follow(len(learned.follows), monitor)
    frames = capture.photographs.rows(band.first, band.last) if capture.is_color else ()
    found = pictures_of(mask, frames, capture.lights, model, solution, survey.scale, color=capture.is_color)
    own = slice(band.own_first, band.own_last)
    cut = slice(band.own_first - band.first, band.own_last - band.first)
    for whole, piece in zip(pictures, found, strict=True):
        whole[own] = piece[cut]
    return solution.iterations
