"""How strong each light is, from photographs of anything whose shading is not known: one number per photograph.

A Lambertian pixel with b = albedo · normal shows I_i = s_i l_i·b. With the unknown w_i = 1 / s_i and P the projection
onto what no b can explain,  P = 1 - L (LᵀL)⁻¹ Lᵀ,  every pixel y asks for P diag(w) y = 0, so all pixels together

    minimize  Σ_y |P diag(w) y|²  =  wᵀ (P ∘ Σ_y y yᵀ) w      subject to  Σ_i w_i² Σ_y y_i² = 1

which is a symmetric eigenvalue problem of the size of the number of photographs: the whole image in a d × d matrix.
Its smallest eigenvalue is the share of the light that the directions cannot explain. Shadows and highlights are no
Lambertian light; they are left out of a second stage that alternates between b and s, entry by entry.

Only ratios of strengths can be known; their product is fixed to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.runtime.illumination import weighted_least_squares, without_matte
from photostereo.runtime.order import MAD_TO_SIGMA, known_medians

_MOST_PIXELS = 3000


@dataclass(frozen=True, eq=False)
class Strengths:
    """Strengths of the lights and how well they are known."""

    strengths: FloatArray  #: (d,) with geometric mean 1
    unexplained: float  #: share of the light that the directions cannot explain, whatever the strengths
    uncertainty: FloatArray  #: (d,) standard error of each strength, as a share of it


def sample_pixels(
    images: FloatArray, mask: BoolArray | None = None, *, most: int = _MOST_PIXELS, overexposed: bool = False
) -> FloatArray:
    """Informative pixels (n, d): neither dark in every photograph nor white in one, evenly over the mask.

    With ``overexposed`` pixels may be white in up to half of the photographs; those values are NaN.
    """
    frame = images.shape[1:3]
    inside = np.ones(frame, dtype=bool) if mask is None else mask
    index = np.flatnonzero(inside)
    index = index[:: max(1, len(index) // (4 * most))]
    values = np.asarray(images.reshape(len(images), -1)[:, index], dtype=np.float64).T
    if not len(values):
        return values
    top = float(values.max())
    brightest = values.max(axis=1)
    least = 0.03 if overexposed else 0.2  # beside white parts the ground is more informative
    good = brightest > max(least * float(np.percentile(brightest, 90)), 1e-12)
    if overexposed:
        values = np.where(values >= 0.98 * top, np.nan, values)
        good &= np.isnan(values).mean(axis=1) <= 0.5
    else:
        good &= brightest < 0.98 * top if (brightest >= 0.98 * top).mean() > 0.01 else True
    values = values[good]
    return np.asarray(values[:: max(1, len(values) // most)])


def unexplained_light(pixels: FloatArray, directions: FloatArray) -> tuple[float, FloatArray]:
    """The share of the light in ``pixels`` (n, d) that no Lambertian surface under these directions explains, and
    the best strengths.

    >>> rng = np.random.default_rng(0)
    >>> lights = rng.normal(size=(8, 3)) + [0, 0, 4]
    >>> strengths = rng.uniform(0.6, 1.4, 8)
    >>> pixels = (rng.normal(size=(50, 3)) + [0, 0, 5]) @ lights.T * strengths
    >>> share, found = unexplained_light(pixels, lights)
    >>> bool(share < 1e-12), bool(np.allclose(found / found[0], strengths / strengths[0]))
    (True, True)
    """
    from scipy.linalg import eigh

    unit = pixels / np.maximum(np.linalg.norm(pixels, axis=1, keepdims=True), 1e-12)
    gram = unit.T @ unit
    axes, _ = np.linalg.qr(directions)
    project = np.eye(len(directions)) - axes @ axes.T
    weight = np.maximum(np.diag(gram), 1e-9 * np.trace(gram))
    values, vectors = eigh(project * gram, np.diag(weight), subset_by_index=[0, 0])
    inverse = vectors[:, 0] * np.sign(np.sum(vectors[:, 0]))
    strengths = 1.0 / np.maximum(inverse, 1e-3 * np.abs(inverse).max())
    return max(float(values[0]), 0.0), np.asarray(strengths / np.exp(np.mean(np.log(strengths))))


def strengths_from_shading(
    images: FloatArray, directions: FloatArray, mask: BoolArray | None = None, *, max_iter: int = 200
) -> Strengths:
    """Strengths of the lights from any matte object, together with its normals: three photographs are needed for a
    normal, and at least two more determine the strengths.
    """
    if len(images) < 5:
        raise CaptureError(
            f"The strengths of the lights cannot be found from {len(images)} photographs of an unknown object: at "
            "least five are needed. Put a matte ball or a gray card beside the object.",
            code="too-few-photographs",
            found=len(images),
        )
    pixels = sample_pixels(images, mask)
    if len(pixels) < 50:
        raise CaptureError(
            "The strengths of the lights cannot be found from the object: fewer than 50 of its pixels are well "
            "exposed. Check the mask and the exposure.",
            code="too-few-pixels",
        )
    share, strengths = unexplained_light(pixels, directions)
    norm = np.linalg.norm(pixels, axis=1, keepdims=True)
    pixels = pixels / norm
    weight = np.ones(pixels.shape)
    constant: FloatArray = np.zeros(3)
    for _ in range(max_iter):
        lights = strengths[:, None] * directions + constant
        surface = weighted_least_squares(pixels, lights.T, weight)
        model = surface @ lights.T
        # Dark entries are shadows if the model says dark too, or shadows that the model cannot know.
        keep = model > 0.05 * model.max(axis=1, keepdims=True)
        keep &= pixels > 0.08 * pixels.max(axis=1, keepdims=True)
        miss = pixels - model
        scale = max(MAD_TO_SIGMA * float(np.median(np.abs(miss[keep]))), 1e-9) if keep.any() else 1.0
        weight = np.where(keep, np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) ** 2, 0.0)
        better, constant = _lights_of(pixels, surface, weight, directions)
        moved = float(np.abs(np.log(better / strengths)).max())
        # The alternation creeps along the valley of normals and strengths: overstep it.
        strengths = strengths * (better / strengths) ** 1.7
        strengths /= np.exp(np.mean(np.log(strengths)))
        if moved < 1e-5:
            break
    used = np.maximum((weight > 0).sum(axis=0), 1)
    spread = np.sqrt((weight * (pixels - model) ** 2).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-9))
    level = np.sqrt((weight * model**2).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-9))
    return Strengths(strengths, share, spread / np.maximum(level, 1e-12) / np.sqrt(used / 10.0))


def _lights_of(
    pixels: FloatArray, surface: FloatArray, weight: FloatArray, directions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Strengths along the directions, and one vector that is in all photographs: light that is always on."""
    count = len(directions)
    moment = np.einsum("nd,ni,nj->dij", weight, surface, surface)
    right = np.einsum("nd,nd,ni->di", weight, pixels, surface)
    # Σ_i (s_i l_i + a)ᵀ M_i (s_i l_i + a) - 2 r_iᵀ (s_i l_i + a) is quadratic in (s, a).
    system, target = np.zeros((count + 3, count + 3)), np.zeros(count + 3)
    along = np.einsum("dij,dj->di", moment, directions)
    system[np.arange(count), np.arange(count)] = (along * directions).sum(axis=1) + 1e-12
    system[:count, count:] = along
    system[count:, :count] = along.T
    system[count:, count:] = moment.sum(axis=0) * (1 + 1e-6)
    target[:count] = (right * directions).sum(axis=1)
    target[count:] = right.sum(axis=0)
    solution = np.linalg.solve(system, target)
    strengths = np.maximum(solution[:count], 1e-3 * np.abs(solution[:count]).max())
    mean = float(np.exp(np.mean(np.log(strengths))))
    return strengths / mean, solution[count:] / mean


def equal_strengths_suffice(pixels: FloatArray, directions: FloatArray) -> bool:
    """Whether lights of equal strength explain the pixels (n, d) nearly as well as the best strengths do."""
    unit = pixels / np.maximum(np.linalg.norm(pixels, axis=1, keepdims=True), 1e-12)
    left = without_matte(unit, directions.T)
    equal = float((left**2).sum() / max(float((unit**2).sum()), 1e-12))
    return equal < 1.25 * unexplained_light(pixels, directions)[0] + 1e-4


def strengths_from_flat(pixels: FloatArray, directions: FloatArray) -> FloatArray:
    """Strengths from pixels (n, d) of something flat that faces the camera, such as a relief or the table.

    If all normals are alike, a light's strength and its cosine cannot be separated; that the flat thing
    faces the camera settles it. Values that are NaN are left out.

    >>> lights = np.array([[0.6, 0, 0.8], [0, 0.8, 0.6], [0, 0, 1.0]])
    >>> found = strengths_from_flat(np.array([[0.2], [0.7]]) * lights[:, 2] * [1.0, 2.0, 0.5], lights)
    >>> np.round(found, 6)
    array([1. , 2. , 0.5])
    """
    logs = np.log(np.maximum(pixels, 1e-12))
    level = np.zeros(len(directions))
    for _ in range(60):  # what is missing (NaN) in some photographs is compared in the others
        before, level = level, known_medians(logs - known_medians((logs - level).T)[:, None])
        if float(np.ptp(level - before)) < 1e-6:
            break
    strengths = np.exp(level) / np.maximum(directions[:, 2], 0.05)
    return np.asarray(strengths / np.exp(np.mean(np.log(strengths))))


def strengths_from_card(images: FloatArray, directions: FloatArray, box: Sequence[int]) -> FloatArray:
    """Strengths from a matte gray card that faces the camera: brightness over the cosine of the light's angle.

    ``box`` is (left, top, right, bottom) in pixels, the last two not included.

    >>> images = np.stack([np.full((8, 8), 0.8 * 0.5), np.full((8, 8), 0.6 * 1.0)])
    >>> found = strengths_from_card(images, np.array([[0.6, 0, 0.8], [0.8, 0, 0.6]]), (2, 2, 6, 6))
    >>> round(float(found[1] / found[0]), 6)
    2.0
    """
    left, top, right, bottom = box
    frame = images.shape[1:3]
    if not (0 <= left < right <= frame[1] and 0 <= top < bottom <= frame[0]):
        raise CaptureError(
            f"The card {left},{top},{right},{bottom} is not inside the photographs, which are {frame[1]} × "
            f"{frame[0]} (width × height). Give left,top,right,bottom in pixels.",
            code="card-outside",
        )
    level = np.median(images[:, top:bottom, left:right].reshape(len(images), -1), axis=1).astype(np.float64)
    strengths = level / np.maximum(directions[:, 2], 1e-3)
    if not (strengths > 0).all():
        raise CaptureError(
            "The card is black in some photograph. Choose a part of it that every light reaches.",
            code="black-card",
        )
    return np.asarray(strengths / np.exp(np.mean(np.log(strengths))))
