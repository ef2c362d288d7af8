"""The learned model: unit normals from the witnesses of each pixel, weighted by their certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Indices
from photostereo.diagnosis.noise import JPEG_SIDE, Noise, NoiseByBrightness, NoiseTable, PixelNoise
from photostereo.reflectance.learned.context.correct import Correction, Field, Square, find_field
from photostereo.reflectance.learned.distilled.network import Distilled
from photostereo.reflectance.learned.distilled.training import distill
from photostereo.reflectance.learned.evidence import (
    Observations,
    PixelEvidence,
    ask_network,
    gather_evidence,
)
from photostereo.reflectance.learned.matte import Witness, fit_both, matte_witness
from photostereo.reflectance.learned.outline import with_rim
from photostereo.reflectance.learned.trial import TRIAL_PIXELS, noise_part, try_noise
from photostereo.reflectance.learned.weights import context_network, set_network
from photostereo.reflectance.model import Facts, Fit, Model, Overview, Unknowns
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
#: Number of classes of similar spread in which the effect of a prior is averaged. Half or twice as
#: many change means by 0.1°.
SPREADS = 16
#: The minimum share of the squared error that remains: a prior is assumed to remove at most half of
#: an error.
LEAST_LEFT = 0.25


@dataclass(frozen=True, eq=False)
class SampleFacts:
    """What the model of a sample measures for all other pixels of a capture."""

    noise: float  #: :attr:`Learned.noise`, to which the weight of the prior is relative
    table: NoiseTable | None  #: how noise moves the normals, by their spread
    distilled: Distilled | None  #: a small network for this capture


@dataclass(frozen=True, eq=False)
class LearnedFacts(Facts):
    """What :class:`Learned` must know of a whole object to solve a part of it."""

    pixel_count: int  #: pixels of the object
    field: Field | None  #: the corrections of the context network
    correction: Correction | None = None  #: the same for the pixels of :meth:`at`
    sample: SampleFacts | None = None  #: None for the sample itself

    def at(self, rows: Indices, columns: Indices) -> Self:
        if self.field is None:
            return self
        return replace(self, correction=self.field.at(rows, columns))


@dataclass(frozen=True, eq=False)
class Answer:
    """Combined answer of the witnesses."""

    normals: Array  #: (N, 3) float64
    spread: Array  #: (N,) expected angle to the ground truth, radians
    variance: Array  #: (N,) its square without the outline
    #: measures how far noise moves the normals, by their spread
    try_noise: Callable[[], NoiseTable | None]


class Learned(Model):
    r"""A network trained on many materials, the matte fit and the outline, as one data term.

    .. math:: \sum_{px} w_{px} \, | n_{px} - m_{px} |^2

    with m the average of the witnesses (unit normals) and the weight w, 1 for a typical pixel and
    smaller if noise moves m more. The normals of this model have unit length; the albedo is that of
    a matte pixel in the photographs it faces.

    All that m takes from around a pixel is settled when the model starts: the average of neighbors
    that cannot be distinguished within the noise, the outline of the mask, and the context
    network's correction, which depends on the shape of the whole object. Parts of an object get the
    latter from a survey of small photographs.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    colors : array (N, d, 3), optional
        The same photographs in color.
    mask : array of bool (H, W), optional
        The positions of the pixels, row by row. Without it, neighbors, outline and context are not
        used.
    weights : str or Path, optional
        File with weights of the set network; by default the built-in ones.
    outline, neighbors, context : bool
        Which of them are used; see :class:`~photostereo.reflectance.learned.LearnedParameters`.
    noise : PixelNoise, optional
        Noise of these pixels; by default it is measured.
    facts : LearnedFacts, optional
        About the whole object, if these pixels are a part of it.
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
        facts: LearnedFacts | None = None,
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
        self._facts = facts or LearnedFacts(len(pixels), None)
        # Only the sample of a large capture measures for the others.
        self._is_sample = facts is not None and facts.sample is None
        self._started: Answer | None = None
        self._distilled: Distilled | None = None

    @classmethod
    def survey(
        cls, overview: Overview, control: Control, *, context: bool = True, **parameters: Any
    ) -> LearnedFacts:
        pixel_count = int(np.count_nonzero(overview.full_mask))
        if not context or not overview.mask.any():
            return LearnedFacts(pixel_count, None)
        model = cls(
            overview.pixels,
            overview.lights,
            colors=overview.colors,
            mask=overview.mask,
            **parameters,
        )
        evidence = model._gather(control)
        arrays = context_network().arrays
        field = control.aside(lambda: find_field(evidence, around_object(overview.mask), arrays))
        return LearnedFacts(pixel_count, replace(field, square=Square.around(overview.full_mask)))

    def facts(self, control: Control) -> LearnedFacts:
        self._answer(control)  # with it, the distilled network
        sample = SampleFacts(self.noise, self._table, self._distilled)
        return replace(self._facts, sample=sample)

    def _answer(self, control: Control = SILENT) -> Answer:
        """Return the answer, computed on first use."""
        if self._started is None:
            self._started = self._ask_witnesses(control)
            # No longer needed.
            self._colors = None
            self._pixel_noise = None
            self._facts = replace(self._facts, correction=None)
        return self._started

    def _gather(self, control: Control) -> PixelEvidence:
        """Compute the evidence of single pixels."""
        noise = self._pixel_noise
        if noise is None:
            by_brightness = NoiseByBrightness()
            if self._mask is not None:
                by_brightness = Noise(self._pixels, self._lights, self._mask).by_brightness()
            noise = by_brightness.at(self._pixels)
        sample = self._facts.sample
        return gather_evidence(
            Observations(self._pixels, self._colors, self._lights),
            self._mask,
            noise,
            self._network,
            neighbors=self._neighbors,
            distilled=None if sample is None else sample.distilled,
            control=control,
        )

    def _ask_witnesses(self, control: Control) -> Answer:
        evidence = self._gather(control)
        control.check()
        correction = self._correction(evidence)
        control.check()
        answer = correction.combine(evidence.network, evidence.matte)
        trial = self._trial(evidence, correction, answer)
        variance = answer.variance
        if self._is_sample and not is_tensor(self._pixels) and self._lights.ndim == 2:
            self._table = trial()
            self._distilled = distill(
                evidence.observations.pixels,
                evidence.observations.colors,
                evidence.matte,
                evidence.network,
                2.0 * noise_part(np.log(variance), self._table),
                self._facts.pixel_count,
                control,
            )
        control.check()
        if self._outline and self._mask is not None:
            answer = with_rim(answer, self._mask, matte=variance / evidence.matte.variance)
        # The outline makes a pixel more certain, but its noise is that of the photographs.
        spread = namespace(variance).sqrt(cast(answer.variance, "float64"))
        return Answer(cast(answer.normals, "float64"), spread, variance, trial)

    def _trial(
        self, evidence: PixelEvidence, correction: Correction, answer: Witness
    ) -> Callable[[], NoiseTable | None]:
        """Return a function that measures how noise moves the normals, on some of the pixels."""
        # Copies of a few pixels, so that the trial keeps no large array alive.
        some = slice(0, None, max(1, len(self._pixels) // TRIAL_PIXELS))
        few = evidence.some(some)
        fixed = correction.some(some)
        weights = self._network

        def ask(observations: Observations) -> Witness:  # without ``self``, which keeps it: a cycle
            fits = fit_both(observations.pixels, observations.lights, few.noise)
            matte = matte_witness(fits, few.noise, few.around)
            return fixed.combine(ask_network(matte, observations, weights), matte)

        return partial(try_noise, ask, answer.some(some), few, mean_lights(self._lights))

    def _correction(self, evidence: PixelEvidence) -> Correction:
        """Return the context's correction of the network's normals; none if disabled."""
        if self._facts.correction is not None:
            return self._facts.correction
        mask = self._mask
        if not self._context or mask is None or not mask.any():
            return Correction.none(len(self._pixels))
        return find_field(evidence, mask, context_network().arrays).at(*np.nonzero(mask))

    @cached_property
    def _table(self) -> NoiseTable | None:
        """How noise moves the normals, measured here or on the sample."""
        sample = self._facts.sample
        return self._answer().try_noise() if sample is None else sample.table

    @cached_property
    def _noise_part(self) -> Array:
        """Variance (N,) of one component of each normal due to the noise of the photographs."""
        log_variance = np.log(to_numpy(self._answer().variance))
        return like(noise_part(log_variance, self._table), self._answer().normals)

    @cached_property
    def _weight(self) -> Array:
        """Weight: 1 for a typical pixel of the capture, less if noise moves the answer more."""
        sample = self._facts.sample
        # A band weighs its pixels relative to the whole capture, not to itself.
        typical = self.noise if sample is None else sample.noise
        return (typical**2 + 1e-12) / (self._noise_part + 1e-12)

    @property
    def noise(self) -> float:
        """Standard deviation of one component of a normal due to the noise of the photographs.

        That is what a prior should remove, unlike an error that the network makes at neighboring
        pixels alike.
        """
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
        """``spread``: the expected angle in degrees between these normals and the ground truth.

        A prior removes noise from the network's normals. The removed part is uncorrelated with the
        remaining error, so the squared error decreases by the squared shift of the normals
        (Pythagoras), here averaged over pixels of similar spread.
        """
        answer = self._answer()
        spread = to_numpy(answer.spread)
        before = to_numpy(answer.normals)
        after = to_numpy(normals)
        moved = np.empty(len(after))
        for part in tensor_batches(after, copies=8):
            length = np.linalg.norm(after[part], axis=1, keepdims=True)
            shift = after[part] / np.maximum(length, 1e-30) - before[part]
            moved[part] = (shift**2).sum(axis=1)
        if not len(spread) or not moved.any():
            return {"spread": answer.spread * (180.0 / np.pi)}
        remaining = np.empty_like(spread)
        for alike in np.array_split(np.argsort(spread), min(SPREADS, len(spread))):
            # The shift of one pixel is mostly chance; that of many alike is not.
            share = moved[alike].mean() / max(float((spread[alike] ** 2).mean()), 1e-30)
            remaining[alike] = spread[alike] * np.sqrt(max(1.0 - share, LEAST_LEFT))
        return {"spread": like(remaining, answer.spread) * (180.0 / np.pi)}

    def albedo(self, normals: Array, unknowns: Unknowns) -> Array:
        """Return the albedo of a matte pixel with this normal.

        It uses the photographs whose light the pixel faces.
        """
        lights = like(self._lights.astype(np.float32), self._pixels)
        albedo = empty((len(normals),), normals)
        for part in tensor_batches(self._pixels, copies=8):
            n = normals[part]
            length = namespace(n).sqrt((n * n).sum(-1))[..., None] + 1e-30
            facing = shading(cast(n / length, "float32"), some_lights(lights, part))
            # A photograph whose light is behind the surface shows shadow or bounced light.
            facing = facing * (facing > 0)
            energy = (facing * facing).sum(-1) + 1e-6
            albedo[part] = (self._pixels[part] * facing).sum(-1) / energy
        return albedo


def around_object(mask: BoolArray) -> BoolArray:
    """Crop a mask to the object and a margin for filters.

    The order of pixels and the alignment of JPEG blocks are kept.
    """
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    if not len(rows):
        return mask
    top = max(int(rows[0]) - MARGIN, 0) // JPEG_SIDE * JPEG_SIDE
    left = max(int(columns[0]) - MARGIN, 0) // JPEG_SIDE * JPEG_SIDE
    return mask[top : rows[-1] + MARGIN + 1, left : columns[-1] + MARGIN + 1]
