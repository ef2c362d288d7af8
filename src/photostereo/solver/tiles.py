"""Parts of a capture: the sample that a prior learns on, and the bands in which it is solved within a memory limit.

The sample is square crops, spread evenly over the object. A dictionary of 192 atoms does not need a million patches. What
matters is how many there are and how evenly they are spread (see ``benchmarks/README.md``): a few thousand give the error
of learning on all, to within 1 %.

A band is a run of whole rows, because photographs are stored and read row by row. Around its own rows it has a halo
that is solved with it and discarded, so that no seam shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.errors import ParameterError
from photostereo.core.wording import amount
from photostereo.io.memory import available_memory
from photostereo.runtime.arrays import Device
from photostereo.solver.methods import Method

#: Rows and columns of a crop; its patches overlap as they do in the picture.
SIDE = 32
#: Number of crops: about 49 patches each, 9,800 in all.
CROPS = 200
#: Pixels of the sample. For a smaller object, the prior learns on all of it.
SAMPLE_PIXELS = CROPS * SIDE**2
#: Minimum share of a crop's pixels on the object, if there are such crops.
SHARE = 0.25
#: The golden ratio: any number of its multiples is spread evenly.
GOLDEN = 0.6180339887498949
#: Rows of a halo: three patches of the default size; pixels beyond them have no visible effect.
HALO = 24
#: Maximum pixels of a band regardless of memory: larger bands are not faster and only make its steps longer.
MOST_PIXELS = 2_000_000
#: Least rows of a smaller band, which needs less memory; a seventh of them are halos.
ROWS = 320
#: Least pixels of a smaller band.
PIXELS = 480_000
#: Minimum rows of a band, without its halo.
SMALLEST = 64
#: Photographs of a band read at a time: enough for the threads, few enough to allow cancellation in between.
READ_AT_A_TIME = 4
#: Bytes per pixel besides its photographs: statistics, normals and unknowns in double precision.
OF_A_MODEL = 220
#: Bytes per pixel for the directions and fall-off of a near light.
OF_NEAR_LIGHTS = 16
#: Bytes per frame pixel for the pictures of the result: normals, albedo, mask.
OF_A_RESULT = 40
#: Bytes for the program itself: libraries, compiled kernels, the sample that the dictionary is learned on.
OF_THE_PROGRAM = 500_000_000

#: Memory of a band on a GPU as a multiple of the compiled loops': every line creates an array of all pixels.
TEMPORARIES = 3


@dataclass(frozen=True, eq=False)
class Part:
    """Pixels of a capture as a separate picture: crops stacked vertically, a band of rows, or all of it."""

    mask: NDArray[np.bool_]  #: (rows, columns) of the picture
    index: NDArray[np.int64]  #: (N,) the flat numbers of its mask pixels in the capture
    width: int  #: of the capture
    side: int = 0  #: rows and columns of a crop; 0 if there are none

    @classmethod
    def rows(cls, mask: NDArray[np.bool_], first: int = 0, last: int | None = None) -> Part:
        """Select rows ``first`` to ``last`` of a capture with this mask; all of them by default."""
        inside = np.asarray(mask[first:last])
        width = mask.shape[1]
        return cls(inside, np.flatnonzero(inside) + first * width, width)

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of the mask pixels in the capture."""
        return np.divmod(self.index, self.width)


def choose_sample(mask: NDArray[np.bool_], *, side: int = SIDE, crops: int = CROPS) -> Part:
    """Choose evenly spread crops on the object; all of them if there are no more than ``crops``."""
    side = min(side, *mask.shape)
    height = mask.shape[0] // side
    width = mask.shape[1] // side
    cells = mask[: height * side, : width * side].reshape(height, side, width, side)
    share = cells.mean(axis=(1, 3))
    candidates = np.flatnonzero(share >= SHARE)
    if not candidates.size:
        candidates = np.flatnonzero(share > 0)
    if not candidates.size:  # the object lies in the margin that whole crops do not cover
        rows, cols = np.nonzero(mask)
        row = min(rows[0], mask.shape[0] - side)
        col = min(cols[0], mask.shape[1] - side)
        return _cut(mask, np.array([[row, col]]), side)
    if candidates.size > crops:
        places = (np.arange(1, crops + 1) * GOLDEN % 1.0 * candidates.size).astype(np.int64)
        candidates = candidates[np.unique(places)]
    return _cut(mask, np.stack(np.divmod(candidates, width), axis=1) * side, side)


def _cut(mask: NDArray[np.bool_], corners: NDArray[np.int64], side: int) -> Part:
    rows = corners[:, 0, None, None] + np.arange(side)[:, None]
    cols = corners[:, 1, None, None] + np.arange(side)
    inside = mask[rows, cols].reshape(-1, side)
    numbers = (rows * mask.shape[1] + cols).reshape(-1, side)
    return Part(inside, numbers[inside], mask.shape[1], side)


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
    prior: int,
    colors: bool = False,
    workspace: int = 0,
) -> int:
    """Return the bytes needed to solve one row.

    Parameters
    ----------
    width : int
        Pixels of a row.
    photographs, channels : int
        Their number, and the channels of each.
    prior : int
        Bytes per pixel of the prior; 0 without one.
    colors : bool
        Whether the model uses intensities in color as well.
    workspace : int
        Additional bytes per intensity of the model.
    """
    in_gray = 4 * photographs
    in_color = 4 * photographs * channels if colors else 0
    being_read = 4 * READ_AT_A_TIME * channels
    fitted = photographs * channels if colors else photographs
    intensities = in_gray + in_color + being_read + workspace * fitted
    return width * (intensities + OF_A_MODEL + prior)


def row_of(capture: Capture, method: Method) -> int:
    """Return the bytes that a method needs to solve one row of a capture."""
    return bytes_of_row(
        capture.frame[1],
        len(capture),
        3 if capture.is_color else 1,
        prior=0 if method.prior is None else method.prior.workspace,
        colors=capture.is_color and method.sees_colors,
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
    maps = (
        spare // (row + width * 4 * photographs) >= bottom - top
        and (bottom - top) * width <= most_pixels
    )
    rows = max(ROWS, PIXELS / width) if small else math.inf
    if maps and bottom - top <= rows:
        return [Band(top, bottom, top, bottom, maps)]
    most = int(min(spare // row - 2 * around, max(most_pixels / width, SMALLEST + step), rows))
    most -= most % step
    if most < SMALLEST:
        least = OF_THE_PROGRAM + height * width * OF_A_RESULT + row * (SMALLEST + 2 * around)
        size = f"{width} × {height}"
        memory = max(memory, 0)
        raise ParameterError(
            f"Photographs of {size} pixels need at least {amount(least)} of memory, even in the "
            f"smallest bands, but {amount(memory)} may be used.",
            code="memory-too-small",
            remedy="more-memory",
            needed=least,
            allowed=memory,
            size=size,
        )
    start = top - top % step
    count = -(-(bottom - start) // most)
    each = -(-(bottom - start) // count)
    each += -each % step  # at most ``most``, which is also a multiple
    bands = []
    for own in range(start, bottom, each):
        first = max(own, top)
        last = min(own + each, bottom)
        bands.append(Band(max(own - around, 0), min(last + around, height), first, last, maps))
    return bands


def raise_not_divisible(method: Method) -> NoReturn:
    """Raise a :class:`ParameterError`: the method needs all pixels, and they do not fit into memory."""
    raise ParameterError(
        f"{method.name} compares all pixels and cannot be solved in parts. Use another method.",
        code="method-not-divisible",
        remedy="more-memory",
        method=method.name,
    )


def bands_of(
    capture: Capture,
    method: Method,
    values: Mapping[str, Any],
    device: Device,
    memory: int | None = None,
) -> list[Band]:
    """Return the bands for solving a capture within ``memory`` bytes; by default half of the free memory."""
    if not method.model.divisible:
        raise_not_divisible(method)
    budget = memory
    if budget is None and device.torch_name.startswith("cuda"):
        import torch

        budget = int(torch.cuda.mem_get_info(device.torch_name)[0]) // 2
    elif budget is None:
        budget = available_memory() // 2
    present = np.flatnonzero(capture.mask.any(axis=1))
    if device.uses_torch:
        budget //= TEMPORARIES
    step = 1
    if method.prior and method.prior.aligned_to:
        step = values[method.prior.aligned_to]
    most_pixels = math.inf
    if not device.uses_torch and capture.pixel_count > MOST_PIXELS:
        most_pixels = MOST_PIXELS
    return plan_bands(
        capture.frame,
        len(capture),
        row_of(capture, method),
        budget,
        halo=method.has_prior or "mask" in method.model.sees,
        step=step,
        inside=(int(present[0]), int(present[-1]) + 1),
        most_pixels=most_pixels,
        small=capture.pixel_count > PIXELS and not device.uses_torch,
    )


def choose_bands(
    capture: Capture,
    method: Method,
    values: Mapping[str, Any],
    device: Device,
    memory: int | None,
    *,
    crops: int | None = None,
) -> list[Band] | None:
    """Return the bands of a capture whose prior learns on a sample; None if it is solved at once.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    method : Method
        The method.
    values : mapping
        All its parameters.
    device : Device
        Where to compute.
    memory : int or None
        Memory limit in bytes; by default half of the free memory, and a small object is solved at once.
    crops : int, optional
        Number of crops in the sample, if that was asked for; then a small object has bands too.
    """
    small = capture.pixel_count <= SAMPLE_PIXELS and crops is None
    if not method.model.divisible or (small and memory is None):
        return None
    bands = bands_of(capture, method, values, device, memory)
    return None if small and len(bands) == 1 else bands
