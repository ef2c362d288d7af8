"""A circle in the frame, a possible ball."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray

#: Error of a circle given by hand or by a painted mask; number of neighboring edges with the same error; and minimum
#: error of an edge. In pixels.
_TYPED, _ALIKE, _SHARP = 0.5, 10.0, 0.1
_ACROSS = np.array([1.0, 0.0])


@dataclass(frozen=True, eq=False)
class Circle:
    """A circle in the frame: center (x to the right, y **down**: columns and rows, pixel centers at integers)."""

    #: x, y, radius: in pixels
    x: float
    y: float
    radius: float
    coverage: float = 1.0  #: share of the outline inside the frame that is seen as an edge
    residual: float = 0.0  #: root mean square distance of those edges from the circle, in pixels
    points: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))  #: (n, 2) the edges themselves
    #: standard errors of the center and of the radius in pixels, if the pixels of the rim determined them
    errors: tuple[float, float] | None = None

    def inside(self, frame: tuple[int, ...], *, share: float = 1.0) -> BoolArray:
        """Return the pixels of the frame inside the circle with ``share`` of its radius."""
        rows, cols = np.ogrid[: frame[0], : frame[1]]
        return np.asarray((cols - self.x) ** 2 + (rows - self.y) ** 2 <= (share * self.radius) ** 2)

    def with_margin(self, frame: tuple[int, int], margin: float = 0.04) -> BoolArray:
        """Return the pixels of a ball with a margin for stray light: a share of its radius plus two pixels."""
        return self.inside(frame, share=1 + margin + 2.0 / self.radius)

    def outline(self, count: int) -> FloatArray:
        """Return points (count, 2) evenly spread over the outline."""
        angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
        return np.stack([self.x + self.radius * np.cos(angle), self.y + self.radius * np.sin(angle)], axis=1)

    def overlaps(self, other: Circle) -> bool:
        """Return whether the circles overlap, as two balls cannot."""
        return float(np.hypot(self.x - other.x, self.y - other.y)) < 0.85 * (self.radius + other.radius)

    def moved(self, dx: float, dy: float, growth: float = 0.0) -> Circle:
        """Return the circle, with its points, moved by (dx, dy) pixels and enlarged by ``growth``."""
        center = np.array([self.x, self.y])
        points = (self.points - center) * (1 + growth / self.radius) + center + np.array([dx, dy])
        x, y, radius = float(self.x + dx), float(self.y + dy), float(self.radius + growth)
        return replace(self, x=x, y=y, radius=radius, points=points)

    def scaled(self, factor: float) -> Circle:
        """Return the circle in a frame with ``factor`` times the resolution."""
        shift = 0.5 * (factor - 1.0)  # pixel centers, not corners, are at integers
        return replace(
            self,
            x=factor * self.x + shift,
            y=factor * self.y + shift,
            radius=factor * self.radius,
            residual=factor * self.residual,
            points=factor * self.points + shift,
            errors=None if self.errors is None else (factor * self.errors[0], factor * self.errors[1]),
        )

    def standard_errors(self) -> tuple[float, float]:
        """Return standard errors of the center and the radius in pixels: from the rim, its edges, or as given by hand."""
        if self.errors is not None:
            return self.errors
        if len(self.points) < 12:
            return _TYPED, _TYPED
        spread = self._errors(self._design()[:, :3], self.residual)
        return float(np.hypot(spread[1], spread[2])), float(spread[0])

    def stretch(self, along: FloatArray) -> tuple[float, float]:
        """Return the share by which the outline is longer along a unit vector (columns, rows) than across, and its error."""
        if len(self.points) < 12:
            return 0.0, np.inf
        design = self._design(along)
        length = np.hypot(*(self.points - [self.x, self.y]).T)
        fit = np.linalg.lstsq(design, length, rcond=None)[0]
        spread = self._errors(design, float(np.std(length - design @ fit)))
        return 2 * float(fit[3]) / self.radius, 2 * float(spread[3]) / self.radius

    def _design(self, along: FloatArray = _ACROSS) -> FloatArray:
        """Return the derivatives of each edge's distance from the center by radius, center and stretch."""
        toward = self.points - [self.x, self.y]
        toward = toward / np.maximum(np.linalg.norm(toward, axis=1, keepdims=True), 1e-9)
        return np.column_stack([np.ones(len(toward)), toward, 2 * (toward @ along) ** 2 - 1])

    @staticmethod
    def _errors(design: FloatArray, residual: float) -> FloatArray:
        # Edges on neighboring rays share their pixels and their disturbances.
        inverse = np.linalg.pinv(design.T @ design / _ALIKE)
        return np.asarray(max(residual, _SHARP) * np.sqrt(np.maximum(np.diag(inverse), 0)))


def visible_share(circle: Circle, frame: tuple[int, ...]) -> float:
    """Return the share of a circle's outline that lies inside the frame."""
    x, y = circle.outline(360).T
    return float(np.mean((x >= 1) & (x <= frame[1] - 2) & (y >= 1) & (y <= frame[0] - 2)))


def mask_circle(mask: BoolArray) -> Circle | None:
    """Return the circle of a mask picture, or None if the mask is not a disc."""
    rows, cols = np.nonzero(mask)
    if len(rows) < 200:
        return None
    circle = Circle(float(cols.mean()), float(rows.mean()), float(np.sqrt(len(rows) / np.pi)))
    if visible_share(circle, mask.shape) < 1:
        return None
    disc = circle.inside(mask.shape)
    return circle if (disc & mask).sum() > 0.97 * (disc | mask).sum() else None
