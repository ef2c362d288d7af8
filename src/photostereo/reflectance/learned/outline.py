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

#: Distance from the outline, in pixels, at which n_z is compared: well inside...
INSIDE = 4.0
#: ... and at the next pixel.
NEXT = 1.7
#: Error of the outline's normal (radians; 15°).
RIM_ERROR = 0.26
#: Error of a normal mixed with the background (radians; 29°).
GROUND_ERROR = 0.5
#: Ratio of n_z to that of the next pixel: up to this one, only surface...
SURFACE = 0.7
#: ... and from this one, background; on a circle it is 0.6.
GROUND = 0.9
#: n_z of the next pixel: up to this one, a contour...
CONTOUR = 0.55
#: ... and from this one, a cut.
CUT = 0.7
#: Ratio of n_z of the next pixel to that inside: up to this one, the surface turns away...
TURNING = 0.8
#: ... and from this one, it does not; on a circle it is 0.65.
STRAIGHT = 0.95
#: n_z of the typical normal near an occluding contour...
TYPICAL_TILT = 0.25
#: ... and the cosine of the largest angle of the normals inside to it: 50°.
DISAGREEMENT = np.cos(np.deg2rad(50.0))


@dataclass(frozen=True)
class Rim:
    """The outermost mask pixels, as indices in the order of the mask."""

    index: Indices  #: (R,) the pixels
    outward: Float64  #: (R, 2) unit vectors away from the object, x to the right, y up
    following: Indices  #: (R,) the pixels at distance :data:`NEXT` from the outline
    inside: Indices  #: (R,) the pixels at distance :data:`INSIDE`
    depth: Float64  #: (R,) their exact distance


def rim_of(mask: BoolArray) -> Rim:
    """Find the rim of a mask.

    The border of the frame is not an outline; parts that are too thin have none.
    """
    depth = _depth(mask)
    rows, columns = np.nonzero(mask & (depth < 1.0))
    outward = _outward(mask, rows, columns)
    length = np.linalg.norm(outward, axis=1)
    clear = length > 1e-3
    rows = rows[clear]
    columns = columns[clear]
    outward = outward[clear] / length[clear, None]
    # From places in the picture back to numbers of mask pixels.
    number = np.full(mask.shape, -1, dtype=np.intp)
    number[mask] = np.arange(np.count_nonzero(mask))

    def pixels_at(distance: float) -> tuple[Indices, Float64]:
        """Return the pixels at a distance from the outline, and their exact depths."""
        step = distance - depth[rows, columns]
        r = np.clip(np.rint(rows + outward[:, 1] * step).astype(int), 0, mask.shape[0] - 1)
        c = np.clip(np.rint(columns - outward[:, 0] * step).astype(int), 0, mask.shape[1] - 1)
        return number[r, c], depth[r, c]

    following, _ = pixels_at(NEXT)
    inside, inside_depth = pixels_at(INSIDE)
    # A thin part has no inside to compare with.
    deeper = inside_depth > depth[rows, columns] + 1.0
    thick = (following >= 0) & (inside >= 0) & deeper
    return Rim(
        index=number[rows, columns][thick],
        outward=outward[thick],
        following=following[thick],
        inside=inside[thick],
        depth=inside_depth[thick],
    )


def _depth(mask: BoolArray) -> Float64:
    """Return the distance (H, W) of each pixel from the outline; infinite without one."""
    import cv2

    if mask.all():
        return np.full(mask.shape, np.inf)
    framed = np.pad(mask, 1, mode="edge").astype(np.uint8)
    distance = cv2.distanceTransform(framed, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distance[1:-1, 1:-1], dtype=np.float64) - 0.5


def _outward(mask: BoolArray, rows: Indices, columns: Indices) -> Float64:
    """Return vectors (R, 2) away from the object at some of its pixels.

    They are minus the slope of the smoothed mask.
    """
    import cv2

    border = cv2.BORDER_REPLICATE
    smooth = cv2.GaussianBlur(mask.astype(np.float64), (17, 17), 2.0, borderType=border)
    above = np.maximum(rows - 1, 0)
    under = np.minimum(rows + 1, mask.shape[0] - 1)
    before = np.maximum(columns - 1, 0)
    after = np.minimum(columns + 1, mask.shape[1] - 1)
    down = (smooth[under, columns] - smooth[above, columns]) / np.maximum(under - above, 1)
    right = (smooth[rows, after] - smooth[rows, before]) / np.maximum(after - before, 1)
    return np.stack([-right, down], -1)  # rows count downwards, y upwards


def with_rim(witness: Witness, mask: BoolArray, matte: Array = 0.0) -> Witness:
    """Combine the witnesses so far with the outline if it is an occluding contour.

    Parameters
    ----------
    witness : Witness
        The witnesses so far.
    mask : array of bool (H, W)
        The positions of the pixels, row by row.
    matte : array (N,)
        The share of the matte fit in the precision of a pixel, which doubt about the background
        does not reduce.
    """
    rim = rim_of(mask)

    def normals_at(index: Indices) -> NDArray[Any]:
        return to_numpy(witness.normals[like(index, witness.variance)])

    def as_witness(values: NDArray[Any]) -> Array:
        return like(values.astype(np.float32), witness.variance)

    inside = normals_at(rim.inside)
    flat = rim.outward * np.sqrt(1 - TYPICAL_TILT**2)
    up = np.full(len(inside), TYPICAL_TILT)
    typical = np.column_stack([flat, up])
    # Three questions: is it a contour, does the surface turn, does the rim show background?
    next_z = normals_at(rim.following)[:, 2]
    straight = next_z / np.maximum(inside[:, 2], 0.02)
    contour = np.clip((CUT - next_z) / (CUT - CONTOUR), 0.0, 1.0)
    contour *= np.clip((STRAIGHT - straight) / (STRAIGHT - TURNING), 0.0, 1.0)
    turns = ((inside * typical).sum(-1) > DISAGREEMENT) & (contour > 0)
    if not turns.any():
        return witness
    tilt = np.clip(inside[:, 2] * (2.0 / 3.0) / np.sqrt(np.maximum(rim.depth, 1.0)), 0.03, 0.9)
    steep = np.column_stack([rim.outward * np.sqrt(1 - tilt**2)[:, None], tilt])
    falls = normals_at(rim.index)[:, 2] / np.maximum(next_z, 0.02)
    ground = contour * np.clip((falls - SURFACE) / (GROUND - SURFACE), 0.0, 1.0)

    # The others lose weight where the pixel shows background; then the outline joins them.
    chosen = like(rim.index[turns], witness.variance)
    doubted_variance = witness.variance * 1.0
    # A share of 1 may be rounded.
    share = (1.0 - (matte + 0.0 * witness.variance)[chosen]).clip(0.0)
    doubted_variance[chosen] += share * as_witness(ground[turns] * GROUND_ERROR**2)
    normals = witness.normals * 1.0
    normals[chosen] = as_witness(steep[turns])
    variance = namespace(witness.variance).full_like(witness.variance, np.inf)
    variance[chosen] = as_witness(RIM_ERROR**2 / contour[turns] ** 2)
    return combine(Witness(witness.normals, doubted_variance), Witness(normals, variance))
