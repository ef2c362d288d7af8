"""Geometry of a ball: its circle in the frame, its normals, and the direction of the light that a highlight mirrors.

The camera looks along -z. In an orthographic picture a point of the ball at (dx, dy) from its center, in units of
the radius and y up, has the normal n = (dx, dy, √(1 - dx² - dy²)).

The light that reaches the camera from a highlight obeys the law of the mirror, l = 2 (n·v) n - v with v = (0, 0, 1).

With a focal length f (in pixels) the camera sees every point along its own ray, and the outline of the ball is a
cone: all unit rays e to the outline satisfy e·c = cos α, with c the direction to the center and α the half angle.
That is linear in c / cos α, so the cone follows from the edges by linear least squares, and no circle is assumed.
A ball at distance 1 then has the radius sin α, and the ray to the highlight meets it at n.

Away from the camera's axis perspective stretches the outline of a ball to an ellipse, by r (1 / cos φ - 1) pixels for a
ball of radius r at the angle φ. A camera at the same place that points at the ball would see a circle, and its view
follows from the photographs by turning the rays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.runtime.quantiles import MAD_TO_SIGMA

VIEW = np.array([0.0, 0.0, 1.0])
#: Focal length of the widest expected lens, that of a phone, in widths of the frame. Half as much doubles the
#: reported error for a ball whose outline is not known.
WIDEST_LENS = 0.7
#: Error in pixels of a circle given by hand or by a painted mask.
_TYPED = 0.5
#: Number of neighboring edges with the same error.
_ALIKE = 10.0
#: Minimum error of an edge, in pixels.
_SHARP = 0.1
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
    points: FloatArray = field(
        default_factory=lambda: np.zeros((0, 2))
    )  #: (n, 2) the edges themselves
    #: standard errors of the center and of the radius in pixels, if the pixels of the rim determined them
    errors: tuple[float, float] | None = None

    def inside(self, frame: tuple[int, ...], *, share: float = 1.0) -> BoolArray:
        """Return the pixels of the frame inside the circle with ``share`` of its radius."""
        rows, cols = np.ogrid[: frame[0], : frame[1]]
        return np.asarray((cols - self.x) ** 2 + (rows - self.y) ** 2 <= (share * self.radius) ** 2)

    def with_margin(self, frame: tuple[int, int]) -> BoolArray:
        """Return the pixels of a ball with a margin for stray light: 4 % of its radius plus two pixels."""
        return self.inside(frame, share=1.04 + 2.0 / self.radius)

    def outline(self, count: int) -> FloatArray:
        """Return points (count, 2) evenly spread over the outline."""
        angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
        return np.stack(
            [self.x + self.radius * np.cos(angle), self.y + self.radius * np.sin(angle)], axis=1
        )

    def away_from(self, other: Circle) -> float:
        """Return the distance between the centers."""
        return float(np.hypot(self.x - other.x, self.y - other.y))

    def overlaps(self, other: Circle) -> bool:
        """Return whether the circles overlap, as two balls cannot."""
        return self.away_from(other) < 0.85 * (self.radius + other.radius)

    def is_same(self, other: Circle) -> bool:
        """Return whether two circles are the same to within a tenth of the radius."""
        smaller = min(self.radius, other.radius)
        return self.away_from(other) + abs(self.radius - other.radius) < 0.1 * smaller

    def is_centered_on(self, mask: BoolArray) -> bool:
        """Return whether the center is in the mask."""
        row = round(self.y)
        col = round(self.x)
        return 0 <= row < mask.shape[0] and 0 <= col < mask.shape[1] and bool(mask[row, col])

    def moved(self, dx: float, dy: float, growth: float = 0.0) -> Circle:
        """Return the circle, with its points, moved by (dx, dy) pixels and enlarged by ``growth``."""
        center = np.array([self.x, self.y])
        points = (self.points - center) * (1 + growth / self.radius) + center + np.array([dx, dy])
        x = float(self.x + dx)
        y = float(self.y + dy)
        radius = float(self.radius + growth)
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
            errors=None
            if self.errors is None
            else (factor * self.errors[0], factor * self.errors[1]),
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
    if (disc & mask).sum() > 0.97 * (disc | mask).sum():
        return circle
    return None


@dataclass(frozen=True)
class Camera:
    """Perspective: focal length and principal point in pixels (the middle of the frame if unknown)."""

    focal: float
    x: float
    y: float

    @classmethod
    def of_frame(cls, focal: float, frame: tuple[int, int]) -> Camera:
        """Return the camera whose axis goes through the middle of the frame."""
        return cls(focal, 0.5 * (frame[1] - 1), 0.5 * (frame[0] - 1))

    def rays(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return unit vectors from the camera through pixels (columns x, rows y), shape (..., 3)."""
        ray = np.stack(
            [x - self.x, self.y - y, np.full_like(np.asarray(x, float), -self.focal)], axis=-1
        )
        return np.asarray(ray / np.linalg.norm(ray, axis=-1, keepdims=True))


def ball_normals(
    circle: Circle, x: FloatArray, y: FloatArray, camera: Camera | None = None
) -> FloatArray:
    """Return unit normals of the ball at pixels (columns x, rows y); NaN outside its disc."""
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if camera is not None:
        return _perspective_normals(circle, x, y, camera)[0]
    nx = (x - circle.x) / circle.radius
    ny = (circle.y - y) / circle.radius
    square = 1.0 - nx * nx - ny * ny
    nz = np.sqrt(np.where(square >= 0, square, np.nan))
    return np.stack([nx, ny, nz], axis=-1)


def mirrored_directions(
    circle: Circle, x: FloatArray, y: FloatArray, camera: Camera | None = None
) -> FloatArray:
    """Return unit directions to the light whose highlights are at pixels (columns x, rows y); NaN outside the disc."""
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if camera is None:
        normals = ball_normals(circle, x, y)
        return np.asarray(2.0 * normals[..., 2:3] * normals - VIEW)
    normals, rays = _perspective_normals(circle, x, y, camera)
    return np.asarray(rays - 2.0 * (rays * normals).sum(axis=-1, keepdims=True) * normals)


def outline_cone(circle: Circle, camera: Camera) -> tuple[FloatArray, float]:
    """Return the direction from the camera to the ball's center, and the half angle α (radians) of its cone."""
    points = circle.points if len(circle.points) >= 12 else circle.outline(180)
    rays = camera.rays(*points.T)
    weights = np.ones(len(rays))
    axis = rays.mean(axis=0)
    for _ in range(15):
        # e·a = 1 with a = c / cos α; reweighted, because some edges belong to something else
        design = rays * weights[:, None]
        axis = np.linalg.lstsq(design, weights, rcond=None)[0]
        length = float(np.linalg.norm(axis))
        miss = np.arccos(np.clip(rays @ axis / length, -1, 1)) - np.arccos(min(1.0, 1.0 / length))
        scale = max(MAD_TO_SIGMA * float(np.median(np.abs(miss))), 1e-7)
        weights = np.sqrt(np.clip(1 - (miss / (4 * scale)) ** 2, 0, 1) ** 2)
    length = float(np.linalg.norm(axis))
    return np.asarray(axis / length), float(np.arccos(min(1.0, 1.0 / length)))


def unknown_perspective(circle: Circle, frame: tuple[int, int]) -> FloatArray:
    """Return by how many degrees (x, y) directions from a ball may be turned if the focal length is not known.

    A camera that sees the ball at the angle θ from its axis shows directions turned by θ, and an outline that is
    1 / cos θ times as long away from the middle of the frame as across. The result is the mean θ over all lenses up to
    the widest, weighted by the likelihood of the outline.
    """
    away = np.array([circle.x - 0.5 * (frame[1] - 1), 0.5 * (frame[0] - 1) - circle.y])
    distance = float(np.hypot(*away))
    if distance == 0:
        return away
    stretch, error = circle.stretch(away * [1, -1] / distance)
    angles = np.linspace(0, np.arctan2(distance, WIDEST_LENS * max(frame)), 200)
    odds = -0.5 * ((1 / np.cos(angles) - 1 - stretch) / error) ** 2
    angle = np.average(angles, weights=np.exp(odds - odds.max()))
    return np.asarray(np.degrees(angle) * away / distance)


def _perspective_normals(
    circle: Circle, x: FloatArray, y: FloatArray, camera: Camera
) -> tuple[FloatArray, FloatArray]:
    """Return normals where the rays through the pixels meet the ball (NaN where they miss it), and the rays."""
    center, half = outline_cone(circle, camera)
    rays = camera.rays(x, y)
    along = rays @ center
    square = along * along - np.cos(half) ** 2  # |c|² - R² = cos² α at distance 1
    distance = along - np.sqrt(np.where(square >= 0, square, np.nan))
    normals = (rays * distance[..., None] - center) / np.sin(half)
    return np.asarray(normals), rays


def facing_view(
    images: FloatArray, circle: Circle, camera: Camera
) -> tuple[FloatArray, Circle, Callable[[Circle], Circle]]:
    """Return the photographs (d, H, W) as a camera that points at the ball in ``circle`` would have taken them.

    Also returns the outline there, with the edges of the photographs, and a function that maps circles back: the
    photographs show an ellipse, which is stored as points.
    """
    back = -outline_cone(circle, camera)[0]
    right = np.cross([0.0, 1.0, 0.0], back)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(back, right), back])
    side = 2 * int(1.5 * circle.radius + 8) + 1
    middle = 0.5 * (side - 1)
    facing = Camera(camera.focal, middle, middle)
    v, u = np.mgrid[:side, :side].astype(np.float64)
    places = _seen_by(camera, facing.rays(u, v) @ axes).astype(np.float32)
    how = {"interpolation": cv2.INTER_CUBIC, "borderMode": cv2.BORDER_REPLICATE}
    turned = np.stack(
        [cv2.remap(np.asarray(image, np.float32), places, None, **how) for image in images]
    )
    points = _seen_by(facing, camera.rays(*circle.points.T) @ axes.T)
    radius = float(np.median(np.hypot(*(points - middle).T))) if len(points) else circle.radius

    def in_photographs(found: Circle) -> Circle:
        points = _seen_by(camera, facing.rays(*found.outline(180).T) @ axes)
        x, y = points.mean(axis=0).tolist()
        return replace(
            found, x=x, y=y, radius=float(np.hypot(*(points - [x, y]).T).mean()), points=points
        )

    return (
        turned,
        Circle(middle, middle, radius, circle.coverage, circle.residual, points),
        in_photographs,
    )


def _seen_by(camera: Camera, rays: FloatArray) -> FloatArray:
    """Return columns and rows (..., 2) at which a camera sees rays (..., 3) in its own axes."""
    places = camera.focal * rays[..., :2] / rays[..., 2:]
    return np.asarray(places * [-1.0, 1.0] + [camera.x, camera.y])
