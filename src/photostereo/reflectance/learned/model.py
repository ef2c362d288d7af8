"""The learned model: unit normals from the witnesses of each pixel, held as firmly as they are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Control
from photostereo.core.conventions import GRAY_WEIGHTS
from photostereo.diagnosis.blocks import JPEG_SIDE
from photostereo.diagnosis.noise_table import Noise, NoiseTable, PixelNoise
from photostereo.reflectance.learned.matte import matte_witness, misfits_around
from photostereo.reflectance.learned.outline import with_rim
from photostereo.reflectance.learned.together import together
from photostereo.reflectance.learned.weights import Weights, read_weights, shipped_weights
from photostereo.reflectance.learned.witnesses import Witness, combine
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import Array, cast, contiguous, is_tensor, like, namespace, to_numpy

#: Beyond the object this much of the picture is looked at: more than a filter of 2 pixels reaches.
MARGIN = 12
#: Pixels on which it is tried how far noise moves the answers.
TRIED = 3000
#: Classes of like spread in which that is told, and how far a class may lie from the middle one.
SPREAD_CLASSES, WIDEST = 6, 10.0
#: Noise of a channel over that of the luma, where the channels' noises are independent: 1 / |GRAY_WEIGHTS|.
CHANNEL_TO_LUMA = 1.5


class Learned(Model):
    r"""A network that has seen many materials, the matte fit and the outline, as one data term.

    .. math:: \sum_{px} w_{px} \, | n_{px} - m_{px} |^2

    with m the average of the witnesses (unit normals) and w how little the noise moves them, 1 for a middling
    pixel. The normals of this model have unit length; the albedo is that of a matte pixel in the photographs that face it.

    Parameters
    ----------
    pixels : (N, d) gray intensities
    lights : (3, d) unit columns
    colors : (N, d, 3) intensities, where the photographs have color
    mask : (H, W) where the pixels lie, row by row; without it neighbors and the outline say nothing
    weights : an archive that ``photostereo train`` wrote; the package's own where missing
    outline : whether the mask's outline is an occluding contour, so that it tells where the surface turns away
    neighbors : whether neighbors that the noise cannot tell apart are looked at together
    noise : of these pixels; by default it is measured, if there is a mask
    """

    def __init__(
        self,
        pixels: Array,
        lights: NDArray[Any],
        *,
        colors: Array | None = None,
        mask: NDArray[np.bool_] | None = None,
        weights: str | Path | None = None,
        outline: bool = True,
        neighbors: bool = True,
        noise: PixelNoise | None = None,
    ) -> None:
        numbers = shipped_weights() if weights is None else read_weights(weights)
        mask = None if mask is None else around_object(mask)
        self._sample: Learned | None = None
        if noise is None:
            noise = (Noise() if mask is None else Noise.measure(pixels, lights, mask)).at(pixels)
        fine = noise.fine
        self._pixels, self._lights = pixels, lights
        if neighbors and mask is not None and bool(fine.any()):
            pixels, colors, fine = _quieter(pixels, colors, mask, fine)
        # Neighbors of one block share what JPEG did to it: together they tell nothing that one of them does not.
        alone = noise.coarse is not None
        unexplained = fine if noise.coarse is None else namespace(fine).maximum(fine, noise.coarse)
        around = (None, None) if mask is None or alone else misfits_around(pixels, lights, unexplained, mask)

        def told(pixels: Array, colors: Array | None, some: slice) -> tuple[Witness, Witness]:
            normals, error = _predict(pixels, colors, lights, numbers)
            whole, lit = (None if part is None else part[some] for part in around)
            matte = matte_witness(pixels, lights, unexplained[some], (whole, lit))
            return combine(Witness(normals, error * error), matte), matte

        def witnesses(pixels: Array, colors: Array | None, some: slice) -> Witness:
            return told(pixels, colors, some)[0]

        found, matte = told(pixels, colors, slice(None))
        self._level: float | None = None
        # Tried only where a prior asks for it.
        self._try_noise = partial(try_noise, witnesses, found, pixels, colors, fine, lights)
        self._variance = found.variance  # without the outline's word
        if outline and mask is not None:
            found = with_rim(found, mask, matte=found.variance / matte.variance)
        self._normals = cast(found.normals, "float64")
        self._spread = namespace(found.variance).sqrt(cast(found.variance, "float64"))

    @cached_property
    def _noise_part(self) -> Array:
        """(N,) variance of one component of each normal that comes from the photographs' noise."""
        log_variance = np.log(to_numpy(self._variance))
        return like(noise_part(log_variance, self._tried), self._normals)

    @cached_property
    def _tried(self) -> NoiseTable | None:
        """That variance by the spread of a pixel, as it was tried out here or on the sample."""
        return self._try_noise() if self._sample is None else self._sample._tried

    @cached_property
    def _weight(self) -> Array:
        """1 for a middling pixel, less where the noise moves the answer more."""
        part = self._noise_part
        level = self.noise if self._level is None else self._level
        return (level**2 + 1e-12) / (part + 1e-12)

    def adopt(self, sample: Model) -> None:
        """Weigh pixels against those of the sample that the prior was made for."""
        assert isinstance(sample, Learned)
        self._sample, self._level = sample, sample.noise

    @property
    def noise(self) -> float:
        """How far the photographs' noise moves one component of a normal.

        Only noise differs from pixel to pixel without reason, so only noise is for a prior to remove: an error that
        the network shares with its neighbors is not.
        """
        return float(np.sqrt(np.median(to_numpy(self._noise_part))))

    @property
    def noise_is_of_normals(self) -> bool:
        return True

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return np.eye(3)

    def alone(self, control: Control) -> Fit:
        return Fit(self._normals)

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return (self._weight[:, None] * self._normals + pull) / (self._weight + weight)[..., None]

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array:
        """Each pixel's own noise, in the units of :attr:`noise`."""
        return self._noise_part

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        difference = normals - self._normals
        return (self._weight[:, None] * difference * difference).sum((-2, -1))

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``spread``: the expected angle in degrees between these normals and the truth, without a prior."""
        return {"spread": self._spread * (180.0 / np.pi)}

    def albedo(self, normals: Array, unknowns: Unknowns) -> Array:
        """What a matte pixel of this normal would need, of the photographs whose light it faces."""
        length = namespace(normals).sqrt((normals * normals).sum(-1))[..., None] + 1e-30
        facing = cast(normals / length, "float32") @ like(self._lights.astype(np.float32), self._pixels)
        facing = facing * (facing > 0)
        return cast((self._pixels * facing).sum(-1) / ((facing * facing).sum(-1) + 1e-6), "float64")


def around_object(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The object and what a filter reaches around it; the mask pixels keep their numbers, and JPEG's blocks their corners.

    >>> mask = np.zeros((600, 400), bool); mask[100:200, 50:90] = True
    >>> around_object(mask).shape
    (124, 70)
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return mask
    top, left = (max(int(lines[0]) - MARGIN, 0) // JPEG_SIDE * JPEG_SIDE for lines in (rows, columns))
    return mask[top : rows[-1] + MARGIN + 1, left : columns[-1] + MARGIN + 1]


def _quieter(
    pixels: Array, colors: Array | None, mask: NDArray[np.bool_], noise: Array
) -> tuple[Array, Array | None, Array]:
    """Pixels averaged with neighbors that the noise cannot tell apart, and the variance that is left."""
    values = pixels
    if colors is not None:
        values = namespace(pixels).concatenate([pixels[..., None], colors], -1)
    averaged, share = _together_for(pixels)(values, pixels, mask, noise)
    if colors is None:
        return averaged, None, noise * share
    return contiguous(averaged[..., 0]), contiguous(averaged[..., 1:]), noise * share


def _together_for(pixels: Array) -> Any:
    """The average over neighbors for this kind of array."""
    if is_tensor(pixels):
        from photostereo.reflectance.learned.torch_together import together as on_tensors

        return on_tensors
    return together


def try_noise(
    witnesses: Callable[[Array, Array | None, slice], Witness],
    found: Witness,
    pixels: Array,
    colors: Array | None,
    noise: Array,
    lights: NDArray[Any],
) -> NoiseTable | None:
    """Variance of one component of the normals, of noise alone: what moves when the same noise comes once more.

    It is tried on some pixels, and told by their spread: log variances, growing, and the median in classes of like
    spread. None where there is no noise.
    """
    some = slice(0, None, max(1, len(noise) // TRIED))
    deviation = np.sqrt(to_numpy(noise[some]))[:, None]
    if not deviation.any():
        return None
    rng = np.random.default_rng(0)
    rank = np.argsort(np.lexsort(lights))  # the same noise for the same light, in whatever order they come
    gray = to_numpy(pixels[some])
    if colors is None:
        shaken, tinted = gray + deviation * rng.standard_normal(gray.shape)[:, rank], None
    else:
        values = to_numpy(colors[some])
        extra = CHANNEL_TO_LUMA * deviation[..., None] * rng.standard_normal(values.shape)[:, rank]
        shaken, tinted = gray + extra @ np.asarray(GRAY_WEIGHTS), (values + extra).astype(np.float32)
    again = witnesses(
        like(shaken.astype(np.float32), pixels), None if tinted is None else like(tinted, pixels), some
    )
    moved = np.square(to_numpy(again.normals) - to_numpy(found.normals[some])).sum(-1)
    spread = np.log(to_numpy(found.variance[some]))
    order = np.argsort(spread)
    classes = np.array_split(order, min(SPREAD_CLASSES, len(order)))
    places = [float(np.mean(spread[inside])) for inside in classes]
    # Two components of a plane: the median of their sum of squares is 2 ln 2 times the variance of one.
    variances = [float(np.median(moved[inside])) / (2.0 * np.log(2.0)) for inside in classes]
    typical = max(float(np.median(variances)), 1e-12)
    return np.asarray(places), np.clip(variances, typical / WIDEST, typical * WIDEST)


def noise_part(log_variance: NDArray[Any], tried: NoiseTable | None) -> NDArray[np.float64]:
    """Variance (N,) of one component of the normals that comes from noise, by what was tried out."""
    if tried is None:
        return np.zeros(len(log_variance))
    # Noise is a part of the whole error: of two components, each half of the variance at most.
    return np.asarray(np.minimum(np.interp(log_variance, *tried), 0.5 * np.exp(log_variance)))


def _predict(
    pixels: Array, colors: Array | None, lights: NDArray[Any], weights: Weights
) -> tuple[Array, Array]:
    directions = np.ascontiguousarray(lights.T, dtype=np.float32)
    if is_tensor(pixels):
        from photostereo.reflectance.learned.torch_kernels import predict as predict_torch

        normals, errors = predict_torch(pixels, colors, directions, weights)
        return normals, errors
    from photostereo.reflectance.learned.kernels import predict

    if colors is None:
        colors = np.broadcast_to(pixels[..., None], (*pixels.shape, 3))
    return predict(colors, directions, weights)
