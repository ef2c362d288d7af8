"""Medians, quantiles and interpolation of arrays of either kind, as in NumPy.

torch's own median is the lower of two middle values, and its quantile accepts at most 16 million values. A GPU sorts
faster than it selects, so everything here is a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, is_tensor, like, to_numpy

#: Factor from the median of |x| to the standard deviation, if x is Gaussian.
MAD_TO_SIGMA = 1.482602218505602


def quantiles(values: Array, shares: Sequence[float]) -> NDArray[Any]:
    """Return ``np.quantile`` of all values."""
    if not is_tensor(values):
        return np.asarray(np.quantile(values, shares))
    ordered = values.reshape(-1).sort().values
    places = np.asarray(shares, dtype=np.float64) * (len(ordered) - 1)
    below = places.astype(np.int64)
    around = np.stack([below, np.minimum(below + 1, len(ordered) - 1)], -1)
    pairs = to_numpy(ordered[like(around, ordered)])
    # Interpolate as NumPy does, in the precision of the values.
    parts = (places - below).tolist()
    return np.array([np.quantile(pair, part) for pair, part in zip(pairs, parts, strict=True)])


def median(values: Array) -> float:
    """Return the median of all values."""
    if not is_tensor(values):
        return float(np.median(values))
    return float(quantiles(values, [0.5])[0])


def row_quantiles(values: Array, share: float) -> Array:
    """Return the quantile (m, 1) of each row of values (m, n)."""
    if not is_tensor(values):
        return np.asarray(np.quantile(values, share, axis=1, keepdims=True))
    ordered = values.sort(1).values
    place = share * (values.shape[1] - 1)
    below = int(place)
    above = min(int(place) + 1, values.shape[1] - 1)
    return (ordered[:, below] + (place - below) * (ordered[:, above] - ordered[:, below]))[:, None]


def row_medians(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``np.median`` along the last axis, which is kept; no NaN. A sort is three times as fast on rows of hundreds."""
    ordered = np.sort(values, axis=-1)
    count = values.shape[-1]
    return np.asarray(0.5 * (ordered[..., (count - 1) // 2, None] + ordered[..., count // 2, None]))


def known_medians(values: NDArray[Any]) -> NDArray[Any]:
    """Return the median of each column, ignoring NaN (NaN if there are no other values); a faster ``np.nanmedian``."""
    ordered = np.sort(values.T, axis=1)  # NaN comes last
    count = (ordered == ordered).sum(axis=1)
    which = np.stack([(count - 1).clip(0) // 2, (count // 2).clip(0, ordered.shape[1] - 1)], axis=1)
    return np.asarray(np.take_along_axis(ordered, which, axis=1).mean(axis=1))


def interpolate(x: Array, places: NDArray[Any], values: NDArray[Any]) -> Array:
    """Interpolate as ``np.interp``: linear between (places, values), with increasing places; constant beyond the ends."""
    if not is_tensor(x):
        return np.interp(x, places, values)
    import torch

    at = like(np.asarray(places, np.float64), x)
    ends = like(np.asarray(values, np.float64), x)
    if len(at) < 2:
        return 0.0 * x.double() + ends[0]
    x = x.double().clamp(at[0], at[-1])
    last = torch.searchsorted(at, x, right=True).clamp(1, len(at) - 1)
    width = at[last] - at[last - 1]
    part = torch.where(width > 0, (x - at[last - 1]) / width, torch.ones_like(x))
    return ends[last - 1] + part * (ends[last] - ends[last - 1])
