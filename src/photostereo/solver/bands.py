"""Solve one band of a large capture: read its photographs, build its model, apply what the prior learned on the sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.io.memory import give_back_memory
from photostereo.priors.entry import Setting
from photostereo.runtime.arrays import CPU, Array, Device, empty
from photostereo.runtime.threads import in_turn, processors
from photostereo.solver.confidence_ball import WithinNoise
from photostereo.solver.finish import Pictures, pictures_of
from photostereo.solver.prepared import FromSample, Measured
from photostereo.solver.problem import Problem
from photostereo.solver.tiles import READ_AT_A_TIME, Band, Part

#: Progress steps per band: its model, the model's own answer, the rest.
STEPS_OF_A_BAND = 3
#: Maps with more values per pixel are omitted if per-photograph maps would not fit into memory.
MAP_VALUES = 8
#: Pixels transposed at a time.
BLOCK = 2048
#: Pixels that a thread takes at a time: a multiple of the block.
AT_ONCE = 1 << 17


def _some_at_a_time(count: int, together: int = READ_AT_A_TIME) -> Iterator[slice]:
    """Yield slices of photographs to read together."""
    for first in range(0, count, together):
        yield slice(first, min(first + together, count))


def _pixels_of_rows(
    capture: Capture, first: int, last: int, measured: Measured, device: Device, control: Control
) -> tuple[Array, Array | None]:
    """Return scaled gray intensities (N, d) of the mask pixels of some rows, and (N, d, 3) for a model that sees colors.

    Reads a few photographs at a time, so that there is never a second copy of them all.
    """
    index = np.flatnonzero(capture.mask[first:last])
    scale = measured.scale
    if device.uses_torch and not capture.is_color:
        return _gray_on_device(capture, first, last, scale, index, device), None
    colors = capture.is_color and measured.method.sees_colors
    d = len(capture)
    gray = np.empty((index.size, d), dtype=np.float32)
    tinted = np.empty((index.size, d, 3), dtype=np.float32) if colors else None
    divisor = np.float32(scale)
    for some in _some_at_a_time(d, d if capture.in_memory else READ_AT_A_TIME):
        control.check()
        frames = capture.photographs.rows(first, last, some)
        flat = frames.reshape(len(frames), -1, *frames.shape[3:])

        def transpose(number: int, flat: NDArray[Any] = flat, some: slice = some) -> None:
            for low in range(number * AT_ONCE, min((number + 1) * AT_ONCE, index.size), BLOCK):
                part = slice(low, min(low + BLOCK, index.size))
                values = flat[:, index[part]]
                if tinted is not None:
                    np.divide(values.swapaxes(0, 1), divisor, out=tinted[part, some])
                in_gray = gray_from_rgb(values) if capture.is_color else values
                np.divide(in_gray.T, divisor, out=gray[part, some])

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
    for some in _some_at_a_time(len(capture)):
        frames = device.put(capture.photographs.rows(first, last, some))
        flat = frames.reshape(len(frames), -1)
        gray[:, some] = (flat if whole else flat[:, chosen]).T
    gray /= device.put(
        np.asarray(scale, dtype=np.float32)
    )  # by an array: torch multiplies by 1/number
    return gray


def solve_band(
    capture: Capture,
    learned: FromSample,
    band: Band,
    device: Device = CPU,
    control: Control = SILENT,
) -> Pictures:
    """Solve a band, whose rows show the object, on a device; return its own rows. Advances ``control`` by
    :data:`STEPS_OF_A_BAND` steps."""
    part = Part.rows(capture.mask, band.first, band.last)
    inside = control.unreported()
    entry = learned.measured.method.prior
    pixels, colors = _pixels_of_rows(
        capture, band.first, band.last, learned.measured, device, inside
    )
    lights = capture.lights_at(part.index)
    lights.even(pixels)
    control.check()
    model = learned.measured.model_of(part, lights, pixels, colors, inside)
    del pixels, colors, lights
    control.advance()
    if entry is None:
        solution = Problem(model).solve(control=inside)
        control.advance()
    else:
        start = model.start(inside)
        control.advance()
        prior, _ = entry.build(
            learned.values, Setting(part.mask, device=device, lessons=learned.lessons)
        )
        control.check()
        if learned.bound is None:
            bounded = model
        else:
            bounded = WithinNoise(model, start, *learned.bound, part.mask)
        problem = Problem(bounded, prior, start, shares=learned.shares)
        solution = problem.follow(learned.iterations, inside)
        del problem, bounded, prior, start
        give_back_memory()
    control.check()
    frames = (
        frame
        for some in _some_at_a_time(len(capture))
        for frame in capture.photographs.rows(band.first, band.last, some)
    )
    pictures = pictures_of(
        part.mask,
        learned.measured.conditions.correct_frames(frames) if capture.is_color else None,
        capture.lights_at(part.index),
        model,
        solution,
        learned.measured.scale,
        map_values=math.inf if band.maps else MAP_VALUES,
        control=inside,
    )
    own = slice(band.own_first - band.first, band.own_last - band.first)
    maps = {name: picture[own] for name, picture in pictures.maps.items()}
    control.advance()
    return pictures._replace(normals=pictures.normals[own], albedo=pictures.albedo[own], maps=maps)
