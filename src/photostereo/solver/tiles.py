"""Which bands of rows a capture is solved in, from a budget of memory.

A band is a run of whole rows: photographs are stored row by row, so a band is what can be read of them. Around
its own rows it has a halo that is solved with it and thrown away, so that no seam shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.errors import ParameterError
from photostereo.io.memory import available_memory, in_words
from photostereo.runtime.arrays import Device
from photostereo.solver.methods import Method

#: Rows of a halo: three patches of the default size; the pull of pixels beyond them cannot be seen.
HALO = 24
#: Pixels of a band at most, however much memory there is: more do not make it faster, but its steps longer.
MOST_PIXELS = 2_000_000
#: Smaller bands take less memory: this many rows, of which halos are an eighth, or pixels, whichever is more.
ROWS, PIXELS = 400, 600_000
#: No band has fewer rows of its own.
SMALLEST = 64
#: Photographs of a band that are read at a time: enough for the threads, few enough to be canceled in between.
READ_AT_A_TIME = 4
#: Pixels of a band whose sums are formed at a time, if sums are all that a model keeps.
SUMMED_AT_A_TIME = 250_000
#: Bytes of a pixel, beside its photographs: statistics, normals and unknowns in double precision.
OF_A_MODEL = 220
#: Patches, codes and workspace of a pixel in the dictionary prior (8 × 8 × 3 values, stride 4).
OF_A_PRIOR = 260
#: Directions and fall-off of a near light at a pixel.
OF_NEAR_LIGHTS = 16
#: The pictures of the result, of a pixel of the frame: normals, albedo, mask.
OF_A_RESULT = 40
#: What the program itself takes: libraries, compiled kernels, the sample that the dictionary is learned on.
OF_THE_PROGRAM = 500_000_000

#: Times the memory of compiled loops that a band takes on a GPU, where every line makes an array of all pixels.
TEMPORARIES = 3


@dataclass(frozen=True)
class Band:
    """Rows ``first`` to ``last`` are solved, ``own_first`` to ``own_last`` of them are kept; ``maps`` says whether there is
    memory for the maps with a value for every photograph."""

    first: int
    last: int
    own_first: int
    own_last: int
    maps: bool = False


def bytes_of_row(
    width: int,
    photographs: int,
    channels: int,
    *,
    prior: bool,
    colors: bool = False,
    sums: bool = False,
    workspace: int = 0,
) -> int:
    """Bytes of one row while it is solved: intensities by pixel (in color too if the model looks at ``colors``) and the few
    photographs being read, unless the model ``sums`` them up; the model, with ``workspace`` bytes for each intensity; the
    prior."""
    looked_at = 1 + (channels if colors else 0)
    intensities = 4 * photographs * looked_at + 4 * READ_AT_A_TIME * channels
    if sums:
        intensities = 0
    intensities += workspace * photographs * (channels if colors else 1)
    return width * (intensities + OF_A_MODEL + (OF_A_PRIOR if prior else 0))


def row_of(capture: Capture, method: Method) -> int:
    """Bytes of one row of a capture while a method solves it."""
    return bytes_of_row(
        capture.frame[1],
        len(capture),
        3 if capture.is_color else 1,
        prior=method.has_prior,
        colors=capture.is_color and method.sees_colors,
        sums=method.model.joins,
        workspace=method.model.workspace + (OF_NEAR_LIGHTS if capture.lights.is_near else 0),
    )


def plan_bands(
    frame: tuple[int, int],
    photographs: int,
    row: int,
    memory: int,
    *,
    halo: bool,
    step: int = 4,
    inside: tuple[int, int] | None = None,
    most_pixels: float = MOST_PIXELS,
    small: bool = False,
) -> list[Band]:
    """Bands that fit into ``memory`` bytes if a row takes ``row`` of them.

    They are of about the same height and begin at multiples of ``step``; they are ``small`` if less memory is worth more
    work.

    >>> row = bytes_of_row(6000, 60, 1, prior=True)
    >>> bands = plan_bands((4000, 6000), 60, row, 4_000_000_000, halo=True)
    >>> len(bands), bands[1].own_first - bands[1].first
    (13, 24)
    """
    height, width = frame
    top, bottom = (0, height) if inside is None else inside
    around = -(-HALO // step) * step if halo else 0
    spare = memory - OF_THE_PROGRAM - height * width * OF_A_RESULT
    maps = spare // (row + width * 4 * photographs) >= bottom - top and (bottom - top) * width <= most_pixels
    rows = max(ROWS, PIXELS / width) if small else math.inf
    if maps and bottom - top <= rows:
        return [Band(top, bottom, top, bottom, maps)]
    most = int(min(spare // row - 2 * around, max(most_pixels / width, SMALLEST + step), rows))
    most -= most % step
    if most < SMALLEST:
        least = OF_THE_PROGRAM + height * width * OF_A_RESULT + row * (SMALLEST + 2 * around)
        raise ParameterError(
            f"{photographs} photographs of {width} × {height} pixels need at least {in_words(least)} of memory, even "
            f"in bands of {SMALLEST} rows, but {in_words(max(memory, 0))} may be used.",
            code="memory-too-small",
            remedy="more-memory",
            needed=least,
            allowed=memory,
        )
    start = top - top % step
    count = -(-(bottom - start) // most)
    each = -(-(bottom - start) // count)
    each += -each % step  # at most ``most``, which is a multiple too
    bands = []
    for own in range(start, bottom, each):
        first, last = max(own, top), min(own + each, bottom)
        bands.append(Band(max(own - around, 0), min(last + around, height), first, last, maps))
    return bands


def bands_of(
    capture: Capture, method: Method, values: Mapping[str, Any], device: Device, memory: int | None = None
) -> list[Band]:
    """The bands in which a capture is solved within ``memory`` bytes; by default half of what is free."""
    if not method.model.divisible:
        raise ParameterError(code="method-not-divisible", remedy="more-memory", method=method.name)
    budget = free_memory(device) // 2 if memory is None else memory
    present = np.flatnonzero(capture.mask.any(axis=1))
    return plan_bands(
        capture.frame,
        len(capture),
        row_of(capture, method),
        budget // TEMPORARIES if device.uses_torch else budget,
        halo=method.has_prior or "mask" in method.model.sees,
        step=values[method.prior.aligned_to] if method.prior and method.prior.aligned_to else 1,
        inside=(int(present[0]), int(present[-1]) + 1),
        most_pixels=math.inf if device.uses_torch or capture.pixel_count <= MOST_PIXELS else MOST_PIXELS,
        small=capture.pixel_count > PIXELS and not device.uses_torch,
    )


def free_memory(device: Device) -> int:
    """Of the GPU, or of the computer."""
    if not device.torch_name.startswith("cuda"):
        return available_memory()
    import torch

    return int(torch.cuda.mem_get_info(device.torch_name)[0])
