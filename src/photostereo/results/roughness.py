"""Estimate the roughness of a surface from the width of its highlights in the photographs.

At each pixel, a diffuse part and a GGX lobe of roughness α, both non-negative, are fitted to the
intensities by least squares over the lights that reach it. The lobe with the smallest residual,
summed over a neighborhood, wins. If a highlight explains almost nothing, the surface counts as
fully rough. This is only an estimate: a lobe is visible only where a photograph catches it.

Most samples are one material, and the errors of normals and exposure, which follow the relief and
the color, would draw their pattern into its roughness. So one roughness is fitted to the whole
sample, and a neighborhood departs from it only as far as its residual says so.
"""

from __future__ import annotations

import cv2
import numpy as np

from photostereo.capture import Capture
from photostereo.core.conventions import Float64, FloatArray, gray_from_rgb
from photostereo.runtime.illumination import shading

#: Candidate perceptual roughnesses; α is their square, as in glTF and game engines.
CANDIDATES = np.linspace(0.15, 1.0, 18)
#: A lobe must explain this share of the diffuse residual.
LEAST_SHARE = 0.2
#: A lobe must explain this share of all light.
LEAST_LIGHT = 1e-4
#: Reflectance of the facets at normal incidence, as of lacquer; it only scales a lobe.
REFLECTANCE = 0.05
#: Below this cosine toward light or camera a surface is edge-on, and no lobe is visible.
FACING = 0.05
#: Larger frames are sampled on a grid of about this many pixels.
MOST_PIXELS = 150_000
#: Standard deviation of the neighborhood, in grid points.
NEIGHBORHOOD = 6.0
#: Weight of the whole sample beside it, for the decision whether there is a highlight at all.
WHOLE = 0.5
#: A neighborhood keeps the roughness of the whole sample unless its own lowers the residual by this
#: share. On rendered samples of one material, 95 % of all places gain less than 0.08; where there
#: are two materials, half of all places gain more than 0.1.
LEAST_GAIN = 0.08
#: From this share on, a neighborhood has its own roughness.
CLEAR_GAIN = 0.16


def estimate_roughness(capture: Capture, normals: FloatArray) -> Float64:
    """Estimate the perceptual roughness (H, W) in [0, 1]; 1 where no highlight is visible.

    Parameters
    ----------
    capture : Capture
        The photographs that the normals come from.
    normals : (H, W, 3) array
        Unit vectors.
    """
    from scipy.ndimage import gaussian_filter

    height, width = normals.shape[:2]
    step = max(1, int(np.ceil(np.sqrt(height * width / MOST_PIXELS))))
    residuals, matte, energy = _residuals(capture.evened(), normals, step)

    def around(values: Float64) -> Float64:
        """Average over the neighborhood, plus a share of the whole sample."""
        return np.asarray(gaussian_filter(values, NEIGHBORHOOD) + WHOLE * values.mean())

    whole = residuals.mean(axis=(1, 2))
    usual = int(np.argmin(whole))
    local = np.stack([gaussian_filter(values, NEIGHBORHOOD) for values in residuals])
    least = local.min(axis=0)
    gain = (local[usual] - least) / np.maximum(least, 1e-12)
    share = np.clip((gain - LEAST_GAIN) / (CLEAR_GAIN - LEAST_GAIN), 0.0, 1.0)
    whole_roughness = _between_candidates(whole[:, None, None])
    roughness = whole_roughness + share * (_between_candidates(local) - whole_roughness)
    without = around(matte)
    explained = without - np.min([around(values) for values in residuals], axis=0)
    shines = explained > np.maximum(LEAST_SHARE * without, LEAST_LIGHT * around(energy))
    # The decision is sharp; a seam between two materials is less visible if the map is smooth.
    coarse = gaussian_filter(np.where(shines, roughness, 1.0), 0.5 * NEIGHBORHOOD)
    fine = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.clip(np.asarray(fine, dtype=np.float64), 0.0, 1.0)


def _between_candidates(residuals: Float64) -> Float64:
    """Return the roughness with the least residual, by a parabola through three candidates."""
    middle = np.clip(np.argmin(residuals, axis=0), 1, len(CANDIDATES) - 2)[None]
    before, here, after = (
        np.take_along_axis(residuals, middle + offset, axis=0)[0] for offset in (-1, 0, 1)
    )
    bend = before - 2.0 * here + after
    shift = 0.5 * (before - after) / np.where(bend > 0, bend, np.inf)
    spacing = CANDIDATES[1] - CANDIDATES[0]
    return np.asarray(CANDIDATES[middle[0]] + spacing * np.clip(shift, -1.0, 1.0))


def _residuals(
    capture: Capture, normals: FloatArray, step: int
) -> tuple[Float64, Float64, Float64]:
    """Fit every candidate to the intensities of every pixel of a grid.

    Parameters
    ----------
    capture : Capture
        The photographs.
    normals : (H, W, 3) array
        Unit vectors.
    step : int
        Distance of the grid points, in pixels.

    Returns
    -------
    residuals : (candidates, h, w) array
        Sum of squared residuals over the lights.
    matte : (h, w) array
        The same without a lobe.
    energy : (h, w) array
        Sum of the squared intensities.
    """
    pictures = []
    for photograph in capture.images:
        picture = np.asarray(photograph[::step, ::step], dtype=np.float64)
        pictures.append(picture if picture.ndim == 2 else gray_from_rgb(picture))
    intensities: Float64 = np.stack(pictures).astype(np.float64)
    pixels = np.arange(capture.mask.size).reshape(capture.frame)[::step, ::step]
    lights = capture.lights_at(pixels.ravel())
    n = lights.in_view(np.asarray(normals[::step, ::step], dtype=np.float64).reshape(-1, 3))
    nl = shading(n, lights.matrix).T.reshape(intensities.shape)
    nv = n[:, 2].reshape(intensities.shape[1:])
    lit = (nl > FACING) & (nv > FACING)
    nl = np.where(lit, nl, 0.0)
    intensities = np.where(lit, intensities, 0.0)
    nv = np.maximum(nv, FACING)[None]
    # Distant lights have one direction for all pixels.
    places = (1, 1) if lights.matrix.ndim == 2 else intensities.shape[1:]
    lv = lights.matrix[..., 2, :].T.reshape(len(intensities), *places)

    def dot(a: Float64, b: Float64) -> Float64:
        """Sum over the lights."""
        return np.asarray(np.sum(a * b, axis=0))

    diffuse_square = np.maximum(dot(nl, nl), 1e-12)
    diffuse = dot(nl, intensities)
    energy = dot(intensities, intensities)
    matte = energy - diffuse**2 / diffuse_square
    residuals = np.empty((len(CANDIDATES), *matte.shape))
    for number, roughness in enumerate(CANDIDATES):
        lobe = nl * _ggx(float(roughness**2), np.maximum(nl, 1e-3), nv, lv)
        both = dot(nl, lobe)
        # Eliminate one of two unknowns; a negative lobe counts as none.
        pure = np.maximum(dot(lobe, lobe) - both**2 / diffuse_square, 1e-12)
        gain = np.maximum(dot(lobe, intensities) - both * diffuse / diffuse_square, 0.0)
        residuals[number] = matte - gain**2 / pure
    return residuals, matte, energy


def _ggx(alpha: float, nl: Float64, nv: Float64, lv: Float64) -> Float64:
    """Return π D G F / (4 n·l n·v) of microfacets, for the cosines n·l, n·v and l·v.

    They have Smith's masking and Schlick's Fresnel term.

    B. Walter et al., "Microfacet models for refraction through rough surfaces", 2007.
    https://doi.org/10.2312/EGWR/EGSR07/195-206
    """
    a2 = alpha**2
    half = np.sqrt(np.maximum(2.0 + 2.0 * lv, 1e-12))
    nh = np.clip((nl + nv) / half, 0.0, 1.0)
    facets = a2 / (nh * nh * (a2 - 1.0) + 1.0) ** 2
    toward_light = nv * np.sqrt(a2 + (1.0 - a2) * nl * nl)
    toward_camera = nl * np.sqrt(a2 + (1.0 - a2) * nv * nv)
    fresnel = REFLECTANCE + (1.0 - REFLECTANCE) * np.clip(1.0 - 0.5 * half, 0.0, 1.0) ** 5
    return np.asarray(0.5 * facets * fresnel / (toward_light + toward_camera))
