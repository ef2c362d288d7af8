"""Estimate the roughness of a surface from the width of its highlights in the photographs.

At each pixel, a diffuse part and a GGX lobe of roughness α, both non-negative, are fitted to the intensities by
least squares over the lights that reach it. The lobe with the smallest residual, summed over a neighborhood,
wins. If a highlight explains almost nothing, the surface counts as fully rough. This is only an estimate: a lobe
is visible only where a photograph catches it.
"""

from __future__ import annotations

import cv2
import numpy as np

from photostereo.capture import Capture
from photostereo.core.conventions import Float64, FloatArray, gray_from_rgb
from photostereo.runtime.illumination import shading

#: Candidate perceptual roughnesses; α is their square, as in glTF and game engines.
TRIED = np.linspace(0.15, 1.0, 18)
#: A lobe must explain this share of the diffuse residual, and this share of all light.
LEAST_SHARE, LEAST_LIGHT = 0.2, 1e-4
#: Reflectance of the facets at normal incidence, as of lacquer; it only scales a lobe.
REFLECTANCE = 0.05
#: Below this cosine toward light or camera a surface is edge-on, and no lobe is visible.
FACING = 0.05
#: Larger frames are sampled on a grid of about this many pixels.
MOST_PIXELS = 150_000
#: Standard deviation of the neighborhood, in grid points.
NEIGHBORHOOD = 6.0
#: Weight of the whole sample beside it; it decides where no photograph shows a highlight.
WHOLE = 0.5


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

    capture = capture.evened()
    step = max(1, int(np.ceil(np.sqrt(normals.shape[0] * normals.shape[1] / MOST_PIXELS))))
    some = (
        np.asarray(photograph[::step, ::step], dtype=np.float64) for photograph in capture.images
    )
    seen = np.stack([values if values.ndim == 2 else gray_from_rgb(values) for values in some])
    lights = capture.lights_at(
        np.arange(capture.mask.size).reshape(capture.frame)[::step, ::step].ravel()
    )
    n = lights.in_view(np.asarray(normals[::step, ::step], dtype=np.float64).reshape(-1, 3))
    nl = shading(n, lights.matrix).T.reshape(seen.shape)
    nv = n[:, 2].reshape(seen.shape[1:])
    lit = (nl > FACING) & (nv > FACING)
    nl, seen = np.where(lit, nl, 0.0), np.where(lit, seen, 0.0)
    nv = np.maximum(nv, FACING)[None]
    places = (1, 1) if lights.matrix.ndim == 2 else seen.shape[1:]
    lv = lights.matrix[..., 2, :].T.reshape(len(seen), *places)
    dd, dy, yy = (np.sum(a * b, axis=0) for a, b in ((nl, nl), (nl, seen), (seen, seen)))
    matte = yy - dy**2 / np.maximum(dd, 1e-12)

    def around(values: Float64) -> Float64:
        """Sum over the neighborhood, plus a share of the whole sample."""
        return np.asarray(gaussian_filter(values, NEIGHBORHOOD) + WHOLE * values.mean())

    left = np.empty((len(TRIED), *matte.shape))
    for number, rough in enumerate(TRIED):
        lobe = nl * _ggx(float(rough**2), np.maximum(nl, 1e-3), nv, lv)
        ss, ds, sy = (np.sum(a * b, axis=0) for a, b in ((lobe, lobe), (nl, lobe), (lobe, seen)))
        # Eliminate one of two unknowns; a negative lobe counts as none.
        pure = np.maximum(ss - ds**2 / np.maximum(dd, 1e-12), 1e-12)
        gain = np.maximum(sy - ds * dy / np.maximum(dd, 1e-12), 0.0)
        left[number] = around(matte - gain**2 / pure)
    best = TRIED[np.argmin(left, axis=0)]
    without = around(matte)
    explained = without - left.min(axis=0)
    shines = explained > np.maximum(LEAST_SHARE * without, LEAST_LIGHT * around(yy))
    coarse = gaussian_filter(np.where(shines, best, 1.0), 0.5 * NEIGHBORHOOD)
    whole = cv2.resize(coarse, (normals.shape[1], normals.shape[0]), interpolation=cv2.INTER_LINEAR)
    return np.clip(np.asarray(whole, dtype=np.float64), 0.0, 1.0)


def _ggx(alpha: float, nl: Float64, nv: Float64, lv: Float64) -> Float64:
    """π D G F / (4 n·l n·v) of microfacets with Smith's masking and Schlick's Fresnel term, for cosines n·l, n·v and l·v.

    B. Walter et al., "Microfacet models for refraction through rough surfaces", 2007.
    https://doi.org/10.2312/EGWR/EGSR07/195-206
    """
    a2, half = alpha**2, np.sqrt(np.maximum(2.0 + 2.0 * lv, 1e-12))
    nh = np.clip((nl + nv) / half, 0.0, 1.0)
    facets = a2 / (nh * nh * (a2 - 1.0) + 1.0) ** 2
    toward_light = nv * np.sqrt(a2 + (1.0 - a2) * nl * nl)
    toward_camera = nl * np.sqrt(a2 + (1.0 - a2) * nv * nv)
    fresnel = REFLECTANCE + (1.0 - REFLECTANCE) * np.clip(1.0 - 0.5 * half, 0.0, 1.0) ** 5
    return np.asarray(0.5 * facets * fresnel / (toward_light + toward_camera))
