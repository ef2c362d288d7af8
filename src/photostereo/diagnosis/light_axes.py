"""Detect light files in other axes, by the surface that they give and by lights estimated from the photographs.

A light file in another convention gives scaled normals in that convention and explains the photographs just as
well, so residuals do not help. Three criteria do. A visible surface faces the camera (n_z > 0). Its slopes are those of
a height, so their curl vanishes. And if the outline of the object is its own edge, the normals there point outwards.

The curl does not change if x and y are both reversed (a hollow lit from the other side looks like a bump), so it
leaves pairs; the outline, if there is one, decides between the two.

Lights estimated from the photographs (:mod:`photostereo.lights.unknown`) do not depend on the light file. For a solid
object they are off by a few degrees; a file in other axes is off by thirty or more. For flat objects they may be turned
by 180°: a hollow lit from one side looks like a bump lit from the other. So those are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray, Indices
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.lights.geometry import (
    angles_between,
    axes_matrix,
    axes_words,
    conventions,
    from_axes,
    turn_between,
)
from photostereo.lights.thumbnail import Thumbnail, bright_enough, matte_fit
from photostereo.lights.unknown.crops import crop_photographs
from photostereo.lights.unknown.estimate import LEAST_PHOTOGRAPHS, estimate_lights

# Sensitivity: see :mod:`.checks`.
#: Degrees by which mistakes turn a typical normal: medians over rendered captures. If an order or a curve is wrong,
#: the photographs contradict each other, so the method's own error estimate includes it.
EFFECTS = {"light-axes": 30.0, "lights-reversed": 60.0, "mask-inverted": 30.0}
#: Other axes, or another order, must leave less than this share of what the given ones leave (6 and 8; 157 and 160 right).
CLEARLY_BETTER = 0.8
#: The curl counts only if at least this share of the object is curved.
CURVED = 0.25
#: If the normals along the outline point inward by this mean cosine, x and y are reversed.
INWARDS = -0.3
#: Above this share of normals that point away, or of lights from behind, all 48 conventions are tried.
AWAY = 0.2
#: A surface faces the camera if at most this share of its normals points away.
FACES = 0.05
#: Curls within this factor are equally good.
SAME_CURL = 1.1
#: The outline decides if the normals along it point outward or inward by this mean cosine.
DECIDES = 0.2
#: Slopes are limited to this; beyond it a coarse grid is not informative.
STEEPEST = 5.0
#: If the mean change of slope over two cells is below this, the surface is a plane.
FLAT = 0.01
#: Number of photographs used, evenly chosen: a fifth of a second. More change the mean error by less than a degree.
MOST = 24
#: An estimate with a larger expected error, in degrees, is not used. Rendered solids have 2 to 7.
SURE = 9.2
#: Directions that differ from the estimate by less than this agree with it. For 14 rendered solids the right axes
#: differ by 1 to 12°, all others by 33° or more; nothing changes between 15 and 30.
AGREES = 15.0
#: Directions that differ by more than this disagree with it.
DISAGREES = 28.0
#: What some axes look like.
LOOKS = {
    "x,-y,z": ", with y pointing down",
    "-x,y,z": ", mirrored in x",
    "-x,-y,z": ", turned by 180°",
    "y,x,z": ", with x and y exchanged",
}


@dataclass(frozen=True)
class Evidence:
    """Evidence that a field of normals is a surface seen from the camera."""

    away: float  #: share of the normals that point away from the camera
    #: mean |curl| of the slopes over the mean size of their derivatives; 0 for a height, about 0.7 for noise
    curl: float
    #: share of the cells that carry the curvature; small if it is a single edge, which says little; 0 for
    #: a plane and for structure finer than the grid
    curved_share: float
    #: mean cosine between the normals' x, y (of length up to 1) and the outline's; nan without one
    outwards: float
    outwards_share: float  #: share of the outline where they point outwards; nan without one


class CoarseSurface:
    """The matte normals of a thumbnail under given lights, to be seen in other axes."""

    def __init__(self, small: Thumbnail, lights: FloatArray, mask: BoolArray) -> None:
        self._normals = np.zeros((3, *small.mask.shape))
        self._normals[:, small.mask] = matte_fit(small.values, lights)[0].T
        self._useful = small.mask.copy()
        self._useful[small.mask] = bright_enough(small.values)
        # Where the frame cuts the object off, the object continues beyond it.
        padded = small.mask
        for axis, ends in enumerate(((mask[0], mask[-1]), (mask[:, 0], mask[:, -1]))):
            for first, end in enumerate(ends):
                width = [(0, 0), (0, 0)]
                width[axis] = (0, 6) if first else (6, 0)
                padded = np.pad(padded, width, mode="edge" if end.any() else "constant")
        smooth = cv2.GaussianBlur(padded.astype(np.float32), (0, 0), 2.0)
        eroded = cv2.erode(padded.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(bool)
        down, right = (slope[6:-6, 6:-6] for slope in np.gradient(smooth))
        self._outline = small.mask & ~eroded[6:-6, 6:-6] & self._useful
        outward = np.stack([-right[self._outline], down[self._outline]])
        self._outward = outward / np.maximum(np.linalg.norm(outward, axis=0), 1e-9)

    def turned(self, matrix: FloatArray) -> Evidence:
        """Return the evidence for the normals after multiplication by ``matrix``."""
        normals = np.tensordot(matrix, self._normals, axes=1)
        useful = self._useful
        unit = normals / np.maximum(np.linalg.norm(normals, axis=0), 1e-12)
        facing = unit[2]
        depth = np.where(facing < 0, -1, 1) * np.maximum(np.abs(facing), 1 / STEEPEST)
        slope = -unit[:2] / depth  # of the height, along x and y
        across = slope[:, 1:-1, 2:] - slope[:, 1:-1, :-2]
        upwards = slope[:, :-2, 1:-1] - slope[:, 2:, 1:-1]
        whole = (
            cv2.erode(useful.astype(np.uint8), np.ones((3, 3), np.uint8), borderValue=0)[1:-1, 1:-1]
            > 0
        )
        weight = (facing[1:-1, 1:-1] ** 2)[whole]
        bent = weight * np.sqrt((across**2 + upwards**2).sum(axis=0))[whole]
        total = float(bent.sum())
        # If neighbors differ more than cells farther apart, the structure is finer than the grid (a weave), and its
        # slopes on the grid are a moiré.
        middle = slope[:, 1:-1, 1:-1]
        near = np.abs(slope[:, 1:-1, 2:] - middle) + np.abs(slope[:, :-2, 1:-1] - middle)
        far = np.abs(across) + np.abs(upwards)
        flat = total <= FLAT * max(len(bent), 1) or bool(near[:, whole].sum() > far[:, whole].sum())
        along = (unit[:2, self._outline] * self._outward).sum(axis=0)
        enough = along.size >= 20
        return Evidence(
            away=float((facing[useful] < 0).mean()) if useful.any() else 0.0,
            curl=float((weight * np.abs(upwards[0] - across[1])[whole]).sum()) / max(total, 1e-12),
            curved_share=0.0 if flat else total**2 / float((bent**2).sum()) / len(bent),
            outwards=float(along.mean()) if enough else np.nan,
            outwards_share=float((along > 0).mean()) if enough else np.nan,
        )


def mistake(code: str, remedy: str, **values: Any) -> Finding:
    """Return the finding about a mistake in a capture."""
    return Finding(code, "problem", remedy=remedy, effect=EFFECTS.get(code, 0.0), **values)


def wrong_axes(surface: CoarseSurface, lights: FloatArray, axes_given: str) -> Finding | None:
    """Report other axes, or another order of lights on a ring, that give a surface if those of the file do not.

    Parameters
    ----------
    surface : CoarseSurface
        The matte normals under the lights as given.
    lights : (d, 3) array
        The directions as given.
    axes_given : str
        The axes with which the light file was read, or an empty string.
    """
    given = surface.turned(np.eye(3))
    behind = given.away > AWAY or bool((lights[:, 2] < 0).mean() > AWAY)
    facing = _facing_the_camera(surface, depth_too=behind)
    if not facing:
        return None
    least = min(evidence.curl for _, evidence in facing)
    is_curved = given.curved_share > CURVED
    if is_curved:
        ring = _turned_ring(surface, lights, given.curl)
        if ring is not None and ring.values["best"] < CLEARLY_BETTER * least:
            return ring
    curls = (behind or is_curved) and least < CLEARLY_BETTER * given.curl
    points_inward = given.outwards < INWARDS  # False without an outline
    if not (curls or points_inward or given.away > 0.5):
        return None
    good = [(axes, evidence) for axes, evidence in facing if evidence.curl <= SAME_CURL * least]
    clearest = max(abs(evidence.outwards) for _, evidence in good)
    decided = not np.isnan(given.outwards) and clearest > DECIDES
    axes, best = good[0]
    if decided:
        axes, best = max(good, key=lambda pair: pair[1].outwards)
    if np.array_equal(axes, np.eye(3)):
        return None
    return _explained(axes, given, best, decided=decided, axes_given=axes_given)


def _facing_the_camera(
    surface: CoarseSurface, *, depth_too: bool
) -> list[tuple[FloatArray, Evidence]]:
    """Axes in which the normals face the camera; z is exchanged with another axis only as a last resort."""
    tried = [(axes, surface.turned(axes.T)) for axes in conventions(depth_too=depth_too)]
    facing = [(axes, evidence) for axes, evidence in tried if evidence.away <= FACES]
    upright = [(axes, evidence) for axes, evidence in facing if abs(axes[2, 2]) == 1]
    return upright or facing


def usual_orders(count: int) -> list[tuple[str, Indices]]:
    """Return the usual ways in which lists get mixed up (shifted, reversed, sorted as text), and the places (d,)."""
    places = np.arange(count)
    orders: list[tuple[str, Indices]] = []
    for shift in sorted(range(1, count), key=lambda shift: min(shift, count - shift)):
        shortest = min(shift, shift - count, key=abs)
        orders.append((f"shifted by {shortest}", np.roll(places, -shift)))
    orders.append(("in reverse order", places[::-1]))
    for first in (0, 1) if count > 9 else ():
        as_text = np.array(sorted(range(count), key=lambda place: str(place + first)))
        orders += [
            ("sorted as text (1, 10, 11, 2)", order) for order in (as_text, np.argsort(as_text))
        ]
    return orders


def _turned_ring(surface: CoarseSurface, lights: FloatArray, curl: float) -> Finding | None:
    """Check for lights on a ring listed from a wrong start: all explain the photographs, only one gives a surface."""
    best = CLEARLY_BETTER * curl
    best_order = ""
    for words, places in usual_orders(len(lights)):
        turn = turn_between(lights, lights[places])
        if turn is None:
            continue  # not a rotation: the photographs would show it
        evidence = surface.turned(np.linalg.inv(turn))
        if evidence.away <= FACES and evidence.curl < best and not evidence.outwards < DECIDES:
            best = evidence.curl
            best_order = words
    if not best_order:
        return None
    why = (
        f"the slopes do not form a surface (curl {curl:.2f}), but do with the lights {best_order} "
        f"({best:.2f})"
    )
    return mistake("light-order", "lights-in-order", why=why, given=curl, best=best)


def _explained(
    axes: FloatArray, given: Evidence, seen: Evidence, *, decided: bool, axes_given: str
) -> Finding:
    """Report other axes, with the signs of them."""
    words = _instead_of(axes_given, axes)
    curls = seen.curl < CLEARLY_BETTER * given.curl
    signs = []
    if given.away > AWAY:
        signs.append(f"{100 * given.away:.0f} % of the normals point away from the camera")
    if curls:
        signs.append(
            f"the slopes do not form a surface (curl {given.curl:.2f}; with {words}, {seen.curl:.2f})"
        )
    if decided and given.outwards < seen.outwards - 0.1:
        outward = f"in {100 * given.outwards_share:.0f} %, with {words} in {100 * seen.outwards_share:.0f} %"
        signs.append(f"normals along the outline point outward {outward}")
    note = "" if decided else " If hollows then look like bumps, reverse x and y too."
    if axes_words(axes) == "-x,-y,z" and (given.away > AWAY or not curls):
        note = " If the object is hollow, nothing is wrong."
    return _other_axes(words, axes_given, why="; ".join(signs), note=note)


@dataclass(frozen=True)
class Opinion:
    """Comparison of given directions with those estimated from the photographs."""

    #: what the light file has in place of x, y and z, such as ``"x,-y,z"``; ``"x,y,z"`` if it is right
    axes: str
    #: given_degrees, degrees: how far the directions are from the estimate as given, and in those axes
    given_degrees: float
    degrees: float


def judge_axes(images: FloatArray, lights: FloatArray, mask: BoolArray) -> Opinion | None:
    """Return the axes in which directions (d, 3) agree with those estimated from photographs (d, H, W) or (d, H, W, 3).

    None if the object is flat, the estimate is uncertain, or no axes or several agree with it.
    """
    chosen = np.unique(np.linspace(0, len(lights) - 1, min(MOST, len(lights))).astype(int))
    if len(chosen) < LEAST_PHOTOGRAPHS:
        return None
    try:
        small = crop_photographs((images[number] for number in chosen), mask)
        estimate = estimate_lights(small, most_views=1)
    except CaptureError:  # the mask is too thin
        return None
    if estimate.verdict.is_flat or estimate.expected_error > SURE:
        return None
    tried = conventions(depth_too=False)
    turned = [from_axes(lights[chosen], axes) for axes in tried]
    degrees = [float(angles_between(each, estimate.directions).mean()) for each in turned]
    best = int(np.argmin(degrees))
    if degrees[best] >= AGREES or sum(angle < DISAGREES for angle in degrees) != 1:
        return None
    return Opinion(axes_words(tried[best]), degrees[0], degrees[best])


def compare_axes(
    reported: Finding | None, opinion: Opinion | None, axes_given: str
) -> Finding | None:
    """Compare a reported mistake with the axes that lights estimated from the photographs suggest.

    Parameters
    ----------
    reported : Finding or None
        What the surface says about the axes.
    opinion : Opinion or None
        What the estimated lights say about them.
    axes_given : str
        The axes with which the light file was read, or an empty string.

    Returns
    -------
    Finding or None
        None if nothing is wrong, or if the two contradict each other.
    """
    if opinion is None or (reported is not None and reported.code != "light-axes"):
        return reported
    fits = opinion.axes == "x,y,z"  # unchanged
    words = _instead_of(axes_given, axes_matrix(opinion.axes))
    if reported is None and fits:
        return None
    if reported is None:
        why = (
            "its lights differ from those estimated from the photographs by "
            f"{opinion.given_degrees:.0f}°"
        )
        agree = f", and with {words} by {opinion.degrees:.0f}°"
        return _other_axes(words, axes_given, why=why, agree=agree)
    advised = reported.values["axes"]
    if fits:
        # Only the exchange of z with another axis is a contradiction.
        return None if advised.endswith(",z") else reported
    if advised != words:
        return reported
    agree = (
        f"; the lights estimated from the photographs agree with {words} to {opinion.degrees:.0f}°"
    )
    return reported.changed(agree=agree)


def _instead_of(axes_given: str, axes: FloatArray) -> str:
    """Return the axes to give if those of the lights, read with ``axes_given``, are ``axes``."""
    if axes_given:
        return axes_words(axes_matrix(axes_given) @ axes)
    return axes_words(axes)


def _other_axes(
    axes: str, axes_given: str, *, why: str, agree: str = "", note: str = ""
) -> Finding:
    """Report that the light file should be read with ``axes`` instead of those given."""
    instead = f" instead of {axes_given}" if axes_given else ""
    if axes == "-x,-y,-z":
        instead = " instead of the axes given" if axes_given else ""
        return mistake("lights-reversed", "reverse-lights", instead=instead, why=why, axes=axes)
    kind = f"other axes{LOOKS.get(axes, '')}"
    remedy = "lights-axes"
    if axes == "x,y,z":
        kind = "the default axes, not those given"
        remedy = "default-axes"
    return mistake(
        "light-axes", remedy, kind=kind, why=why, agree=agree, axes=axes, instead=instead, note=note
    )
