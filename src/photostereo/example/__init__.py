"""The capture of ``photostereo demo`` and of the app's example: a synthetic owl under 20 lights, with true normals.

``owl.npz`` holds the colors, the normals, and which lights reach each pixel; ``python -m photostereo_lab.scenes.example``
regenerates it.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from photostereo.capture import Capture

#: Unit of the stored colors.
COLOR_UNIT = 1.2 / 255
#: Unit of the stored normals.
NORMAL_UNIT = 1.0 / 32767
#: Variance of the slope of the owl's facets, in squared radians (a standard deviation of 0.4).
FACETS = 0.16
#: Oren–Nayar reflectance of such facets: its constant part.
CONSTANT = 1.0 - 0.5 * FACETS / (FACETS + 0.33)
#: Oren–Nayar reflectance of such facets: its retroreflection.
RETRO = 0.45 * FACETS / (FACETS + 0.09)


def owl(snr: float, *, seed: int = 0, step: int = 1) -> Capture:
    """Return the photographs of the owl with Poisson noise.

    Parameters
    ----------
    snr : float
        Signal-to-noise ratio in decibels.
    seed : int
        Seed of the noise.
    step : int
        Return only every n-th pixel of a row or column.
    """
    with files(__name__).joinpath("owl.npz").open("rb") as file, np.load(file) as stored:
        mask = stored["mask"]
        lights = stored["lights"]
        color = COLOR_UNIT * stored["color"]
        slanted = NORMAL_UNIT * stored["normals"]
        lit = np.unpackbits(stored["lit"], axis=0, count=len(lights))
    upward = np.sqrt(np.maximum(1.0 - np.sum(slanted**2, axis=1), 0.0))
    normals = np.column_stack([slanted, upward])
    images = np.zeros((len(lights), *mask.shape, 3), dtype=np.float32)
    for image, light, reached in zip(images, lights, lit, strict=True):
        cosine = np.maximum(normals @ light, 0.0)
        retro = np.maximum(light[2] - cosine * upward, 0.0) / np.maximum(cosine, upward)
        image[mask] = color * (reached * cosine * (CONSTANT + RETRO * retro))[:, None]
    truth = np.zeros((*mask.shape, 3))
    albedo = np.zeros((*mask.shape, 3))
    truth[mask] = normals
    albedo[mask] = color
    every = np.s_[::step, ::step]
    clean = images[:, *every][:, mask[every]].astype(np.float64)
    total = sum(float(intensities.sum()) for intensities in clean)
    squares = sum(float((intensities * intensities).sum()) for intensities in clean)
    # Intensities times this are photons; their noise has the ratio asked for.
    photons = 10 ** (snr / 10) * total / squares
    noisy = np.zeros_like(images[:, *every])
    noisy[:, mask[every]] = np.random.default_rng(seed).poisson(photons * clean) / photons
    return Capture(
        noisy, lights, mask[every], name="owl", truth=truth[every], truth_albedo=albedo[every]
    )
