"""A camera turned towards a ball: there its outline is a circle again.

Away from the camera's axis perspective stretches the outline of a ball to an ellipse, by r (1 / cos φ - 1) pixels for a
ball of radius r at the angle φ. A camera at the same place that looks at the ball would see a circle, and what it sees
follows from the photographs by turning the rays.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.conventions import FloatArray
from photostereo.lights.ball import Camera, outline_cone
from photostereo.lights.circle import Circle


@dataclass(frozen=True, eq=False)
class FacingView:
    """What a camera sees that looks at the ball.

    Attributes
    ----------
    images : (d, side, side)
    camera : its focal length and principal point, in the middle of the ball
    circle : the outline, with the edges of the photographs
    axes : (3, 3) its x, y and z as rows, in the axes of the photographs
    """

    images: FloatArray
    camera: Camera
    circle: Circle
    axes: FloatArray


def facing_view(images: FloatArray, circle: Circle, camera: Camera) -> FacingView:
    """The photographs (d, H, W) as a camera would have taken them that looks at the ball in ``circle``.

    Examples
    --------
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
    rays = facing.rays(u, v) @ axes
    x = (camera.x - camera.focal * rays[..., 0] / rays[..., 2]).astype(np.float32)
    y = (camera.y + camera.focal * rays[..., 1] / rays[..., 2]).astype(np.float32)
    turned = np.stack(
        [
            cv2.remap(np.asarray(image, np.float32), x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
            for image in images
        ]
    )
    seen = camera.rays(circle.points[:, 0], circle.points[:, 1]) @ axes.T
    points = np.stack(
        [middle - facing.focal * seen[:, 0] / seen[:, 2], middle + facing.focal * seen[:, 1] / seen[:, 2]],
        axis=1,
    )
    radius = float(np.median(np.hypot(*(points - middle).T))) if len(points) else circle.radius
    return FacingView(
        turned, facing, Circle(middle, middle, radius, circle.coverage, circle.residual, points), axes
    )
