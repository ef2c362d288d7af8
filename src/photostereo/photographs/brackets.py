"""Exposure brackets: find the photographs of each light, and merge them into one linear photograph.

A pixel that is clipped in the long exposure is not clipped in the short one, and one that is noisy in the short one is
clean in the long one. With x the radiance, t_j the exposures and v_j = t_j x the linear values, each exposure gives
x̂_j = v_j / t_j with the variance (r² + g v_j) / t_j² (read and shot noise). The merged value is the mean of the x̂_j
weighted by the inverse of these variances, without those that are clipped.

References
----------
M. Granados et al., "Optimal HDR reconstruction with linear digital cameras", 2010. doi:10.1109/CVPR.2010.5540208
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from photostereo.core.conventions import Float32, Float64, FloatArray
from photostereo.io.camera import Shot, exposure_of

#: Exposures of one light differ by at least this factor: a third of a stop is 1.26.
APART = 1.3
#: Those of different lights agree to within this factor: cameras round what they record.
ALIKE = 1.05
#: Values above this share of full scale count less,
NEARLY_CLIPPED = 0.90
#: those above this one not at all.
CLIPPED = 0.98
#: Value, as a share of full scale, at which shot noise is as large as the noise of a dark pixel.
SHOT_EQUALS_READ = 0.01


def find_brackets(
    files: Sequence[Path], shots: Sequence[Shot], lights: FloatArray | None = None
) -> list[list[int]] | None:
    """Groups of photographs that are exposures of the same light, as ordered indices into ``files``; None if none are.

    Recognized if every photograph records its exposure, and

    - the light file has a line for each photograph, and those of a group are the same;
    - or it has a line for each group: several photographs in a row, or one whole series after another, have the
      same sequence of different exposures; or their names differ only in the last number or word;
    - or there is no light file, and the same sequence of exposures repeats.
    """
    exposed = [exposure_of(shot) for shot in shots]
    if len(files) < 4 or any(exposure is None for exposure in exposed):
        return None
    times = np.asarray(exposed, dtype=np.float64)
    count = len(files)

    def in_a_row(each: int) -> list[list[int]]:
        return [list(range(first, first + each)) for first in range(0, count, each)]

    if lights is None:
        sizes = (each for each in range(2, count // 3 + 1) if count % each == 0)
        return next(
            (groups for each in sizes if _same_sequence(groups := in_a_row(each), times)), None
        )
    number = len(lights)
    if number == count:
        same = np.abs(np.diff(np.asarray(lights, dtype=np.float64), axis=0)).max(axis=1) <= 1e-6
        groups = [part.tolist() for part in np.split(np.arange(count), np.flatnonzero(~same) + 1)]
        return groups if _differ(groups, times) else None
    if not 0 < number < count:
        return None
    candidates = []
    if count % number == 0:
        candidates = [
            in_a_row(count // number),
            [list(range(k, count, number)) for k in range(number)],
        ]
    by_name: dict[str, list[int]] = {}
    for place in np.argsort(
        times, kind="stable"
    ).tolist():  # each group may have its exposures in any order
        by_name.setdefault(re.split(r"[-_. ]+(?=[^-_. ]+$)", files[place].stem)[0], []).append(
            place
        )
    candidates.append(sorted(by_name.values(), key=min))
    return next(
        (some for some in candidates if len(some) == number and _same_sequence(some, times)), None
    )


def merge_exposures(
    linear: Sequence[Float32], times: Sequence[float], full: Sequence[Float32]
) -> Float32:
    """Merge linear photographs at the shortest of ``times``; clipping is detected in ``full``, the stored values."""
    shortest = int(np.argmin(times))
    relative = np.asarray(times, dtype=np.float64) / times[shortest]
    trust = []
    for stored in full:
        brightest = stored.max(axis=2, keepdims=True) if stored.ndim == 3 else stored
        trust.append(
            np.clip((CLIPPED - brightest) / (CLIPPED - NEARLY_CLIPPED), 0, 1).astype(np.float32)
        )
    # If even the shortest is clipped, there is nothing better.
    trust[shortest] = np.maximum(trust[shortest], np.float32(1e-6))
    merged: Float32 = np.zeros_like(linear[shortest])
    # First assume read noise only, then add the shot noise at this brightness.
    for first in (True, False):
        total = np.zeros_like(merged)
        weight = np.zeros_like(merged)
        for values, time, usable in zip(linear, relative, trust, strict=True):
            variance = np.ones_like(merged)
            if not first:
                variance += np.maximum(merged, 0) * np.float32(time / SHOT_EQUALS_READ)
            share = usable * np.float32(time**2) / variance
            total += share * values / np.float32(time)
            weight += share
        merged = total / weight
    return merged


def _differ(groups: Sequence[Sequence[int]], times: Float64) -> bool:
    """Whether there are groups of several exposures, and the exposures within each differ."""
    several = [np.sort(times[list(group)]) for group in groups if len(group) > 1]
    return bool(several) and all((ordered[1:] >= APART * ordered[:-1]).all() for ordered in several)


def _same_sequence(groups: Sequence[Sequence[int]], times: Float64) -> bool:
    """Whether all groups have the same sequence of different exposures."""
    if len({len(group) for group in groups}) != 1 or not _differ(groups, times):
        return False
    table = times[np.asarray(groups)]
    return bool((table.max(axis=0) <= ALIKE * table.min(axis=0)).all())
