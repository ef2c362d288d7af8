"""Plan the bands of rows in which a capture is solved within a memory limit.

A band is a run of whole rows, because photographs are stored and read row by row. Around its own rows it has a halo
that is solved with it and discarded, so that no seam shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.errors import ParameterError
from photostereo.io.memory import available_memory
from photostereo.runtime.arrays import Device
from photostereo.solver.methods import Method

#: Rows of a halo: three patches of the default size; pixels beyond them have no visible effect.
HALO = 24
#: Maximum pixels of a band regardless of memory: larger bands are not faster and only make its steps longer.
MOST_PIXELS = 2_000_000
#: Size of smaller bands, which need less memory: this many rows (an eighth are halos) or pixels, whichever is more.
ROWS, PIXELS = 400, 600_000
#: Minimum rows of a band, without its halo.
SMALLEST = 64
#: Photographs of a band read at a time: enough for the threads, few enough to allow cancellation in between.
READ_AT_A_TIME = 4
#: Pixels of a band summed at a time, if a model keeps only sums.
SUMMED_AT_A_TIME = 250_000
#: Bytes per pixel besides its photographs: statistics, normals and unknowns in double precision.
OF_A_MODEL = 220
#: Bytes per pixel for patches, codes and workspace of the dictionary prior (8 × 8 × 3 values, stride 4).
OF_A_PRIOR = 260
#: Bytes per pixel for the directions and fall-off of a near light.
OF_NEAR_LIGHTS = 16
#: Bytes per frame pixel for the pictures of the result: normals, albedo, mask.
OF_A_RESULT = 40
#: Bytes for the program itself: libraries, compiled kernels, the sample that the dictionary is learned on.
OF_THE_PROGRAM = 500_000_000

#: Memory of a band on a GPU as a multiple of the compiled loops': every line creates an array of all pixels.
TEMPORARIES = 3


@dataclass(frozen=True)
class Band:
    """Rows ``first`` to ``last`` are solved, ``own_first`` to ``own_last`` of them are kept; ``maps`` is True if there is
    memory for the maps with a value per photograph."""

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
    """Return the bytes needed to solve one row: intensities by pixel (also in color if the model uses ``colors``) and the
    few photographs being read, unless the model ``sums`` them up; the model, with ``workspace`` bytes per intensity; the
    prior."""
    looked_at = 1 + (channels if colors else 0)
    intensities = 4 * photographs * looked_at + 4 * READ_AT_A_TIME * channels
    if sums:
        intensities = 0
    intensities += workspace * photographs * (channels if colors else 1)
    return width * (intensities + OF_A_MODEL + (OF_A_PRIOR if prior else 0))


def row_of(capture: Capture, method: Method) -> int:
    """Return the bytes that a method needs to solve one row of a capture."""
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
    """Return bands that fit into ``memory`` bytes if a row takes ``row`` bytes.

    They have about the same height and start at multiples of ``step``; ``small`` bands need less memory but more
    work.
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
        size, memory = f"{width} × {height}", max(memory, 0)
        raise ParameterError(
            code="memory-too-small", remedy="more-memory", needed=least, allowed=memory, size=size
        )
    start = top - top % step
    count = -(-(bottom - start) // most)
    each = -(-(bottom - start) // count)
    each += -each % step  # at most ``most``, which is also a multiple
    bands = []
    for own in range(start, bottom, each):
        first, last = max(own, top), min(own + each, bottom)
        bands.append(Band(max(own - around, 0), min(last + around, height), first, last, maps))
    return bands


def bands_of(
    capture: Capture, method: Method, values: Mapping[str, Any], device: Device, memory: int | None = None
) -> list[Band]:
    """Return the bands for solving a capture within ``memory`` bytes; by default half of the free memory."""
    if not method.model.divisible:
        raise ParameterError(code="method-not-divisible", remedy="more-memory", method=method.name)
    budget = memory
    if budget is None and device.torch_name.startswith("cuda"):
        import torch

        budget = int(torch.cuda.mem_get_info(device.torch_name)[0]) // 2
    elif budget is None:
        budget = available_memory() // 2
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
