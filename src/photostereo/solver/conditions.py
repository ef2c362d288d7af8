"""Measure noise and light strengths of a capture once, before a solve, for every method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import require_known
from photostereo.diagnosis.noise import Noise, NoiseByBrightness
from photostereo.lights.exposure import estimate_strengths, strength_sample
from photostereo.runtime.arrays import Array, like
from photostereo.runtime.illumination import some_lights

#: Whether photographs brighter or darker than their light strengths imply are corrected or used as they are.
STRENGTHS = ("auto", "given")


@dataclass(frozen=True, eq=False)
class Conditions:
    """Noise and strengths measured on a capture before a model is built."""

    #: noise of the uncorrected photographs; None if neither the model nor the strengths need it
    noise: NoiseByBrightness | None = None
    #: (d,) divisor of each photograph; None if the strengths are used as given
    factors: NDArray[np.float32] | None = None

    @property
    def corrects(self) -> bool:
        """Whether any photograph is changed."""
        return self.factors is not None and bool((self.factors != 1.0).any())

    def correct(self, values: Array) -> Array:
        """Divide intensities (N, d) or (N, d, 3) in place."""
        if self.corrects:
            factors = np.asarray(self.factors)
            values /= like(factors if values.ndim == 2 else factors[:, None], values)
        return values

    def correct_frames(self, frames: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Yield the corrected photographs one at a time."""
        for number, frame in enumerate(frames):
            yield np.asarray(frame / np.asarray(self.factors)[number]) if self.corrects else frame


def measure_conditions(measured: Noise, *, strengths: str, model_needs_noise: bool) -> Conditions:
    """Measure the noise and strengths of photographs."""
    require_known(strengths, STRENGTHS, "way to treat strengths", "unknown-strengths")
    if strengths == "given" and not model_needs_noise:
        return Conditions()
    noise = measured.by_brightness(blocks=model_needs_noise)
    if strengths == "given":
        return Conditions(noise)
    some = strength_sample(*measured.pixels.shape)
    sample = measured.pixels[some]
    amplified = None if measured.amplified is None else measured.amplified[some]
    variance = noise.at(sample, amplified).fine
    found = estimate_strengths(sample, some_lights(measured.lights, some), variance)
    return Conditions(noise, found.factors)
