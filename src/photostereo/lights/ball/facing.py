"""A camera turned towards a ball: there its outline is a circle again.

Away from the camera's axis perspective stretches the outline of a ball to an ellipse, by r (1 / cos φ - 1) pixels for a
ball of radius r at the angle φ. A camera at the same place that looks at the ball would see a circle, and what it sees
follows from the photographs by turning the rays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.lights.ball.circle import Circle
from photostereo.lights.ball.geometry import Camera, outline_cone


@dataclass(frozen=True, eq=False)
class FacingView:
    """What a camera sees that looks at the ball."""

    images: FloatArray  #: (d, side, side)
    camera: Camera  #: its focal length and principal point, in the middle of the ball
    circle: Circle  #: the outline, with the edges of the photographs
    axes: FloatArray  #: (3, 3) its x, y and z as rows, in the axes of the photographs
    taken_by: Camera  #: the camera of the photographs

    def in_photographs(self, circle: Circle) -> Circle:
        """A circle in this view as the photographs show it: an ellipse, which is kept as points."""
        angle = np.linspace(0, 2 * np.pi, 180, endpoint=False)
        x, y = circle.x + circle.radius * np.cos(angle), circle.y + circle.radius * np.sin(angle)
        points = np.stack(_seen_by(self.taken_by, self.camera.rays(x, y) @ self.axes), axis=1)
        middle = points.mean(axis=0)
        radius = float(np.hypot(*(points - middle).T).mean())
        return replace(circle, x=float(middle[0]), y=float(middle[1]), radius=radius, points=points)


def facing_view(images: FloatArray, circle: Circle, camera: Camera) -> FacingView:
    """The photographs (d, H, W) as a camera would have taken them that looks at the ball in ``circle``.

    >>> camera = Camera(500.0, 50.0, 40.0)
    >>> view = facing_view(np.ones((1, 80, 100)), Circle(50.0, 40.0, 20.0), camera)
    >>> np.round(view.axes, 6) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    towards, _ = outline_cone(circle, camera)
    back = -towards
    right = np.cross([0.0, 1.0, 0.0], back)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(back, right), back])
    side = 2 * int(1.5 * circle.radius + 8) + 1
    middle = 0.5 * (side - 1)
    facing = Camera(camera.focal, middle, middle)
    v, u = np.mgrid[:side, :side].astype(np.float64)
    x, y = (part.astype(np.float32) for part in _seen_by(camera, facing.rays(u, v) @ axes))
    turned = np.stack(
        [
            cv2.remap(np.asarray(image, np.float32), x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
            for image in images
        ]
    )
    points = np.stack(
        _seen_by(facing, camera.rays(circle.points[:, 0], circle.points[:, 1]) @ axes.T), axis=1
    )
    radius = float(np.median(np.hypot(*(points - middle).T))) if len(points) else circle.radius
    outline = Circle(middle, middle, radius, circle.coverage, circle.residual, points)
    return FacingView(turned, facing, outline, axes, camera)


def _seen_by(camera: Camera, rays: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns and rows at which a camera sees rays (..., 3) in its own axes."""
    return (
        np.asarray(camera.x - camera.focal * rays[..., 0] / rays[..., 2]),
        np.asarray(camera.y + camera.focal * rays[..., 1] / rays[..., 2]),
    )
