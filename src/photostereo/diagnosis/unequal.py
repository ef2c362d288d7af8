"""Detect photographs that differ from the others in ways that no light explains: in sharpness, or in exposure.

The prediction of one photograph from all of them has the detail that they share. A blurred or displaced photograph
shows less of the detail than of the shading. If many do, the normals lose their detail, and no single photograph stands out.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding
from photostereo.diagnosis.metrics import angle_between
from photostereo.lights.exposure import StrengthEstimate, estimate_strengths, strength_sample
from photostereo.runtime.illumination import least_squares, without_matte

#: Side in pixels of the part that is compared.
SIDE = 384
#: Standard deviation in pixels of the blur that separates detail from shading.
DETAIL = 1.5
# 30 % less and more of DETAIL, SHARP, MANY and EXPLAINED changes the findings on 1 and 2, 1 and 1, 1 and 1, 4 and 2 of 72
# rendered captures, twelve of them blurred, twelve with falling exposure.
#: A photograph with less than this share of the detail of the sharpest tenth is not sharp. Half of the photographs blurred
#: by 2 pixels have at most 0.1, glossy reliefs at least 0.38.
SHARP = 0.25
#: One or two blurred photographs are detected while reading; this share of all spoils the detail of the rest.
MANY = 0.2
#: Varying strengths explain a matte misfit if they leave less than this share of it. Rendered metals with equal strengths
#: keep at least 1, with falling exposure 0.15 to 0.55; below 0.08 all are corrected
#: (:data:`photostereo.lights.exposure.EXPLAINED`).
EXPLAINED = 0.6


def relative_strengths(
    images: FloatArray, lights: FloatArray, mask: BoolArray, noise: float
) -> StrengthEstimate:
    """Estimate strengths of photographs (d, H, W) under distant lights (d, 3) with this standard deviation of the noise."""
    pixels = _sample(images, mask)
    return estimate_strengths(pixels, lights.T, np.full(len(pixels), noise**2, np.float32))


def unequal_photographs(
    images: FloatArray, lights: FloatArray, mask: BoolArray, found: StrengthEstimate
) -> Iterator[Finding]:
    """Find unequal photographs (d, H, W), given their strengths under distant lights (d, 3)."""
    if len(images) < 6:
        return
    pixels = _sample(images, mask)
    blurred = _not_sharp(images, lights, mask)
    normals = least_squares(pixels, lights.T)
    if blurred.mean() >= MANY:
        sharp = least_squares(pixels[:, ~blurred], lights[~blurred].T)
        yield Finding(
            "blurred-photographs",
            "problem",
            count=int(blurred.sum()),
            photographs=len(images),
            effect=float(angle_between(normals, sharp).mean()),
        )
    if not found.corrects and found.left < EXPLAINED:
        varies = float(np.log(found.relative).std())
        effect = _apart_but_for_a_turn(normals, least_squares(pixels / found.relative, lights.T))
        yield Finding("varying-exposure", "problem", share=varies, effect=effect)


def _apart_but_for_a_turn(one: FloatArray, other: FloatArray) -> float:
    """Mean angle in degrees between vectors (n, 3), after rotating one set to fit the other.

    A common rotation and strengths are nearly interchangeable, so uncertain strengths say nothing about it.
    """
    unit = [v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-30) for v in (one, other)]
    left, _, right = np.linalg.svd(unit[0].T @ unit[1])
    left[:, 2] *= np.linalg.det(left @ right)  # a rotation, not a reflection
    return float(angle_between(unit[0] @ (left @ right), unit[1]).mean())


def _sample(images: FloatArray, mask: BoolArray) -> FloatArray:
    index = np.flatnonzero(mask)[strength_sample(int(mask.sum()), len(images))]
    return np.ascontiguousarray(images.reshape(len(images), -1)[:, index].T)


def _not_sharp(images: FloatArray, lights: FloatArray, mask: BoolArray) -> BoolArray:
    """(d,) photographs that have much less of the common detail than the others."""
    rows, columns = (int(np.median(places)) for places in np.nonzero(mask))
    box = tuple(slice(max(0, middle - SIDE // 2), middle + SIDE // 2) for middle in (rows, columns))
    shown = np.asarray(images[:, *box], np.float32)
    inside = cv2.erode(mask[box].astype(np.uint8), np.ones((7, 7), np.uint8), borderValue=0) > 0
    pixels = shown.reshape(len(shown), -1).T
    matte = pixels - without_matte(pixels, lights.T)
    common = np.maximum(matte.T, 0).astype(np.float32).reshape(shown.shape)

    if not inside.any() or not common[:, inside].any():
        return np.zeros(len(images), bool)
    smooth = [
        np.stack([cv2.GaussianBlur(image, (0, 0), DETAIL) for image in s]) for s in (shown, common)
    ]

    def share(part: FloatArray, of: FloatArray) -> FloatArray:
        """Share of the common picture in each photograph."""
        part = part[:, inside]
        of = of[:, inside]
        return np.asarray((part * of).sum(axis=1) / np.maximum((of**2).sum(axis=1), 1e-30))

    sharp = share(shown - smooth[0], common - smooth[1]) / np.maximum(share(*smooth), 1e-6)
    return np.asarray(sharp < SHARP * np.quantile(sharp, 0.9))
