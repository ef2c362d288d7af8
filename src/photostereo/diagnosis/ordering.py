"""Check whether light directions and photographs are in the same order.

Photographs of a matte object are linear in the lights, so as vectors over the photographs they lie in
the space spanned by the three columns of the light table, whatever the axes. In another order they do not. Square
roots are compared to keep highlights from dominating the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray
from photostereo.lights.thumbnail import bright_enough
from photostereo.runtime.illumination import projected, pseudo_inverse


@dataclass(frozen=True, eq=False)
class Order:
    """A way in which lights may be out of order: their positions (d,), and a description."""

    places: NDArray[np.intp]
    words: str


@dataclass(frozen=True, eq=False)
class OrderEvidence:
    """Shares of the photographs left unexplained."""

    given: float  #: by the lights in the order given
    least: float  #: by the best three columns: no order does better
    shuffled: float  #: by the lights in a random order (median)
    best: Order  #: the best of the orders tried
    best_share: float  #: the share it leaves unexplained

    @property
    def likeness_to_chance(self) -> float:
        """0 if the given order is the best possible, 1 if it is as bad as a random one."""
        return (self.given - self.least) / max(self.shuffled - self.least, 1e-9)


def usual_orders(count: int) -> list[Order]:
    """The usual ways in which lists get mixed up: shifted, reversed, sorted as text, one pair exchanged.

    >>> len(usual_orders(12)) > 12, usual_orders(4)[0].words
    (True, 'shifted by 1')
    """
    places = np.arange(count)
    found = []
    for shift in sorted(range(1, count), key=lambda shift: min(shift, count - shift)):
        by = shift if shift <= count // 2 else shift - count
        found.append(Order(np.roll(places, -shift), f"shifted by {by}"))
    found.append(Order(places[::-1], "in reverse order"))
    if count > 9:
        for first in (0, 1):
            as_text = np.array(sorted(range(count), key=lambda place: str(place + first)))
            found.append(Order(as_text, "sorted as text (1, 10, 11, 2)"))
            found.append(Order(np.argsort(as_text), "sorted as text (1, 10, 11, 2)"))
    return found


def order_evidence(values: FloatArray, lights: FloatArray) -> OrderEvidence:
    """Compare the given order with the usual mix-ups and with chance, from the brightness (d, N) of pixels."""
    roots = np.sqrt(np.maximum(values[:, bright_enough(values)], 0))
    roots /= np.linalg.norm(roots, axis=0)
    gram = roots @ roots.T
    total = float(np.trace(gram))
    rng = np.random.default_rng(0)  # reproducible
    chance = [unexplained(gram, lights[rng.permutation(len(lights))]) for _ in range(25)]
    orders = usual_orders(len(lights))
    shares = [unexplained(gram, lights[order.places]) for order in orders]
    best = int(np.argmin(shares))
    return OrderEvidence(
        given=unexplained(gram, lights),
        least=max(0.0, 1 - float(np.linalg.eigvalsh(gram)[-3:].sum()) / total),
        shuffled=float(np.median(chance)),
        best=orders[best],
        best_share=shares[best],
    )


def unexplained(gram: FloatArray, lights: FloatArray) -> float:
    """Share of the photographs' energy (Gram matrix over the photographs) outside the span of the lights."""
    inside = np.trace(projected(projected(gram, lights.T).T, pseudo_inverse(lights.T).T))
    return 1 - float(inside / np.trace(gram))
