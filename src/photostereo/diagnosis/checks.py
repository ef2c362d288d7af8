"""Detect common mistakes with light files, masks and photographs before a solve.

A thumbnail of the capture is enough. Nothing is changed here: each mistake is reported with evidence and a remedy.
If the photographs are inconclusive, nothing is reported.

Photographs of a matte object are linear in the lights, so as vectors over the photographs they lie in the space spanned by
the three columns of the light table, whatever the axes. In another order of the lights they do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding
from photostereo.core.wording import percent
from photostereo.diagnosis.light_axes import (
    CLEARLY_BETTER,
    CoarseSurface,
    compare_axes,
    judge_axes,
    mistake,
    usual_orders,
    wrong_axes,
)
from photostereo.lights.strengths import unexplained_by_equal, unexplained_light
from photostereo.lights.thumbnail import bright_enough, matte_fit, shrink

# Sensitivity on 167 rendered captures (26, 13 of them also with eleven kinds of mistakes; 163 verdicts are right):
# lowering and raising a threshold of this file or of `light_axes` by 30 % changes no verdict unless numbers are given.
#: If even the best three lights leave more than this share unexplained, the object is not matte enough (a mirror).
NOT_MATTE = 0.12
#: Beyond this position between the best possible order (0) and a random one (1), the order is wrong (1 and 0).
LIKE_CHANCE = 0.5
#: The photographs have a tone curve if undoing it reduces the misfit to less than this share.
CURVE_RATIO = 0.72
#: Exponent that approximates the sRGB curve between shadow and light (1 and 0).
CURVE_EXPONENT = 1.8
#: A mask is inverted if it contains this share of the frame's border ...
INVERTED_BORDER = 0.6
#: ... and the rest is this many times brighter.
INVERTED_TIMES = 2.0
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
    """
    if not any(image.any() for image in images):
        return ()
    inverted = _inverted_mask(images, mask)
    if inverted is not None:
        return (inverted,)  # the rest would be judged on the background
    small = shrink(images, mask)
    values = small.values
    useful = bright_enough(small.values)
    if len(lights) < 4 or small.mask.sum() < 100 or not useful.any():
        return ()
    order = order_evidence(values, lights)
    if order.least > NOT_MATTE:
        return ()
    curve = None if straightened else _curve(values[:, useful], lights)
    if order.is_wrong:
        # On shallow slopes, a tone curve has as large an effect as a wrong order, so it is tried first.
        strengths = unexplained_light(values[:, useful].T, lights)[1]
        even = order_evidence(values / strengths[:, None], lights)
        if not even.is_wrong and even.given < EXPLAINS * order.best:
            return ()  # varying exposure is corrected elsewhere
        straight = order_evidence(np.maximum(values, 0) ** CURVE_EXPONENT, lights)
        if curve is not None and not straight.is_wrong and straight.given < EXPLAINS * order.given:
            return (curve,)
        return (order.as_mistake(),)  # normals from it are meaningless
    axes = wrong_axes(CoarseSurface(small, lights, mask), lights, axes_given)
    found = (compare_axes(axes, judge_axes(images, lights, mask), axes_given), curve)
    return tuple(finding for finding in found if finding is not None)


def _inverted_mask(images: FloatArray, mask: BoolArray) -> Finding | None:
    """Check whether the mask contains the border of the frame and the rest is much brighter."""
    border = float(np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]]).mean())
    step = max(1, max(mask.shape) // 256)
    inside = mask[::step, ::step]
    if border < INVERTED_BORDER or inside.all() or not inside.any():
        return None
    mean = images[:: max(1, len(images) // 12), ::step, ::step].mean(axis=0)
    kept = float(np.median(mean[inside]))
    left_out = float(np.median(mean[~inside]))
    if left_out < INVERTED_TIMES * max(kept, 1e-9):
        return None
    if kept > 0.01 * left_out:
        times = f"{left_out / kept:.0f} times"
    else:
        times = "more than a hundred times"
    return mistake("mask-inverted", "automatic-mask", border=border, times=times)


@dataclass(frozen=True)
class OrderEvidence:
    """Shares of the photographs left unexplained by lights in several orders."""

    given: float  #: in the order given
    least: float  #: by the best three columns: no order does better
    shuffled: float  #: in a random order (median)
    best: float  #: in the best of the usual wrong orders
    words: str  #: description of that order

    @property
    def is_wrong(self) -> bool:
        """Whether another order is clearly better, or the given one is nearly as bad as a random one."""
        chance = (self.given - self.least) / max(self.shuffled - self.least, 1e-9)
        return self.best < CLEARLY_BETTER * self.given or chance > LIKE_CHANCE

    def as_mistake(self) -> Finding:
        """Report the wrong order."""
        best = self.best
        instead = f"and {self.words} only {percent(self.best)}"
        if best >= CLEARLY_BETTER * self.given:
            best = self.least
            instead = f"a random order leaves {percent(self.shuffled)}, and the best possible {percent(best)}"
        why = f"they leave {percent(self.given)} of the photographs unexplained, {instead}"
        return mistake("light-order", "lights-in-order", why=why, given=self.given, best=best)


def order_evidence(values: FloatArray, lights: FloatArray) -> OrderEvidence:
    """Compare the given order with the usual mix-ups and with chance, from the brightness (d, N) of pixels."""
    # Square roots keep highlights from dominating the sum.
    roots = np.sqrt(np.maximum(values[:, bright_enough(values)], 0))
    roots /= np.linalg.norm(roots, axis=0)
    gram = roots @ roots.T
    rng = np.random.default_rng(0)  # reproducible
    chance = [unexplained_by_equal(gram, lights[rng.permutation(len(lights))]) for _ in range(25)]
    tried = [
        (unexplained_by_equal(gram, lights[at]), words) for words, at in usual_orders(len(lights))
    ]
    # On a ring, several are equal: the likeliest.
    best, words = min(tried, key=lambda order: round(order[0], 9))
    return OrderEvidence(
        given=unexplained_by_equal(gram, lights),
        least=max(0.0, 1 - float(np.linalg.eigvalsh(gram)[-3:].sum()) / float(np.trace(gram))),
        shuffled=float(np.median(chance)),
        best=best,
        words=words,
    )


def _curve(values: FloatArray, lights: FloatArray) -> Finding | None:
    """Check whether the photographs fit a matte surface better once the sRGB curve is undone."""
    top = max(float(np.percentile(values, 99)), 1e-30)
    values = np.maximum(values, 0) / top  # dark-frame subtraction leaves negatives
    fits = [
        matte_fit(values**power, lights, top=0.6, bottom=0.2) for power in (1.0, CURVE_EXPONENT)
    ]
    misfit, undone = (float(np.median(left)) for _, left in fits)
    if misfit < NO_MISFIT or undone > CURVE_RATIO * misfit:
        return None
    return mistake("tone-curve", "undo-srgb", misfit=misfit, undone=undone)
