"""Render photographs under near lights, in closed form on an analytic surface.

The camera is orthographic or perspective.

Every pixel is the intersection of its viewing ray with z(x, y), found by Newton's method; the
gradient there gives its normal, and each light has its own direction and distance. No code is
shared with the solver.
"""

from __future__ import annotations

import numpy as np

from photostereo.capture import Capture
from photostereo.lights.lights import Lights
from photostereo_lab.scenes.brdf import Brdf, brdf_named
from photostereo_lab.scenes.jets import Array
from photostereo_lab.scenes.render import HEADROOM

#: The mask's radius, in half frames.
RADIUS = 0.9
#: The dome's height, in half frames.
DOME = 0.35
#: Number of waves across the dome.
WAVES = 3.0
#: Height of the waves, in half frames.
WAVE = 0.02


def render_near(
    positions: Array,
    *,
    size: int = 96,
    distant: bool = False,
    focal: float | None = None,
    reflectance: str | Brdf = "lambertian",
    noise: float = 0.0,
    base: float = 0.0,
) -> Capture:
    """Render a wavy dome with mean depth z = 0, true normals (in the camera's frame) and depth.

    Parameters
    ----------
    positions : (d, 3) array
        Positions of the lights in object sizes, the diameter of its mask.
    size : int
        Side of the frame in pixels.
    distant : bool
        Put the same lights infinitely far away.
    focal : float, optional
        Focal length in pixels; None for an orthographic camera.
    reflectance : str or Brdf
        As for :func:`.render_scene`.
    noise : float
        Standard deviation of Gaussian noise, as a share of the mean intensity.
    base : float
        Height of the object above the origin of the lights, in object sizes.

    Examples
    --------
    >>> scene = render_near(np.array([[0, 0, 2.0], [1, 0, 2], [0, 1, 2]]), size=32)
    >>> scene.lights
    Lights(3 near lights: from given; equally strong)
    """
    half = 0.5 * size
    unit = RADIUS * size
    columns, rows = np.meshgrid(np.arange(size), np.arange(size))
    plane = np.stack([columns - half + 0.5, half - 0.5 - rows, 0.0 * rows], axis=-1)
    # A point at the parameter t of the ray from the plane z = 0 to the camera.
    axis = np.array([0.0, 0.0, 1.0])
    ray = np.broadcast_to(axis, plane.shape)
    if focal is not None:
        ray = (focal * axis - plane) / focal
    t = np.zeros((size, size))
    inside = np.hypot(plane[..., 0], plane[..., 1]) < RADIUS * half
    mean = float(np.mean(_height(plane[inside], half)[0]))
    for _ in range(30):
        points = plane + t[..., None] * ray
        height, dx, dy = _height(points, half)
        t -= (points[..., 2] - height + mean) / (ray[..., 2] - dx * ray[..., 0] - dy * ray[..., 1])
    points = plane + t[..., None] * ray
    _, dx, dy = _height(points, half)
    normals = np.stack([-dx, -dy, np.ones_like(dx)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    view = ray / np.linalg.norm(ray, axis=-1, keepdims=True)
    nv = (normals * view).sum(-1)
    mask = (np.hypot(points[..., 0], points[..., 1]) < RADIUS * half) & (nv > 0.1)
    scaled = unit * np.asarray(positions, dtype=np.float64)
    lights = scaled - unit * base * axis
    brdf = brdf_named(reflectance) if isinstance(reflectance, str) else reflectance
    albedo = 0.6 + 0.2 * np.sin(points[..., 0] * 12 / size)
    images = []
    for light, level in zip(lights, np.linalg.norm(scaled, axis=1), strict=True):
        toward = light - (0.0 * points if distant else points)
        distance = np.linalg.norm(toward, axis=-1)
        toward = toward / distance[..., None]
        nl = (normals * toward).sum(-1).clip(0.0)
        diffuse, specular = brdf.terms(nl.clip(1e-6), nv.clip(1e-6), (toward * view).sum(-1))
        images.append((albedo * diffuse + specular) * nl * (level / distance) ** 2)
    stack = np.array(images) * mask
    stack *= HEADROOM / stack.max()
    sigma = noise * stack[:, mask].mean()
    stack = (stack + np.random.default_rng(0).normal(0.0, sigma, stack.shape)).clip(0.0) * mask
    camera = None if focal is None else focal * axis
    return Capture(
        images=stack,
        lights=Lights(scaled) if distant else Lights(positions=scaled, camera=camera),
        mask=mask,
        name="dome",
        truth=np.where(mask[..., None], normals, 0.0),
        truth_depth=np.where(mask, points[..., 2], np.nan),
    )


def _height(points: Array, half: float) -> tuple[Array, Array, Array]:
    """Return z(x, y) and its derivatives; z is in the units of the points, pixels."""
    x = points[..., 0]
    y = points[..., 1]
    k = 2 * np.pi * WAVES / half
    dome = DOME * half * (1 - (x * x + y * y) / (RADIUS * half) ** 2)
    height = dome + WAVE * half * np.sin(k * x / 2) * np.cos(k * y / 2)
    down = -2 * DOME / (RADIUS**2 * half)
    dx = down * x + WAVE * half * k / 2 * np.cos(k * x / 2) * np.cos(k * y / 2)
    dy = down * y - WAVE * half * k / 2 * np.sin(k * x / 2) * np.sin(k * y / 2)
    return height, dx, dy
