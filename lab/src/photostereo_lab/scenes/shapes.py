"""Shapes with exact depth and normals: plane, step, sphere, vase of revolution, bumpy relief, coin.

Each function samples a formula z(u, v) (see :mod:`photostereo_lab.scenes.surface` for the
coordinates) at the pixel centers of a frame; ``size`` is the side of a square, or (height, width),
in pixels. The owl is in :mod:`photostereo_lab.scenes.owl`.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.errors import ParameterError
from photostereo_lab.scenes.jets import Jet, constant, where
from photostereo_lab.scenes.surface import Size, Surface, frame_of, grid_variables, surface_of

#: Rounded shapes end where they come this close (object units) to facing away from the camera, to
#: avoid infinite slopes.
RIM = 0.03


def plane(size: Size = 256, *, slope: tuple[float, float] = (0.0, 0.0)) -> Surface:
    """Return a plane over the full frame, z = s_x u + s_y v.

    ``slope`` is how much it rises to the right and upward.

    >>> tilted = plane(4, slope=(0.75, 0.0))
    >>> tilted.normals[0, 0].tolist()
    [-0.6, 0.0, 0.8]
    """
    u, v, scale = grid_variables(size)
    return surface_of(slope[0] * u + slope[1] * v, np.ones(u.value.shape, bool), scale)


def step(size: Size = 256, *, height: float = 20.0, position: float = 0.5) -> Surface:
    """Return two flat terraces, the right one ``height`` pixels above the left one.

    Every normal is (0, 0, 1).

    >>> step((2, 4), height=3.0).depth[0].tolist()
    [0.0, 0.0, 3.0, 3.0]
    """
    u, _, scale = grid_variables(size)
    raised = np.zeros(u.value.shape, bool)
    raised[:, round(position * frame_of(size)[1]) :] = True
    terraces = where(raised, constant(height / scale, u), constant(0.0, u))
    return surface_of(terraces, np.ones_like(raised), scale)


def sphere(size: Size = 256, *, radius: float = 0.92) -> Surface:
    """The front of a sphere, z = √(R² − u² − v²); 1 touches the shorter side of the frame.

    >>> ball = sphere(65)
    >>> ball.normals[32, 32].tolist(), round(float(ball.depth[32, 32]), 3)
    ([0.0, 0.0, 1.0], 29.9)
    """
    if not radius > 0.0:
        raise ParameterError(
            f"The sphere's radius is {radius:g}, but it must be above 0.",
            code="bad-radius",
            radius=radius,
        )
    u, v, scale = grid_variables(size)
    squared = radius**2 - u.square() - v.square()
    return surface_of(squared.sqrt(), squared.value > (RIM * radius) ** 2, scale)


def vase(size: Size = 256, *, ridges: float = 0.0025) -> Surface:
    """Return a vase: the profile r(v) rotated about the vertical axis, z = √(r(v)² − u²).

    ``ridges`` is the height of the potter's throwing lines.
    """
    u, v, scale = grid_variables(size)
    body = 0.37 * _bell(v, -0.12, 0.40)
    foot = 0.12 * _bell(v, -0.98, 0.13)
    lip = 0.13 * _bell(v, 0.92, 0.10)
    lines = ridges * (75.0 * v).sin() * _bell(v, -0.1, 0.35)
    radius = 0.22 + body + foot + lip + lines
    squared = radius.square() - u.square()
    return surface_of(squared.sqrt(), (squared.value > RIM**2) & (np.abs(v.value) < 0.93), scale)


def relief(size: Size = 256, *, grain: float = 0.12, rng: int | np.random.Generator = 0) -> Surface:
    """Return a carved stone tablet over the full frame: a rosette of petals and rings.

    Parameters
    ----------
    size : int or (height, width)
        Size of the frame in pixels.
    grain : float
        Root mean square slope of the fine, random chisel marks.
    rng : int or Generator
        Seed of the marks.
    """
    u, v, scale = grid_variables(size)
    squared = u.square() + v.square()
    distance = (squared + 1e-3).sqrt()
    dome = 0.30 * (-1.6 * squared).exp()
    rings = 0.014 * (30.0 * distance).cos() * distance.smoothstep(0.62, 0.74)
    petals = (
        0.060
        * (_petals(u, v, 8) + 0.25 * _petals(u, v, 16))
        * (1.0 - distance.smoothstep(0.45, 0.72))
    )
    button = 0.10 * (1.0 - distance.smoothstep(0.10, 0.22))
    height = dome + rings + petals + button + _grain(u, v, grain, rng)
    return surface_of(height, np.ones(u.value.shape, bool), scale)


def coin(size: Size = 256, *, wear: float = 0.03, rng: int | np.random.Generator = 0) -> Surface:
    """Return a struck coin: a rim, a ring of beads, a star on a slightly domed field.

    Parameters
    ----------
    size : int or (height, width)
        Size of the frame in pixels.
    wear : float
        Root mean square slope of fine scratches and pits.
    rng : int or Generator
        Seed of the wear.

    Examples
    --------
    >>> struck = coin(64)
    >>> bool(struck.mask[32, 32]), bool(struck.mask[0, 0])
    (True, False)
    """
    u, v, scale = grid_variables(size)
    distance = (u.square() + v.square() + 1e-3).sqrt()
    field = 0.02 * (1.0 - distance.smoothstep(0.0, 0.9))
    rim = 0.05 * distance.smoothstep(0.86, 0.89)
    beads = 0.012 * (1.0 + _petals(u, v, 64)) * distance.smoothstep(0.76, 0.79)
    beads = beads * (1.0 - distance.smoothstep(0.80, 0.83))
    # The star's outline: its radius in a direction, minus the distance from the center.
    reach = 0.34 + 0.16 * _petals(u, v, 8) - distance
    star = 0.035 * reach.smoothstep(0.0, 0.10)
    button = 0.02 * (1.0 - distance.smoothstep(0.08, 0.13))
    height = field + rim + beads + star + button + _grain(u, v, wear, rng)
    return surface_of(height, distance.value < 0.95, scale)


def fabric(size: Size = 256, *, threads: float = 22.0, thickness: float = 0.005) -> Surface:
    """Return a plain weave over the full frame, with soft folds.

    Its detail is periodic, and as fine as a few pixels.

    Parameters
    ----------
    size : int or (height, width)
        Size of the frame in pixels.
    threads : float
        Number of threads along the shorter side.
    thickness : float
        Height of a thread in object units.
    """
    u, v, scale = grid_variables(size)
    along = np.pi * threads * u
    across = np.pi * threads * v
    # The thread on top changes from crossing to crossing.
    over = (0.5 * along).cos() * (0.5 * across).cos()
    weave = along.cos() * (1.0 + 0.6 * over) + across.cos() * (1.0 - 0.6 * over)
    folds = 0.05 * (2.3 * u + 1.1 * v).sin() + 0.03 * (3.1 * v - 1.7 * u).cos()
    return surface_of(folds + thickness * weave, np.ones(u.value.shape, bool), scale)


def _bell(x: Jet, center: float, width: float) -> Jet:
    return (-((x - center) / width).square()).exp()


def _petals(u: Jet, v: Jet, count: int) -> Jet:
    """cos(count · angle), faded to 0 at the center: Re (u + iv)^count / (u² + v² + ε)^(count/2)."""
    softened = u.square() + v.square() + 0.012
    real = u
    imaginary = v
    squared = softened
    for _ in range(int(np.log2(count))):
        real, imaginary = real.square() - imaginary.square(), 2.0 * real * imaginary
        squared = squared.square()
    return real / squared.sqrt(floor=1e-300)


def _grain(u: Jet, v: Jet, slope: float, rng: int | np.random.Generator, waves: int = 28) -> Jet:
    """Return a sum of plane waves of the same slope.

    Direction, phase and wavelength (0.05 to 0.2) are random.
    """
    generator = np.random.default_rng(rng)
    total = constant(0.0, u)
    for _ in range(waves if slope > 0.0 else 0):
        angle, phase = generator.uniform(0.0, 2.0 * np.pi, 2)
        frequency = 2.0 * np.pi / np.exp(generator.uniform(np.log(0.05), np.log(0.2)))
        wave = (frequency * (np.cos(angle) * u + np.sin(angle) * v) + phase).sin()
        # A wave a sin(f x) has the root mean square slope a f / √2; independent waves add their
        # squares.
        total = total + (slope * np.sqrt(2.0 / waves) / frequency) * wave
    return total
