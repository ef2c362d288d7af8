"""Solve one band of a large capture: read its photographs, build its model, apply what the prior learned on the sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.io.memory import give_back_memory
from photostereo.priors.entry import Setting
from photostereo.priors.protocol import Domain
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import CPU, Array, Device, empty
from photostereo.runtime.threads import in_turn, processors
from photostereo.solver.finish import Pictures, pictures_of
from photostereo.solver.prepared import Learned
from photostereo.solver.problem import Problem
from photostereo.solver.sample import Part
from photostereo.solver.tiles import READ_AT_A_TIME, SUMMED_AT_A_TIME, Band
from photostereo.solver.within_noise import WithinNoise

#: Progress steps per band; the share of them completed after reading, and after the model's own answer.
STEPS_OF_A_BAND, READING, STARTING = 100, 0.04, 0.45
#: Maps with more values per pixel are omitted if per-photograph maps would not fit into memory.
MAP_VALUES = 8
#: Pixels transposed at a time, and the multiple of them that each thread processes.
BLOCK, AT_ONCE = 2048, 1 << 17


class SolvedBand(NamedTuple):
    """Pictures of a band's own rows, the number of iterations, and the status."""

    pictures: Pictures
    iterations: int = 0
    status: str = "closed form"


class Within(Control):
    """Report the stages of a band as ``steps`` steps of the whole; each stage has its share of the time."""

    def __init__(self, whole: Control, steps: int) -> None:
        self.whole, self.steps, self.reported = whole, steps, 0
        self.part(0.0, 1.0)

    def part(self, begin: float, end: float, total: int = 1) -> None:
        """Map the steps reported from now on to these shares of the band; ``total`` steps are expected."""
        self.begin, self.share, self.total, self.done = begin, end - begin, total, 0

    def check(self) -> None:
        self.whole.check()

    def on_stage(self, name: str, total: int | None) -> None:
        self.total, self.done = total or 1, 0

    def on_advance(self, steps: int) -> None:
        self.done += steps
        self._report(self.begin + self.share * min(1.0, self.done / self.total))

    def end(self) -> None:
        """Report all remaining steps as done."""
        self._report(1.0)

    def _report(self, share: float) -> None:
        steps = int(self.steps * share)
        if steps > self.reported:
            self.whole.advance(steps - self.reported)
            self.reported = steps


def some_at_a_time(count: int, together: int = READ_AT_A_TIME) -> Iterator[slice]:
    """Yield slices of photographs to read together."""
    for first in range(0, count, together):
        yield slice(first, min(first + together, count))


def frames_of_band(capture: Capture, band: Band) -> Iterator[NDArray[np.float32]]:
    """Yield the rows of a band, one photograph at a time."""
    for some in some_at_a_time(len(capture)):
        yield from capture.photographs.rows(band.first, band.last, some)


def pixels_of_rows(
    capture: Capture,
    first: int,
    last: int,
    scale: float,
    *,
    colors: bool,
    device: Device = CPU,
    control: Control = SILENT,
) -> tuple[Array, Array | None]:
    """Return gray intensities (N, d) of the mask pixels of some rows, divided by ``scale``; optionally color (N, d, 3) too.

    Reads a few photographs at a time, so that there is never a second copy of them all.
    """
    index = np.flatnonzero(capture.mask[first:last])
    if device.uses_torch and not capture.is_color:
        return _gray_on_device(capture, first, last, scale, index, device), None
    d = len(capture)
    gray = np.empty((index.size, d), dtype=np.float32)
    tinted = np.empty((index.size, d, 3), dtype=np.float32) if colors else None
    divisor = np.float32(scale)
    for some in some_at_a_time(d, d if capture.in_memory else READ_AT_A_TIME):
        control.check()
        frames = capture.photographs.rows(first, last, some)
        flat = frames.reshape(len(frames), -1, *frames.shape[3:])

        def transpose(number: int, flat: NDArray[Any] = flat, some: slice = some) -> None:
            for low in range(number * AT_ONCE, min((number + 1) * AT_ONCE, index.size), BLOCK):
                part = slice(low, min(low + BLOCK, index.size))
                values = flat[:, index[part]]
                if tinted is not None:
                    np.divide(values.swapaxes(0, 1), divisor, out=tinted[part, some])
                np.divide(
                    (gray_from_rgb(values) if capture.is_color else values).T, divisor, out=gray[part, some]
                )

        for _ in in_turn(transpose, -(-index.size // AT_ONCE), processors(), control):
            control.check()
    return device.put(gray), None if tinted is None else device.put(tinted)


def _gray_on_device(
    capture: Capture, first: int, last: int, scale: float, index: NDArray[Any], device: Device
) -> Array:
    """Do the same on a GPU, which gathers and transposes faster than the photographs arrive."""
    whole = index.size == (last - first) * capture.frame[1]
    chosen = device.put(index[:0] if whole else index)
    gray = empty((index.size, len(capture)), chosen, "float32")
    for some in some_at_a_time(len(capture)):
        frames = device.put(capture.photographs.rows(first, last, some))
        flat = frames.reshape(len(frames), -1)
        gray[:, some] = (flat if whole else flat[:, chosen]).T
    gray /= device.put(np.asarray(scale, dtype=np.float32))  # by an array: torch multiplies by 1/number
    return gray


def model_of_band(
    capture: Capture, learned: Learned, band: Band, device: Device, control: Control = SILENT
) -> Model:
    """Build the model of a band from the measurements on the sample.

    A model that keeps only sums for each pixel is built from a few rows at a time, so that the photographs can be freed.
    """
    measured, entry = learned.measured, learned.measured.method.model
    looks = capture.is_color and measured.method.sees_colors

    def built(first: int, last: int) -> Model:
        part = Part.rows(capture.mask, first, last)
        pixels, colors = pixels_of_rows(
            capture, first, last, measured.scale, colors=looks, device=device, control=control
        )
        lights = capture.lights_at(part.index)
        lights.even(pixels)
        control.check()
        return measured.model_of(part, lights, pixels, colors, control)

    if entry.joins and not device.uses_torch:
        few = max(1, SUMMED_AT_A_TIME // capture.frame[1])
        rows = [(first, min(first + few, band.last)) for first in range(band.first, band.last, few)]
        model = entry.join([built(*ends) for ends in rows if capture.mask[slice(*ends)].any()])
    else:
        model = built(band.first, band.last)
    model.adopt(learned.model)
    return model


def solve_band(
    capture: Capture, learned: Learned, band: Band, control: Within, device: Device = CPU
) -> SolvedBand:
    """Solve a band on a device and return its own rows."""
    part, prior_entry = Part.rows(capture.mask, band.first, band.last), learned.measured.method.prior
    if not part.index.size:
        shape = (band.own_last - band.own_first, *capture.photographs.shape[2:])
        return SolvedBand(Pictures(np.zeros((*shape[:2], 3), np.float32), np.zeros(shape, np.float32), {}))
    model = model_of_band(capture, learned, band, device, control)
    control.check()
    control.part(READING, 1.0)
    if prior_entry is None:
        solution = Problem(model, device=device).solve(control=control)
    else:
        control.part(READING, STARTING)
        start = model.start(control)
        control.part(STARTING, 1.0, learned.iterations)
        control.check()
        setting = Setting(Domain(part.mask), device=device, lessons=learned.lessons)
        prior, _ = prior_entry.build(learned.values, setting)
        control.check()
        bounded = model if learned.bound is None else WithinNoise(model, start, *learned.bound)
        problem = Problem(bounded, prior, start, share=learned.share, device=device)
        solution = problem.follow(learned.iterations, control)
        del problem, bounded, prior, start
        give_back_memory()
    control.check()
    frames = learned.measured.conditions.correct_frames(frames_of_band(capture, band))
    pictures = pictures_of(
        part.mask,
        frames if capture.is_color else None,
        capture.lights_at(part.index),
        model,
        solution,
        learned.measured.scale,
        map_values=math.inf if band.maps else MAP_VALUES,
        control=control,
    )
    own = slice(band.own_first - band.first, band.own_last - band.first)
    maps = {name: picture[own] for name, picture in pictures.maps.items()}
    kept = Pictures(pictures.normals[own], pictures.albedo[own], maps)
    return SolvedBand(kept, solution.iterations, solution.status)
