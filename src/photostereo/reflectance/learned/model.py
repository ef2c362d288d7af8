"""The learned model: unit normals from the witnesses of each pixel, weighted by their certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import GRAY_WEIGHTS, BoolArray, Float64
from photostereo.diagnosis.noise import JPEG_SIDE, Noise, NoiseByBrightness, NoiseTable, PixelNoise
from photostereo.reflectance.learned.context.correct import Correction, Field, Square, find_field
from photostereo.reflectance.learned.evidence import (
    Evidence,
    Photographs,
    ask_network,
    gather_evidence,
)
from photostereo.reflectance.learned.matte import Witness, fit_both, matte_witness
from photostereo.reflectance.learned.outline import with_rim
from photostereo.reflectance.learned.student import Student, learn
from photostereo.reflectance.learned.weights import context_network, set_network
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import (
    Array,
    cast,
    empty,
    is_tensor,
    like,
    namespace,
    tensor_batches,
    to_numpy,
)
from photostereo.runtime.illumination import mean_lights, shading, some_lights

#: Margin around the object, in pixels: more than the reach of a filter of 2 pixels.
MARGIN = 12
#: Number of pixels on which the effect of noise on the normals is measured.
TRIED = 3000
#: Number of classes of similar spread for it, and largest ratio of the variance of a class to that of the middle one.
SPREAD_CLASSES = 6
WIDEST = 10.0
#: Number of classes of similar spread in which the effect of a prior is averaged, and the minimum share of the squared
#: error that remains: a prior is assumed to remove at most half of an error. Half or twice the classes change means by 0.1°.
SPREADS = 16
LEAST_LEFT = 0.25
#: Ratio of the noise of a channel to that of the luma if the channels have independent noise: 1 / |GRAY_WEIGHTS|.
CHANNEL_TO_LUMA = 1.5


@dataclass(frozen=True)
class Answer:
    """Combined answer of the witnesses."""

    normals: Array  #: (N, 3) float64
    spread: Array  #: (N,) expected angle to the truth, radians
    variance: Array  #: (N,) its square without the outline
    #: measures how far noise moves the normals, by their spread
    try_noise: Callable[[], NoiseTable | None]


class Learned(Model):
    r"""A network trained on many materials, the matte fit and the outline, as one data term.

    .. math:: \sum_{px} w_{px} \, | n_{px} - m_{px} |^2

    with m the average of the witnesses (unit normals) and the weight w, 1 for a typical pixel and smaller if noise moves m
    more. The normals of this model have unit length; the albedo is that of a matte pixel in the photographs it faces.

    Inputs besides :class:`~photostereo.reflectance.learned.LearnedParameters`: ``mask`` gives the positions of the pixels,
    row by row (without it neighbors and the outline are not used), ``noise`` is that of these pixels (by default measured),
    and ``surroundings`` is the result of the context if these pixels are not the whole object; see :meth:`see_whole`.
    """

    noise_is_of_normals = True

    def __init__(
        self,
        pixels: Array,
        lights: NDArray[Any],
        *,
        colors: Array | None = None,
        mask: BoolArray | None = None,
        weights: str | Path | None = None,
        outline: bool = True,
        neighbors: bool = True,
        context: bool = True,
        noise: PixelNoise | None = None,
        surroundings: Correction | None = None,
    ) -> None:
        self._network = set_network(weights)
        self._pixels = pixels
        self._colors = colors
        self._lights = lights
        self._mask = None if mask is None else around_object(mask)
        self._outline = outline
        self._neighbors = neighbors
        self._context = context
        self._pixel_noise = noise
        self._surroundings = surroundings
        self._found: Answer | None = None
        self._sample: Learned | None = None
        self._captured = 0
        self._student: Student | None = None
        self._level: float | None = None

    def _answer(self, control: Control = SILENT) -> Answer:
        """Return the answer, computed on first use."""
        if self._found is None:
            self._found = self._ask_witnesses(control)
            self._colors = self._surroundings = self._pixel_noise = None  # no longer needed
        return self._found

    def _gather(self, control: Control) -> Evidence:
        """Compute the evidence of single pixels."""
        pixels = self._pixels
        lights = self._lights
        mask = self._mask
        noise = self._pixel_noise
        if noise is None:
            known = (
                NoiseByBrightness() if mask is None else Noise(pixels, lights, mask).by_brightness()
            )
            noise = known.at(pixels)
        student = None if self._sample is None else self._sample._student
        seen = Photographs(pixels, self._colors, lights)
        how: dict[str, Any] = {"neighbors": self._neighbors, "student": student, "control": control}
        return gather_evidence(seen, mask, noise, self._network, **how)

    def _ask_witnesses(self, control: Control) -> Answer:
        pixels = self._pixels
        lights = self._lights
        mask = self._mask
        weights = self._network
        evidence = self._gather(control)
        control.check()
        correction = self._correction(evidence)
        control.check()
        found = correction.together(evidence.network, evidence.matte)
        some = slice(0, None, max(1, len(pixels) // TRIED))
        few = evidence.some(some)
        fixed = correction.some(some)

        def again(shaken: Photographs) -> Witness:
            fits = fit_both(shaken.pixels, shaken.lights, few.noise)
            matte = matte_witness(fits, few.noise, few.around)
            return fixed.together(
                ask_network(matte, shaken, weights), matte
            )  # not ``self``: a cycle

        tried = partial(try_noise, again, found.some(some), few, mean_lights(lights))
        variance = found.variance
        if self._captured and not is_tensor(pixels) and lights.ndim == 2:  # only one set of lights
            self._tried = tried()
            part = 2.0 * noise_part(np.log(variance), self._tried)
            answers = evidence.matte, evidence.network
            self._student = learn(*evidence.seen[:2], *answers, part, self._captured, control)
        control.check()
        if self._outline and mask is not None:
            found = with_rim(found, mask, matte=found.variance / evidence.matte.variance)
        spread = namespace(found.variance).sqrt(cast(found.variance, "float64"))
        return Answer(cast(found.normals, "float64"), spread, variance, tried)

    def _correction(self, evidence: Evidence) -> Correction:
        """Return the context's correction of the network's normals; none if disabled."""
        if self._surroundings is not None:
            return self._surroundings
        mask = self._mask
        if not self._context or mask is None or not mask.any():
            return Correction.none(len(self._pixels))
        return find_field(evidence, mask, context_network().arrays).at(*np.nonzero(mask))

    @classmethod
    def see_whole(
        cls,
        pixels: Array,
        lights: NDArray[Any],
        mask: BoolArray,
        whole: BoolArray,
        *,
        context: bool = True,
        control: Control = SILENT,
        **others: Any,
    ) -> Field | None:
        if not context or not mask.any():
            return None
        evidence = cls(pixels, lights, mask=mask, **others)._gather(control)
        arrays = context_network().arrays
        found = control.aside(lambda: find_field(evidence, around_object(mask), arrays))
        return replace(found, square=Square.around(whole))

    @cached_property
    def _noise_part(self) -> Array:
        """Variance (N,) of one component of each normal due to the noise of the photographs."""
        log_variance = np.log(to_numpy(self._answer().variance))
        return like(noise_part(log_variance, self._tried), self._answer().normals)

    @cached_property
    def _tried(self) -> NoiseTable | None:
        """This variance as a function of the spread of a pixel, measured here or on the sample."""
        return self._answer().try_noise() if self._sample is None else self._sample._tried

    @cached_property
    def _weight(self) -> Array:
        """Weight: 1 for a typical pixel, less if noise moves the answer more."""
        level = self.noise if self._level is None else self._level
        return (level**2 + 1e-12) / (self._noise_part + 1e-12)

    def lead(self, captured: int) -> None:
        self._captured = captured

    def adopt(self, sample: Model) -> None:
        """Weight pixels relative to those of the sample for which the prior was made."""
        assert isinstance(sample, Learned)
        # the sample's answer, and its student, come first
        self._sample = sample
        self._level = sample.noise

    @property
    def noise(self) -> float:
        """Standard deviation of one component of a normal due to the noise of the photographs: what a prior should remove,
        unlike an error that the network makes at neighboring pixels alike."""
        return float(np.sqrt(np.median(to_numpy(self._noise_part))))

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return np.eye(3)

    def alone(self, control: Control) -> Fit:
        return Fit(self._answer(control).normals)

    @cached_property
    def _moment(self) -> Array:
        return self._weight[:, None] * self._answer().normals

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return self._weight[:, None], self._moment

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return (self._moment + pull) / (self._weight + weight)[..., None]

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array:
        """Each pixel's own noise, in the units of :attr:`noise`."""
        return self._noise_part

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        difference = normals - self._answer().normals
        return (self._weight[:, None] * difference * difference).sum((-2, -1))

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``spread``: the expected angle in degrees between these normals and the truth.

        A prior removes noise from the network's normals. The removed part is uncorrelated with the remaining error, so
        the squared error decreases by the squared shift of the normals (Pythagoras), here averaged over pixels of
        similar spread.
        """
        spread = to_numpy(self._answer().spread)
        before = to_numpy(self._answer().normals)
        after = to_numpy(normals)
        moved = np.empty(len(after))
        for part in tensor_batches(after, copies=8):
            length = np.linalg.norm(after[part], axis=1, keepdims=True)
            moved[part] = ((after[part] / np.maximum(length, 1e-30) - before[part]) ** 2).sum(
                axis=1
            )
        if not len(spread) or not moved.any():
            return {"spread": self._answer().spread * (180.0 / np.pi)}
        left = np.empty_like(spread)
        for alike in np.array_split(np.argsort(spread), min(SPREADS, len(spread))):
            share = moved[alike].mean() / max(float((spread[alike] ** 2).mean()), 1e-30)
            left[alike] = spread[alike] * np.sqrt(max(1.0 - share, LEAST_LEFT))
        return {"spread": like(left, self._answer().spread) * (180.0 / np.pi)}

    def albedo(self, normals: Array, unknowns: Unknowns) -> Array:
        """Return the albedo of a matte pixel with this normal, from the photographs whose light it faces."""
        lights = like(self._lights.astype(np.float32), self._pixels)
        out = empty((len(normals),), normals)
        for part in tensor_batches(self._pixels, copies=8):
            n = normals[part]
            length = namespace(n).sqrt((n * n).sum(-1))[..., None] + 1e-30
            facing = shading(cast(n / length, "float32"), some_lights(lights, part))
            facing = facing * (facing > 0)
            out[part] = (self._pixels[part] * facing).sum(-1) / ((facing * facing).sum(-1) + 1e-6)
        return out


def around_object(mask: BoolArray) -> BoolArray:
    """Crop a mask to the object and a margin for filters; the order of pixels and the alignment of JPEG blocks are kept."""
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    if not len(rows):
        return mask
    top, left = (
        max(int(lines[0]) - MARGIN, 0) // JPEG_SIDE * JPEG_SIDE for lines in (rows, columns)
    )
    return mask[top : rows[-1] + MARGIN + 1, left : columns[-1] + MARGIN + 1]


def try_noise(
    witnesses: Callable[[Photographs], Witness],
    found: Witness,
    evidence: Evidence,
    lights: NDArray[Any],
) -> NoiseTable | None:
    """Measure the variance of one component of the normals due to noise, by their shift if as much noise is added again, as
    a function of their spread: increasing log variances, and the median in classes of similar spread. None: no noise."""
    noise = evidence.fine
    seen = evidence.seen
    deviation = np.sqrt(to_numpy(noise))[:, None]
    if not deviation.any():
        return None
    rng = np.random.default_rng(0)
    rank = np.argsort(
        np.lexsort(lights)
    )  # the same noise for the same light, independent of their order
    gray = to_numpy(seen.pixels)
    colors = None
    if seen.colors is None:
        shaken = gray + deviation * rng.standard_normal(gray.shape)[:, rank]
    else:
        values = to_numpy(seen.colors)
        extra = CHANNEL_TO_LUMA * deviation[..., None] * rng.standard_normal(values.shape)[:, rank]
        shaken = gray + extra @ np.asarray(GRAY_WEIGHTS)
        colors = like((values + extra).astype(np.float32), noise)
    again = witnesses(Photographs(like(shaken.astype(np.float32), noise), colors, seen.lights))
    moved = np.square(to_numpy(again.normals) - to_numpy(found.normals)).sum(-1)
    spread = np.log(to_numpy(found.variance))
    order = np.argsort(spread)
    classes = np.array_split(order, min(SPREAD_CLASSES, len(order)))
    places = [float(np.mean(spread[inside])) for inside in classes]
    # Two components in a plane: the median of their sum of squares is 2 ln 2 times the variance of one.
    variances = [float(np.median(moved[inside])) / (2.0 * np.log(2.0)) for inside in classes]
    typical = max(float(np.median(variances)), 1e-12)
    return np.asarray(places), np.clip(variances, typical / WIDEST, typical * WIDEST)


def noise_part(log_variance: NDArray[Any], tried: NoiseTable | None) -> Float64:
    """Variance (N,) of one component of the normals due to noise, from the measured table."""
    if tried is None:
        return np.zeros(len(log_variance))
    # Noise is part of the whole error: each of two components has at most half of the variance.
    return np.asarray(np.minimum(np.interp(log_variance, *tried), 0.5 * np.exp(log_variance)))
