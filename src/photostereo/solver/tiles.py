"""Which bands of rows a capture is solved in, from a budget of memory.

A band is a run of whole rows: photographs are stored row by row, so a band is what can be read of them. Around
its own rows it has a halo that is solved with it and thrown away, so that no seam shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from photostereo.core.errors import ParameterError
from photostereo.io.memory import in_words

#: Rows of a halo: three patches of the default size; the pull of pixels beyond them cannot be seen.
HALO = 24
#: No band has fewer rows of its own.
SMALLEST = 64
#: Photographs of a band that are read at a time: enough for the threads, few enough to be cancelled in between.
READ_AT_A_TIME = 4
#: Pixels of a band whose sums are formed at a time, if sums are all that a model keeps.
SUMMED_AT_A_TIME = 250_000
#: Bytes of a pixel, beside its photographs: statistics, normals and unknowns in double precision.
OF_A_MODEL = 220
#: Patches, codes and workspace of a pixel in the dictionary prior (8 × 8 × 3 values, stride 4).
OF_A_PRIOR = 260
#: The pictures of the result, of a pixel of the frame: normals, albedo, mask.
OF_A_RESULT = 40
#: What the program itself takes: libraries, compiled kernels, the sample that the dictionary is learned on.
OF_THE_PROGRAM = 500_000_000


#: Sums, normals and albedo of a mask pixel in double precision, while least squares finishes.
OF_SUMS = 110


@dataclass(frozen=True)
class Band:
    """Rows ``first`` to ``last`` are solved, ``own_first`` to ``own_last`` of them are kept."""

    first: int
    last: int
    own_first: int
    own_last: int


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


def bytes_in_whole(
    frame: tuple[int, int],
    photographs: int,
    channels: int,
    *,
    prior: bool,
    colors: bool = False,
    workspace: int = 0,
) -> int:
    """Bytes of a solve in one go."""
    height, width = frame
    row = bytes_of_row(width, photographs, channels, prior=prior, colors=colors, workspace=workspace)
    # The photographs stay, and weights of every photograph and pixel are kept as a map.
    return OF_THE_PROGRAM + height * (row + width * (4 * photographs * (channels + 1) + OF_A_RESULT))


def plan_bands(
    frame: tuple[int, int],
    photographs: int,
    channels: int,
    memory: int,
    *,
    prior: bool,
    colors: bool = False,
    sums: bool = False,
    workspace: int = 0,
    neighbors: bool = False,
    step: int = 4,
    rows: tuple[int, int] | None = None,
) -> list[Band]:
    """Bands that fit into ``memory`` bytes, of about the same height; they begin at multiples of ``step``.

    They have a halo if there is a prior, or if the model itself looks at ``neighbors``; the other options are those of
    :func:`bytes_of_row`.

    Raises
    ------
    ParameterError
        If even the smallest band does not fit.

    Examples
    --------
    >>> bands = plan_bands((4000, 6000), 60, 1, 4_000_000_000, prior=True)
    >>> len(bands), bands[1].own_first - bands[1].first
    (8, 24)
    """
    height, width = frame
    top, bottom = (0, height) if rows is None else rows
    halo = -(-HALO // step) * step if prior or neighbors else 0
    row = bytes_of_row(
        width, photographs, channels, prior=prior, colors=colors, sums=sums, workspace=workspace
    )
    spare = memory - OF_THE_PROGRAM - height * width * OF_A_RESULT
    maps = width * 4 * photographs  # one band keeps those of every photograph
    if spare // (row + maps) >= bottom - top:
        return [Band(top, bottom, top, bottom)]
    most = spare // row - 2 * halo
    most -= most % step
    if most < SMALLEST:
        least = OF_THE_PROGRAM + height * width * OF_A_RESULT + row * (SMALLEST + 2 * halo)
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
        bands.append(Band(max(own - halo, 0), min(last + halo, height), first, last))
    return bands


def bytes_for_sums(frame: tuple[int, int], pixels: int, channels: int) -> int:
    """Bytes of least squares, photograph by photograph.

    Beside the sums there are four photographs at a time: two being decoded, two decoded.
    """
    return OF_THE_PROGRAM + frame[0] * frame[1] * (OF_A_RESULT + 4 * 5 * channels) + pixels * OF_SUMS
