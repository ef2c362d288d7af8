"""Noise for experiments: Poisson at a signal-to-noise ratio, salt and pepper, Gaussian.

Each function returns a new capture and does not modify the input. The background (outside the mask)
is set to zero first and stays zero: it carries no signal but would count in the ratio. Nothing is
clipped or rescaled afterwards. The same seed gives the same noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.capture import Capture
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.findings import Finding
from photostereo.photographs.frames import LARGEST_INTENSITY

#: A generator or a seed; None for different noise each time.
Rng = np.random.Generator | int | None
#: Changes the intensities of a photograph (n,) or (n, 3).
Change = Callable[[NDArray[np.float64]], NDArray[np.float64]]
#: Limit in decibels, beyond which only noise or only signal is left.
SNR_LIMIT = 120.0


def noise_of_seed(seed: int) -> np.random.Generator:
    """Return the random generator for noise.

    It is a separate stream, so that curves over the noise level compare like with like.
    """
    return np.random.default_rng([seed, 2])


def add_poisson(capture: Capture, snr_db: float, rng: Rng = None) -> Capture:
    """Add photon noise, as of a camera with little light.

    With all intensities I of the mask pixels, over all photographs (and channels),

        Î = Poisson(α I) / α,        α = 10^(SNR/10) · ΣI / ΣI²

    so that E‖Î − I‖² = ΣI/α and therefore 10 log₁₀(‖I‖² / E‖Î − I‖²) = SNR. α is the number of
    photons at I = 1.

    Parameters
    ----------
    capture : Capture
        The clean capture; its intensities must not be negative.
    snr_db : float
        Signal-to-noise ratio in decibels; 5 is very noisy, 40 nearly noise-free.
    rng : Generator, int or None
        A generator or a seed; None for different noise each time.

    Raises
    ------
    ParameterError
        If the ratio is not a number within ±120 dB.
    CaptureError
        If the capture is black inside its mask, or has negative intensities.

    Examples
    --------
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> wall = Capture(images=np.full((3, 100, 100), 0.5), lights=lights, name="wall")
    >>> noisy = add_poisson(wall, 10, rng=0)
    >>> bool(abs(signal_to_noise(wall, noisy) - 10) < 0.1)
    True
    """
    _require_within(snr_db, "signal-to-noise ratio in decibels", -SNR_LIMIT, SNR_LIMIT)
    total = 0.0
    squares = 0.0
    for image in capture.images:
        values = image[capture.mask].astype(np.float64)
        if (values < 0).any():
            raise CaptureError(
                f"{capture.name} has negative intensities, for which Poisson noise is not "
                "defined. Subtract a smaller black level, or use Gaussian noise.",
                code="negative-intensities",
                name=capture.name,
            )
        total += float(values.sum())
        squares += float(values @ values) if values.ndim == 1 else float((values * values).sum())
    if squares == 0:
        raise CaptureError(
            f"{capture.name} is black inside its mask: no signal-to-noise ratio can be reached.",
            code="black-photographs",
        )
    photons = 10 ** (snr_db / 10) * total / squares
    generator = np.random.default_rng(rng)

    def expose(values: NDArray[np.float64]) -> NDArray[np.float64]:
        # The generator counts up to 2^63; counts far below that already have less noise than
        # float32 resolves.
        return generator.poisson(np.minimum(photons * values, 1e18)) / photons

    return _changed(capture, expose, f"Poisson noise at {snr_db:g} dB")


def add_salt_and_pepper(
    capture: Capture, fraction: float, rng: Rng = None, *, salt: float = 1.0
) -> Capture:
    """Replace a fraction of the (pixel, photograph) entries by 0 or ``salt``, half each.

    Parameters
    ----------
    capture : Capture
        The clean capture.
    fraction : float
        Probability, from 0 to 1, that an entry inside the mask is replaced, in all its channels.
    rng : Generator, int or None
        A generator or a seed; None for different noise each time.
    salt : float
        The bright value; 1 is the top of the intensity scale.

    Examples
    --------
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> wall = Capture(images=np.full((3, 100, 100), 0.5), lights=lights, name="wall")
    >>> noisy = add_salt_and_pepper(wall, 0.1, rng=0)
    >>> [round(float((noisy.images == value).mean()), 2) for value in (0, 0.5, 1)]
    [0.05, 0.9, 0.05]
    """
    _require_within(fraction, "fraction of lost entries", 0.0, 1.0)
    generator = np.random.default_rng(rng)

    def replace_some(values: NDArray[np.float64]) -> NDArray[np.float64]:
        draw = generator.random(len(values))
        values[draw < fraction] = salt
        values[draw < fraction / 2] = 0.0
        return values

    noise = f"salt and pepper noise on a fraction {fraction:g} of the entries"
    return _changed(capture, replace_some, noise)


def add_gaussian(capture: Capture, sigma: float, rng: Rng = None) -> Capture:
    """Add independent Gaussian noise of standard deviation ``sigma``: Î = I + σ g.

    Values may become negative, like those of a sensor after black-level subtraction.

    Parameters
    ----------
    capture : Capture
        The clean capture.
    sigma : float
        Standard deviation in intensity units.
    rng : Generator, int or None
        A generator or a seed; None for different noise each time.

    Examples
    --------
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> wall = Capture(images=np.full((3, 100, 100), 0.5), lights=lights, name="wall")
    >>> round(float(add_gaussian(wall, 0.1, rng=0).images.std()), 2)
    0.1
    """
    _require_within(sigma, "standard deviation of Gaussian noise", 0.0, LARGEST_INTENSITY)
    generator = np.random.default_rng(rng)

    def disturb(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values + sigma * generator.standard_normal(values.shape)

    return _changed(capture, disturb, f"Gaussian noise of standard deviation {sigma:g}")


def signal_to_noise(clean: Capture, noisy: Capture) -> float:
    """Return the measured signal-to-noise ratio in decibels.

    It is ``10 log₁₀(‖I‖² / ‖Î − I‖²)`` inside the mask of the clean capture.
    """
    signal = 0.0
    noise = 0.0
    for before, after in zip(clean.images, noisy.images, strict=True):
        values = before[clean.mask].astype(np.float64)
        error = after[clean.mask] - values
        signal += float(np.vdot(values, values))
        noise += float(np.vdot(error, error))
    if noise > 0:
        return float(10 * np.log10(signal / noise))
    return float("inf")


def _changed(capture: Capture, change: Change, noise: str) -> Capture:
    """Apply ``change`` to the mask pixels of each photograph in turn; set the rest to zero."""
    images = np.zeros_like(capture.images)
    for target, image in zip(images, capture.images, strict=True):
        target[capture.mask] = change(image[capture.mask].astype(np.float64))
    origin = capture.origin
    if origin is not None:
        origin = replace(origin, notes=(*origin.notes, Finding("noise-added", noise=noise)))
    return replace(capture.with_images(images), origin=origin)


def _require_within(value: float, what: str, low: float, high: float) -> None:
    # Written so that NaN fails.
    if not isinstance(value, (int, float, np.integer, np.floating)) or not low <= value <= high:
        raise ParameterError(
            f"The {what} must be a number from {low:g} to {high:g}, not {value!r}.",
            code="bad-noise",
            what=what,
            low=low,
            high=high,
            value=value,
        )
