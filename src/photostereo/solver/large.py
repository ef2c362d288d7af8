"""Large captures: surveyed once, learned on a sample, solved band by band within any memory.

1. **Survey**, photograph by photograph: the brightness scale, the intensities of the sample, the digest.
2. **Learn** on the sample: the noise, the strengths of the prior, its state after every iteration, and the share of its
   shift that is worth keeping.
3. **Solve** every band with what was learned, iteration by iteration. In iteration t of a band, each atom of a dictionary
   is replaced by what the sample made of it in iteration t, at the moment when it would have been learned. A dictionary
   that is final from the start does much worse (13.4° against 11.4° on cat at 5 dB): codes and atoms must grow together.

Least squares alone needs no bands: it keeps three sums per pixel of the photographs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.capture.capture import gray_of
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import summarize_error
from photostereo.io.memory import available_memory
from photostereo.photographs.digest import digest_of, hash_of
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.runtime.arrays import CPU, Device, in_full_precision, memory_in_words
from photostereo.runtime.threads import shorten_spinning
from photostereo.solver.bands import STEPS_OF_A_BAND, SolvedBand, Within, looks_at_colors, solve_band
from photostereo.solver.choice import DEFAULT_METHOD
from photostereo.solver.conditions import measure_conditions
from photostereo.solver.finish import pictures_of, versions
from photostereo.solver.methods import Method, method_for
from photostereo.solver.prepared import Clock, device_for
from photostereo.solver.problem import Problem
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.sample import CROPS, SAMPLE_PIXELS, choose_sample
from photostereo.solver.survey import Learned, Survey, learn, take_survey
from photostereo.solver.tiles import Band, bytes_for_sums, bytes_in_whole, plan_bands

#: Solves bands with what was learned, in any order: see :mod:`photostereo.batch.tiles`.
Deal = Callable[[Capture, Sequence[Band], Learned, Survey], Iterable[tuple[Band, SolvedBand]]]
#: Times the memory of compiled loops that a band takes on a GPU, where every line makes an array of all pixels.
TEMPORARIES = 3


def fits_on(device: Device, capture: Capture, method: Method, memory: int) -> bool:
    """Whether a solve in one go needs at most ``memory`` bytes of the computer, or fits into a GPU's own memory.

    A method that cannot be solved in parts is tried on a GPU in any case: its own error says what to do.
    """
    if not device.torch_name.startswith("cuda"):
        return fits(capture, method, memory)
    return not method.model.divisible or fits(capture, method, bytes_for_bands(device))


def bytes_for_bands(device: Device, memory: int | None = None) -> int:
    """The bytes that one band may take of ``memory``, by default of half of what is free."""
    budget = _free_memory(device) // 2 if memory is None else memory
    return budget // TEMPORARIES if device.uses_torch else budget


def fits(capture: Capture, method: Method, memory: int) -> bool:
    """Whether a solve in one go needs at most ``memory`` bytes."""
    channels = 3 if capture.is_color else 1
    need = bytes_in_whole(
        capture.frame,
        len(capture),
        channels,
        prior=method.has_prior,
        colors=looks_at_colors(capture, method),
        workspace=method.model.workspace,
    )
    return need <= memory


def needs_tiles(capture: Capture, method: Method, device: Device, memory: int | None = None) -> bool:
    """Whether a capture is solved in tiles: its prior learns on a sample of the pixels, or the memory is too small.

    A prior learns on all pixels of an object that has no more than the sample would have.
    """
    if not method.model.divisible:
        return False
    if memory is not None and not fits_on(device, capture, method, memory):
        return True
    if capture.pixel_count <= SAMPLE_PIXELS:
        return False
    return method.has_prior or not fits_on(device, capture, method, _free_memory(CPU) // 2)


@memory_in_words
@in_full_precision
def solve_large(
    capture: Capture,
    method: str | Method = DEFAULT_METHOD,
    *,
    prior: str | None = None,
    memory: int | None = None,
    crops: int = CROPS,
    deal: Deal | None = None,
    device: str = "cpu",
    control: Control = SILENT,
    strengths: str = "auto",
    **parameters: Any,
) -> Reconstruction:
    """Normals and albedo of a capture in tiles: :func:`photostereo.solve` for captures that are large.

    Parameters
    ----------
    capture : Capture
        One that :func:`photostereo.load` read with ``lazy=True``; one in memory will do.
    method, prior, parameters
        As for :func:`photostereo.solve`. Not ``rpca``, which sees all pixels at once.
    memory : int, optional
        Bytes that may be used, on a GPU of its own memory; by default half of what is free. It decides the bands, not
        the result.
    crops : int
        Crops of 32 × 32 pixels that the prior learns on, or all if there are fewer.
    deal : callable, optional
        Solves the bands, in any order and place; by default here, one after the other.
    device, strengths : str
        As for :func:`photostereo.solve`.

    Returns
    -------
    Reconstruction
        If there are several bands, without the maps that hold a number for every photograph.

    Raises
    ------
    ParameterError
        If even the smallest band does not fit, or the method cannot be solved in parts.

    Examples
    --------
    >>> import photostereo as ps
    >>> scene = ps.render_scene("sphere", size=64)
    >>> result = solve_large(scene, "ls")
    >>> bool(np.abs(result.normals - ps.solve(scene, "ls").normals).max() < 1e-5)
    True
    """
    shorten_spinning()  # before the compiled kernels bring OpenMP
    entry, why = method_for(capture, method, prior)
    values = entry.resolve(parameters)
    where = device_for(entry, device)
    budget = _free_memory(where) // 2 if memory is None else memory
    bands = bands_of(capture, entry, values, bytes_for_bands(where, budget))
    sums = bytes_for_sums(capture.frame, capture.pixel_count, 3 if capture.is_color else 1)
    if entry.model.from_frames and not entry.has_prior and sums <= budget and not where.uses_torch:
        return _least_squares(capture, entry, control, strengths)
    capture.photographs.keep_decoded()
    clock = Clock()
    lights = capture.lights.matrix
    sample = choose_sample(capture.mask, crops=crops)
    survey = take_survey(capture, sample, control, strengths=strengths, sees=entry.model.sees)
    clock.lap("survey")
    learned = learn(entry, values, sample, survey, lights, control, where)
    clock.lap("learn")
    normals = np.zeros((*capture.frame, 3), dtype=np.float32)
    albedo = np.zeros(capture.photographs.shape[1:], dtype=np.float32)
    maps: dict[str, NDArray[np.float32]] = {}
    control.stage("bands", len(bands) * STEPS_OF_A_BAND)
    iterations, ends = 0, {"closed form"}
    solved: Iterable[tuple[Band, SolvedBand]]
    if deal is None:
        solved = _one_by_one(capture, entry, bands, learned, survey, control, where)
    else:
        taught = replace(survey, pixels=survey.pixels[:0], noise=None, colors=None, truth=None)
        solved = deal(capture, bands, learned, taught)
    for band, found in solved:
        own = slice(band.own_first, band.own_last)
        normals[own], albedo[own] = found.normals, found.albedo
        for name, rows in found.maps.items():
            if name not in maps:
                maps[name] = np.zeros((*capture.frame, *rows.shape[2:]), dtype=np.float32)
            maps[name][own] = rows
        iterations = max(iterations, found.iterations)
        ends.add(found.status)
        if deal is not None:
            control.advance(STEPS_OF_A_BAND)
    clock.lap("solve")
    return _result(
        capture,
        normals,
        albedo,
        method=entry.name,
        parameters=learned.values,
        digest=survey.digest,
        status=max(ends, key=("closed form", "converged", "iterations").index),
        iterations=iterations,
        seconds=clock.laps,
        history=learned.history,
        maps=maps,
        arrays=learned.arrays or {},
        chosen=why,
        device=where,
        strengths=survey.conditions.factors,
    )


def bands_of(capture: Capture, entry: Method, values: Mapping[str, Any], memory: int) -> list[Band]:
    """The bands in which a capture is solved within ``memory`` bytes.

    Raises
    ------
    ParameterError
        If even the smallest band does not fit, or the method cannot be solved in parts.
    """
    if not entry.model.divisible:
        raise ParameterError(
            f"{entry.name} compares all pixels and cannot be solved in parts. Use another method.",
            code="method-not-divisible",
            remedy="more-memory",
            method=entry.name,
        )
    present = np.flatnonzero(capture.mask.any(axis=1))
    return plan_bands(
        capture.frame,
        len(capture),
        3 if capture.is_color else 1,
        memory,
        prior=entry.has_prior,
        colors=looks_at_colors(capture, entry),
        sums=entry.model.joins,
        workspace=entry.model.workspace,
        neighbors="mask" in entry.model.sees,
        step=values[entry.prior.aligned_to] if entry.prior and entry.prior.aligned_to else 1,
        rows=(int(present[0]), int(present[-1]) + 1),
    )


def _one_by_one(
    capture: Capture,
    entry: Method,
    bands: Sequence[Band],
    learned: Learned,
    survey: Survey,
    control: Control,
    device: Device,
) -> Iterator[tuple[Band, SolvedBand]]:
    for band in bands:
        inside = Within(control, STEPS_OF_A_BAND)
        yield band, solve_band(capture, entry, learned, survey, band, inside, device)
        inside.end()


def _free_memory(device: Device) -> int:
    """Of the GPU, or of the computer."""
    if not device.torch_name.startswith("cuda"):
        return available_memory()
    import torch

    return int(torch.cuda.mem_get_info(device.torch_name)[0])


def _result(
    capture: Capture,
    normals: NDArray[np.float32],
    albedo: NDArray[np.float32],
    *,
    device: Device = CPU,
    **facts: Any,
) -> Reconstruction:
    mask, truth = np.asarray(capture.mask), capture.truth
    return Reconstruction(
        normals=normals,
        albedo=albedo,
        mask=mask,
        capture=capture.name,
        angular_error=None if truth is None else summarize_error(normals, truth, mask),
        versions={**versions(), **device.facts()},
        **facts,
    )


def _least_squares(capture: Capture, entry: Method, control: Control, strengths: str) -> Reconstruction:
    """Every photograph is read once, again if their strengths have to be corrected, and in color once for the tint."""
    clock = Clock()
    mask, index = np.asarray(capture.mask), np.flatnonzero(capture.mask)
    lights = capture.lights.matrix
    sample = choose_sample(mask)
    pixels = np.empty((sample.index.size, len(capture)), dtype=np.float32)
    hashes: list[bytes] = []

    def read_first() -> Iterator[NDArray[np.float32]]:
        control.stage("photographs", len(capture))
        for number, frame in enumerate(capture.photographs.frames()):
            hashes.append(hash_of(frame))
            pixels[:, number] = gray_of(frame, sample.index)
            yield gray_of(frame, index)
            control.advance()

    def read_again() -> Iterator[NDArray[np.float32]]:
        control.stage("strengths", len(capture))
        for frame in conditions.correct_frames(capture.photographs.frames()):
            yield gray_of(frame, index)
            control.advance()

    model = Lambertian.from_frames(read_first(), lights)
    conditions = measure_conditions(pixels, lights, sample.mask, strengths=strengths, model_needs_noise=False)
    if conditions.corrects:
        model = Lambertian.from_frames(read_again(), lights)
    clock.lap("statistics")
    solution = Problem(model).solve()
    frames = conditions.correct_frames(capture.photographs.frames()) if capture.is_color else ()
    normals, albedo = pictures_of(
        mask, frames, capture.lights.directions, model, solution, 1.0, color=capture.is_color
    )
    clock.lap("solve")
    return _result(
        capture,
        normals,
        albedo,
        method=entry.name,
        parameters={},
        digest=digest_of(capture.photographs.shape, hashes, capture.lights.directions, mask),
        status=solution.status,
        seconds=clock.laps,
        strengths=conditions.factors,
    )
