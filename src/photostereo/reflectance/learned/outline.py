"""The outline of the mask as a witness: where the surface turns away from the camera.

On an occluding contour the surface turns away like a circle: n_z² is proportional to the distance r
from the outline, and n points outwards. So the outermost pixel, at distances 0 to 1, has on average

    n_z = (2/3) n_z(r) / √r,

with n_z(r) from the other witnesses a few pixels inside. If their normal there points elsewhere,
the outline is not an occluding contour (a coin's edge, the foot of a vase) and is ignored. It is
also ignored if the surface still faces the camera one pixel further in (a cut mask), or if it is
steep but does not turn: by the same law, n_z one pixel further in is 0.65 of that at r = 4, while
on a bevel, or if a mask cuts through a slope, it is the same.

A pixel on the outline may also show the background, which is often brighter than a surface seen at
a grazing angle. The photographs then give a normal between the two. This can be detected: n_z must
decrease towards the outline, on a circle to 0.6 of the next pixel's. If it hardly decreases, the
other witnesses get less weight, except for the matte fit as far as it explains the photographs.
(Two matte surfaces in a pixel look like one, so this keeps an error that least squares has too.
Otherwise a flat rim, which no photograph contradicts, would be bent.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float64, Indices
from photostereo.reflectance.learned.matte import Witness, combine
from photostereo.runtime.arrays import Array, like, namespace, to_numpy

#: Distances from the outline, in pixels, at which n_z is compared: well inside, and at the next
#: pixel.
INSIDE = 4.0
NEXT = 1.7
#: Error of the outline's normal, and of a normal mixed with the background (radians).
RIM_ERROR = 0.26
GROUND_ERROR = 0.5
#: Ratio of n_z to that of the next pixel: up to the first, only surface; from the second,
#: background.
SURFACE = 0.7
GROUND = 0.9
#: n_z of the next pixel: up to the first, a contour; from the second, a cut.
CONTOUR = 0.55
CUT = 0.7
#: Ratio of n_z of the next pixel to that inside: up to the first, the surface turns away; from the
#: second, it does not.
TURNING = 0.8
STRAIGHT = 0.95
#: The outline is not an occluding contour if the normals inside are farther than this from the
#: typical normal of one.
TYPICAL_TILT = 0.25
DISAGREEMENT = np.cos(np.deg2rad(50.0))


@dataclass(frozen=True)
class Rim:
    """The outermost mask pixels, as indices in the order of the mask."""

    index: Indices  #: (R,) the pixels
    outward: Float64  #: (R, 2) unit vectors away from the object, x to the right, y up
    #: following, inside: (R,) the pixels at distances :data:`NEXT` and :data:`INSIDE` from the
    #: outline
    following: Indices
    inside: Indices
    depth: Float64  #: (R,) distance of the latter


def rim_of(mask: BoolArray) -> Rim:
    """Find the rim of a mask. The border of the frame is not an outline; parts that are too thin
    have none.
    """
    import cv2

    around = np.pad(mask, 1, mode="edge")
    below = np.full(mask.shape, np.inf)
    if not mask.all():
        away = cv2.distanceTransform(around.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        below = away[1:-1, 1:-1].astype(np.float64) - 0.5
    smooth = cv2.GaussianBlur(
        mask.astype(np.float64), (17, 17), 2.0, borderType=cv2.BORDER_REPLICATE
    )
    rows, columns = np.nonzero(mask & (below < 1.0))
    above = np.maximum(rows - 1, 0)
    under = np.minimum(rows + 1, mask.shape[0] - 1)
    before = np.maximum(columns - 1, 0)
    after = np.minimum(columns + 1, mask.shape[1] - 1)
    down = (smooth[under, columns] - smooth[above, columns]) / np.maximum(under - above, 1)
    right = (smooth[rows, after] - smooth[rows, before]) / np.maximum(after - before, 1)
    outward = np.stack([-right, down], -1)  # rows count downwards, y upwards
    length = np.linalg.norm(outward, axis=1)
    kept = length > 1e-3
    rows = rows[kept]
    columns = columns[kept]
    outward = outward[kept] / length[kept, None]
    number = np.full(mask.shape, -1, dtype=np.intp)
    number[mask] = np.arange(np.count_nonzero(mask))

    def within(depth: float) -> tuple[Indices, Float64]:
        step = depth - below[rows, columns]
        r = np.clip(np.rint(rows + outward[:, 1] * step).astype(int), 0, mask.shape[0] - 1)
        c = np.clip(np.rint(columns - outward[:, 0] * step).astype(int), 0, mask.shape[1] - 1)
        return number[r, c], below[r, c]

    (following, _) = within(NEXT)
    (inside, depth) = within(INSIDE)
    deep = (following >= 0) & (inside >= 0) & (depth > below[rows, columns] + 1.0)
    return Rim(
        number[rows, columns][deep], outward[deep], following[deep], inside[deep], depth[deep]
    )


def with_rim(found: Witness, mask: BoolArray, matte: Array = 0.0) -> Witness:
    """Combine the witnesses so far with the outline if it is an occluding contour; ``matte`` (N,)
    is the share of the matte fit in the precision of a pixel, which doubt about the background does
    not reduce.
    """
    rim = rim_of(mask)

    def normals_at(index: Indices) -> NDArray[Any]:
        return to_numpy(found.normals[like(index, found.variance)])

    inside = normals_at(rim.inside)
    flat = rim.outward * np.sqrt(1 - TYPICAL_TILT**2)
    up = np.full(len(inside), TYPICAL_TILT)
    typical = np.column_stack([flat, up])
    beside = normals_at(rim.following)[:, 2]
    straight = beside / np.maximum(inside[:, 2], 0.02)
    contour = np.clip((CUT - beside) / (CUT - CONTOUR), 0.0, 1.0)
    contour *= np.clip((STRAIGHT - straight) / (STRAIGHT - TURNING), 0.0, 1.0)
    turns = ((inside * typical).sum(-1) > DISAGREEMENT) & (contour > 0)
    if not turns.any():
        return found
    tilt = np.clip(inside[:, 2] * (2.0 / 3.0) / np.sqrt(np.maximum(rim.depth, 1.0)), 0.03, 0.9)
    steep = np.column_stack([rim.outward * np.sqrt(1 - tilt**2)[:, None], tilt])
    falls = normals_at(rim.index)[:, 2] / np.maximum(beside, 0.02)
    ground = contour * np.clip((falls - SURFACE) / (GROUND - SURFACE), 0.0, 1.0)

    chosen = like(rim.index[turns], found.variance)
    others = found.variance * 1.0
    doubted = (1.0 - (matte + 0.0 * found.variance)[chosen]).clip(
        0.0
    )  # a share of 1 may be rounded
    others[chosen] += doubted * like(
        (ground[turns] * GROUND_ERROR**2).astype(np.float32), found.variance
    )
    normals = found.normals * 1.0
    normals[chosen] = like(steep[turns].astype(np.float32), found.variance)
    variance = namespace(found.variance).full_like(found.variance, np.inf)
    variance[chosen] = like((RIM_ERROR**2 / contour[turns] ** 2).astype(np.float32), found.variance)
    return combine(Witness(found.normals, others), Witness(normals, variance))
