"""Detect common mistakes with light files, masks and photographs before a solve.

A thumbnail of the capture is enough. Nothing is changed here: each mistake is reported with evidence and a remedy.
If the photographs are inconclusive, nothing is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding
from photostereo.diagnosis.ordering import OrderEvidence, order_evidence, usual_orders
from photostereo.lights.axes import (
    Outline,
    SurfaceEvidence,
    axes_matrix,
    axes_words,
    conventions,
    outline_of,
    surface_evidence,
    turn_between,
    useful_cells,
)
from photostereo.lights.second_opinion import Opinion, judge_axes
from photostereo.lights.strengths import unexplained_light
from photostereo.lights.thumbnail import Thumbnail, bright_enough, matte_fit, shrink

# Sensitivity on 167 rendered captures (26, 13 of them also with eleven kinds of mistakes; 163 verdicts are right):
# lowering and raising a threshold of this file by 30 % changes no verdict unless numbers are given.
#: Degrees by which mistakes turn a typical normal: medians over rendered captures. If an order or a curve is wrong,
#: the photographs contradict each other, so the method's own error estimate includes it.
EFFECTS = {"light-axes": 30.0, "lights-reversed": 60.0, "mask-inverted": 30.0}
#: If even the best three lights leave more than this share unexplained, the object is not matte enough (a mirror).
NOT_MATTE = 0.12
#: Another order, or other axes, must leave less than this share of what the given one leaves (6 and 8; 157 and 160 right).
CLEARLY_BETTER = 0.8
#: Beyond this position between the best possible order (0) and a random one (1), the order is wrong (1 and 0).
LIKE_CHANCE = 0.5
#: The photographs have a tone curve if undoing it reduces the misfit to less than this share.
CURVE_RATIO = 0.72
#: Exponent that approximates the sRGB curve between shadow and light (1 and 0).
CURVE_EXPONENT = 1.8
#: The curl counts only if at least this share of the object is curved.
CURVED = 0.25
#: If the normals along the outline point inward by this mean cosine, x and y are reversed.
INWARDS = -0.3
#: A mask is inverted if it contains this share of the frame's border and the rest is this many times brighter.
INVERTED_BORDER, INVERTED_TIMES = 0.6, 2.0
#: Above this share of normals that point away, or of lights from behind, all 48 conventions are tried. A surface faces
#: the camera if at most the share FACES of its normals points away.
AWAY, FACES = 0.2, 0.05
#: Curls within this factor are equally good.
SAME_CURL = 1.1
#: The outline decides if the normals along it point outward or inward by this mean cosine.
DECIDES = 0.2
#: If a matte surface misses less of the variation than this, nothing is left for a curve to explain.
NO_MISFIT = 0.01
#: A varying exposure, or a curve, explains a wrong order if it leaves less than this share of the order's misfit.
EXPLAINS = 0.5


def find_mistakes(
    images: FloatArray,
    lights: FloatArray,
    mask: BoolArray,
    *,
    axes_given: str = "",
    straightened: bool = False,
) -> tuple[Finding, ...]:
    """Return the likely mistakes in a capture; empty if all is well or the photographs are inconclusive.

    The advised axes replace ``axes_given``, with which the light file was read; a tone curve that was
    already undone (``straightened``) is not reported.

    >>> from photostereo.scenes import render_scene
    >>> scene = render_scene("sphere", size=64)
    >>> find_mistakes(scene.images, scene.lights.directions, scene.mask)
    ()
    >>> find_mistakes(scene.images, scene.lights.directions * [1, -1, 1], scene.mask)[0].values["axes"]
    'x,-y,z'
    """
    if not any(image.any() for image in images):
        return ()
    inverted = _inverted_mask(images, mask)
    if inverted is not None:
        return (inverted,)  # the rest would be judged on the background
    small = shrink(images, mask)
    if len(lights) < 4 or small.mask.sum() < 100 or not bright_enough(small.values).any():
        return ()
    order = order_evidence(small.values, lights)
    if order.least > NOT_MATTE:
        return ()
    wrong_order = _wrong_order(order)
    if wrong_order is not None:
        # On shallow slopes, a tone curve has as large an effect as a wrong order, so it is tried first.
        pixels = small.values[:, bright_enough(small.values)].T
        strengths = unexplained_light(pixels, lights)[1]
        corrected = order_evidence(small.values / strengths[:, None], lights)
        if _wrong_order(corrected) is None and corrected.given < EXPLAINS * order.best_share:
            return ()  # varying exposure is corrected elsewhere
        straight = order_evidence(np.maximum(small.values, 0) ** CURVE_EXPONENT, lights)
        curve = None if straightened else _curve(small, lights)
        if curve is not None and _wrong_order(straight) is None and straight.given < EXPLAINS * order.given:
            return (curve,)
        return (wrong_order,)  # normals from it are meaningless
    curve = None if straightened else _curve(small, lights)
    axes = _wrong_axes(small, lights, mask, axes_given)
    found = [_compared(axes, judge_axes(images, lights, mask), axes_given), curve]
    return tuple(mistake for mistake in found if mistake is not None)


def _mistake(code: str, remedy: str, **values: Any) -> Finding:
    return Finding(code, "problem", remedy=remedy, effect=EFFECTS.get(code, 0.0), is_mistake=True, **values)


def _inverted_mask(images: FloatArray, mask: BoolArray) -> Finding | None:
    """Check whether the mask contains the border of the frame and the rest is much brighter."""
    if mask.all():
        return None
    border = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]]).mean()
    if border < INVERTED_BORDER:
        return None
    step = max(1, max(mask.shape) // 256)
    mean = images[:: max(1, len(images) // 12), ::step, ::step].mean(axis=0)
    inside = mask[::step, ::step]
    if inside.all() or not inside.any():
        return None
    kept, left_out = float(np.median(mean[inside])), float(np.median(mean[~inside]))
    if left_out < INVERTED_TIMES * max(kept, 1e-9):
        return None
    times = f"{left_out / kept:.0f} times" if kept > 0.01 * left_out else "more than a hundred times"
    return _mistake("mask-inverted", "automatic-mask", border=float(border), times=times)


def _wrong_order(order: OrderEvidence) -> Finding | None:
    given, best = order.given, order.best_share
    why = f"they leave {given:.1%} of the photographs unexplained, "
    if best < CLEARLY_BETTER * given:
        why += f"and {order.best.words} only {best:.1%}"
    elif order.likeness_to_chance > LIKE_CHANCE:
        best = order.least
        why += f"a random order leaves {order.shuffled:.1%}, and the best possible {best:.1%}"
    else:
        return None
    return _mistake("light-order", "lights-in-order", why=why, given=given, best=best)


def _wrong_axes(small: Thumbnail, lights: FloatArray, mask: BoolArray, axes_given: str) -> Finding | None:
    normals = small.on_grid(matte_fit(small.values, lights)[0])
    useful = useful_cells(small)
    top, bottom, left, right = (bool(side.any()) for side in (mask[0], mask[-1], mask[:, 0], mask[:, -1]))
    outline = outline_of(small, useful, (top, bottom, left, right))

    def evidence(axes: FloatArray) -> SurfaceEvidence:
        return surface_evidence(np.tensordot(axes.T, normals, axes=1), useful, outline)

    given = evidence(np.eye(3))
    behind = given.away > AWAY or bool((lights[:, 2] < 0).mean() > AWAY)
    tried = [(axes, evidence(axes)) for axes in conventions(depth_too=behind)]
    facing = [(axes, seen) for axes, seen in tried if seen.away <= FACES]
    flat = [(axes, seen) for axes, seen in facing if abs(axes[2, 2]) == 1]
    facing = flat or facing  # z is exchanged with another axis only as a last resort
    if not facing:
        return None
    least = min(seen.curl for _, seen in facing)
    wrong_side = given.away > 0.5
    curls = (behind or given.curved_share > CURVED) and least < CLEARLY_BETTER * given.curl
    inwards = given.outwards < INWARDS  # False if there is no outline
    turned, its_curl = _turned_ring(lights, normals, useful, outline, given)
    if turned is not None and given.curved_share > CURVED and its_curl < CLEARLY_BETTER * least:
        return turned
    if not (wrong_side or curls or inwards):
        return None
    good = [(axes, seen) for axes, seen in facing if seen.curl <= SAME_CURL * least]
    decided = not np.isnan(given.outwards) and max(abs(seen.outwards) for _, seen in good) > DECIDES
    axes, seen = max(good, key=lambda pair: pair[1].outwards) if decided else good[0]
    if np.array_equal(axes, np.eye(3)):
        return None
    return _axes_mistake(axes, given, seen, decided=decided, axes_given=axes_given)


def _axes_mistake(
    axes: FloatArray, given: SurfaceEvidence, seen: SurfaceEvidence, *, decided: bool, axes_given: str
) -> Finding:
    further = axes_words(axes)
    words = axes_words(axes_matrix(axes_given) @ axes) if axes_given else further
    signs = []
    if given.away > AWAY:
        signs.append(f"{100 * given.away:.0f} % of the normals point away from the camera")
    curls = seen.curl < CLEARLY_BETTER * given.curl
    if curls:
        signs.append(f"the slopes form no surface (curl {given.curl:.2f}, with {words} {seen.curl:.2f})")
    if decided and given.outwards < seen.outwards - 0.1:
        signs.append(
            f"normals along the outline point outward in {100 * given.outwards_share:.0f} %, with {words} in "
            f"{100 * seen.outwards_share:.0f} %"
        )
    why = "; ".join(signs)
    if words == "-x,-y,-z":
        instead = " instead of the axes given" if axes_given else ""
        return _mistake("lights-reversed", "reverse-lights", instead=instead, why=why, axes=words)
    note = "" if decided else " If hollows then look like bumps, reverse x and y too."
    if further == "-x,-y,z" and (given.away > AWAY or not curls):
        note = " If the object is hollow, nothing is wrong."
    name = {"x,-y,z": ", with y pointing down", "y,x,z": ", with x and y exchanged"}.get(words, "")
    return _other_axes(words, axes_given, name, why=why, note=note)


def _other_axes(
    axes: str, axes_given: str, name: str, *, why: str, agree: str = "", note: str = ""
) -> Finding:
    """Report that the light file should be read with ``axes`` instead of those given."""
    default = axes == "x,y,z"
    return _mistake(
        "light-axes",
        "default-axes" if default else "lights-axes",
        kind="the default axes, not those given" if default else f"other axes{name}",
        why=why,
        agree=agree,
        axes=axes,
        instead=f" instead of {axes_given}" if axes_given else "",
        note=note,
    )


def _compared(mistake: Finding | None, opinion: Opinion | None, axes_given: str) -> Finding | None:
    """Compare the mistake with the axes that lights estimated from the photographs suggest."""
    if opinion is None or (mistake is not None and mistake.code != "light-axes"):
        return mistake
    fits = opinion.axes == "x,y,z"  # unchanged
    words = axes_words(axes_matrix(axes_given) @ axes_matrix(opinion.axes)) if axes_given else opinion.axes
    if mistake is not None:
        advised = mistake.values["axes"]
        if fits:
            return mistake if advised[-2:] != ",z" else None
        agree = f"; the lights estimated from the photographs agree with {words} to {opinion.degrees:.0f}°"
        return mistake.changed(agree=agree) if advised == words else mistake
    if fits:
        return None
    names = {"x,-y,z": ", mirrored in y", "-x,y,z": ", mirrored in x", "-x,-y,z": ", turned by 180°"}
    why = f"its lights differ from those estimated from the photographs by {opinion.given_degrees:.0f}°"
    agree = f", and with {words} by {opinion.degrees:.0f}°"
    return _other_axes(words, axes_given, names.get(opinion.axes, ""), why=why, agree=agree)


def _turned_ring(
    lights: FloatArray,
    normals: FloatArray,
    useful: BoolArray,
    outline: Outline,
    given: SurfaceEvidence,
) -> tuple[Finding | None, float]:
    """Check for lights on a ring listed from a wrong start: every start explains the photographs, only one gives a surface.

    Returns the mistake and the curl that remains once it is corrected.
    """
    best: tuple[float, str] | None = None
    for order in usual_orders(len(lights)):
        turn = turn_between(lights, lights[order.places])
        if turn is None:
            continue  # not a rotation: the photographs would show it
        turned = np.tensordot(np.linalg.inv(turn), normals, axes=1)
        seen = surface_evidence(turned, useful, outline)
        if not np.isnan(seen.outwards) and seen.outwards < DECIDES:
            continue
        if seen.away <= FACES and (best is None or seen.curl < best[0]):
            best = seen.curl, order.words
    if best is None or best[0] > CLEARLY_BETTER * given.curl:
        return None, given.curl
    why = f"the slopes do not form a surface (curl {given.curl:.2f}), but do with the lights {best[1]} ({best[0]:.2f})"
    return _mistake("light-order", "lights-in-order", why=why, given=given.curl, best=best[0]), best[0]


def _curve(small: Thumbnail, lights: FloatArray) -> Finding | None:
    """Check whether the photographs fit a matte surface better once the sRGB curve is undone."""
    values = small.values[:, bright_enough(small.values)]
    top = max(float(np.percentile(values, 99)), 1e-30)
    values = np.maximum(values, 0) / top  # dark-frame subtraction leaves negatives
    misfits = [
        float(np.median(matte_fit(values**power, lights, top=0.6, bottom=0.2)[1]))
        for power in (1.0, CURVE_EXPONENT)
    ]
    if misfits[0] < NO_MISFIT or misfits[1] > CURVE_RATIO * misfits[0]:
        return None
    return _mistake("tone-curve", "undo-srgb", misfit=misfits[0], undone=misfits[1])
