"""Lights from the shading of a matte ball: directions and strengths.

A matte ball under light i, in a room with a little light of its own, shows

    I_i(p) = ρ(p) · ( max(0, n·s_i) + max(0, n·a) + e ),        s_i = strength · direction

with n known from the circle, a texture ρ that is the same in all photographs, a second light a that is always on and
light e from all sides. Where a pixel is lit by light i the model is linear in (s_i, a, e); where it is turned away from
it, the pixel shows the room alone, which separates a and e from the s_i. All are solved together by reweighted least
squares: highlights, cast shadows and saturated pixels are forgotten by their residuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.lights.ball.circle import Circle
from photostereo.lights.ball.geometry import Camera, ball_normals
from photostereo.runtime.order import MAD_TO_SIGMA, known_medians

_MOST_PIXELS = 4000
#: Pixels whose cosine to the light is within this of zero are left out: there a light's width shows.
_TERMINATOR = 0.06
#: Into the pixels so close to the outline the lens mixes what lies beyond it.
_LENS = 2.5
#: How many neighboring pixels deviate alike from the model: paint that is not quite matte deviates smoothly. Factors of
#: three either way move the circle by less than a tenth of a pixel.
_ALIKE = 30.0
#: A ball whose albedo varies by less than this is of one color.
_ONE_COLOR = 0.1


@dataclass(frozen=True, eq=False)
class Shading:
    """Lights fitted to a matte ball."""

    directions: FloatArray  #: (d, 3) unit
    strengths: FloatArray  #: (d,) with geometric mean 1
    #: (d,) median deviation of the photograph from the fit, as a share of its brightness there
    residual: FloatArray
    explained: float  #: share of the variance over pixels and photographs that the fit explains
    #: range of the ball's albedo between its 10th and 90th percentile, as a share of the median
    patchiness: float
    constant: float  #: light of the room that is in every photograph, as a share of the lights'


def fit_shading(images: FloatArray, circle: Circle, camera: Camera | None = None) -> Shading:
    """Directions and strengths of the lights from a matte ball in the photographs (d, H, W).

    >>> rows, cols = np.mgrid[:60, :60].astype(float)
    >>> normals = np.nan_to_num(ball_normals(Circle(30, 30, 25), cols, rows))
    >>> lights = np.array([[0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8]])
    >>> images = np.maximum(0, np.einsum("hwc,dc->dhw", normals, lights)) * np.array([1, 2, 0.5])[:, None, None]
    >>> found = fit_shading(images, Circle(30, 30, 25))
    >>> bool(np.allclose(found.directions, lights, atol=1e-4)), np.round(found.strengths, 3)
    (True, array([1. , 2. , 0.5]))
    """
    values, normals, _ = _pixels(images, circle, camera)
    usable = _unclipped(values)
    lights, room, texture = _fit(values, normals, usable)
    fitted = texture * _model(normals, lights, room)
    error = np.where(usable, values - fitted, 0)
    level = np.maximum(values.mean(axis=1), 1e-12)
    # Pixels forgotten by the fit count here: a circle that is no ball leaves most of them.
    explained = 1.0 - float(np.mean(error[usable] ** 2)) / max(float(np.var(values[usable])), 1e-12)
    strength = np.maximum(np.linalg.norm(lights, axis=1), 1e-12)
    return Shading(
        directions=lights / strength[:, None],
        strengths=strength / np.exp(np.mean(np.log(strength))),
        residual=MAD_TO_SIGMA * np.median(np.abs(error), axis=1) / level,
        explained=explained,
        patchiness=float(np.percentile(texture, 90) - np.percentile(texture, 10)),
        constant=float((np.linalg.norm(room[:3]) + room[3]) / np.mean(strength)),
    )


def settle_circle(
    images: FloatArray, circle: Circle, camera: Camera | None = None, *, edge: float = 0.25
) -> Circle:
    """The circle with which a matte ball's shading agrees best, and its outline within ``edge`` pixels or so.

    All pixels of the ball know where its middle is, not those of the outline alone. For a given circle the model is
    linear in the light of each photograph, which is eliminated; the outline enters as a prior.

    >>> rows, cols = np.mgrid[:60, :60].astype(float)
    >>> normals = np.nan_to_num(ball_normals(Circle(30.3, 29.8, 25), cols, rows))
    >>> lights = np.array([[0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8], [0, -0.6, 0.8]])
    >>> images = np.maximum(0, np.einsum("hwc,dc->dhw", normals, lights))
    >>> found = settle_circle(images, Circle(30.1, 30.0, 24.8))
    >>> round(found.x, 1), round(found.y, 1), round(found.radius, 1)
    (30.3, 29.8, 25.0)
    """
    from scipy.optimize import least_squares  # half a second that only a ball needs

    values, normals, places = _pixels(images, circle, camera, share=0.93)
    usable = _unclipped(values)
    moved = np.zeros(3)
    for turn in range(4):
        normals = ball_normals(circle.moved(*moved), *places, camera)
        # A smaller ball in a brighter room looks much like a larger one in the dark: first in the dark, then in the room.
        lights, room, texture = _fit(values, normals, usable, in_room=turn > 0)
        if np.ptp(np.percentile(texture, [10, 90])) < _ONE_COLOR:
            texture = np.ones_like(texture)  # what varies then is the error of the circle
        cosine, trust, scale = _trust(values, normals, usable, lights, room, texture)
        weight = trust / (scale * np.sqrt(_ALIKE))
        fixed = (values, weight, cosine > 0, normals @ room[:3] > 0 if turn else None, texture)

        def left(move: FloatArray, fixed: tuple[Any, ...] = fixed) -> FloatArray:
            there = np.nan_to_num(ball_normals(circle.moved(*move), *places, camera))
            return np.append(_without_lights(there, *fixed), move / edge)

        before, moved = moved, least_squares(left, moved, x_scale=0.1, max_nfev=5).x
        if np.abs(moved - before).max() < 0.01:
            break
    return circle.moved(*moved) if np.abs(moved).max() < max(1.0, 0.03 * circle.radius) else circle


def _without_lights(
    normals: FloatArray,
    values: FloatArray,
    weight: FloatArray,
    lit: BoolArray,
    facing: BoolArray | None,
    texture: FloatArray,
) -> FloatArray:
    """What the best light of each photograph leaves of its values, weighted; with that of a room if it has ``facing``."""
    surface, parts = normals * texture[:, None], []
    room = [] if facing is None else [surface * facing[:, None], texture[:, None]]
    for value, w, on in zip(values, weight, lit, strict=True):
        design = np.hstack([surface * on[:, None], *room]) * w[:, None]
        parts.append(w * value - design @ np.linalg.lstsq(design, w * value, rcond=1e-6)[0])
    return np.concatenate(parts)


def _unclipped(values: FloatArray) -> BoolArray:
    """Which values lie below white."""
    white = values >= 0.995 * float(values.max())
    return np.asarray(~white if 0.002 < white.mean() < 0.8 else np.ones_like(white))


def _fit(
    values: FloatArray, normals: FloatArray, usable: BoolArray, *, in_room: bool = True
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lights (d, 3), room (4,), zero unless ``in_room``, and texture (n,)."""
    lights = np.stack([_start(normals, image, good) for image, good in zip(values, usable, strict=True)])
    room: FloatArray = np.zeros(4)
    texture: FloatArray = np.ones(len(normals))
    for turn in range(12):
        cosine, trust, _ = _trust(values, normals, usable, lights, room, texture)
        if turn == 0:  # nothing is known of the room yet: its light must not look like an outlier
            trust = (usable & (np.abs(cosine) > _TERMINATOR)).astype(np.float64)
        facing = normals @ room[:3] > 0 if room[:3].any() else np.ones(len(normals), dtype=bool)
        lights, room = _solve(
            values, normals * texture[:, None], texture, trust**2, cosine > 0, facing, in_room
        )
        if turn in (2, 5, 8):
            texture = _texture(values, _model(normals, lights, room), usable)
    return lights, room, texture


def _pixels(
    images: FloatArray, circle: Circle, camera: Camera | None, *, share: float = 0.97
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Values (d, n), normals (n, 3) and places (columns, rows) of pixels well inside the ball."""
    share = min(share, max(1.0 - _LENS / circle.radius, 0.8))
    rows, cols = np.nonzero(circle.inside(images.shape[1:3], share=share))
    if len(rows) > _MOST_PIXELS:
        keep = np.linspace(0, len(rows) - 1, _MOST_PIXELS).astype(np.intp)
        rows, cols = rows[keep], cols[keep]
    normals = ball_normals(circle, cols.astype(np.float64), rows.astype(np.float64), camera)
    known = np.isfinite(normals).all(axis=1)
    rows, cols = rows[known], cols[known]
    values = np.asarray(images[:, rows, cols], dtype=np.float64)
    return values, normals[known], (cols.astype(np.float64), rows.astype(np.float64))


def _start(normals: FloatArray, values: FloatArray, usable: BoolArray) -> FloatArray:
    """A first light: least squares over the brighter pixels."""
    chosen = usable & (values > 0.3 * np.percentile(values, 95))
    return np.linalg.lstsq(normals[chosen], values[chosen], rcond=None)[0]


def _model(normals: FloatArray, lights: FloatArray, room: FloatArray) -> FloatArray:
    """What the model shows for texture 1, (d, n)."""
    constant = np.maximum(normals @ room[:3], 0) + room[3]
    return np.asarray(np.maximum(lights @ normals.T, 0) + constant)


def _trust(
    values: FloatArray,
    normals: FloatArray,
    usable: BoolArray,
    lights: FloatArray,
    room: FloatArray,
    texture: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Cosines to the lights (d, n), the root of Tukey's weight of each value (d, n), and the usual deviation (d, 1)."""
    bright = np.linalg.norm(lights, axis=1, keepdims=True)
    cosine = lights @ normals.T / np.maximum(bright, 1e-12)
    chosen = usable & (np.abs(cosine) > _TERMINATOR)
    miss = values - texture * _model(normals, lights, room)
    usual = np.nan_to_num(known_medians(np.where(chosen, np.abs(miss), np.nan).T))[:, None]
    scale = np.maximum(MAD_TO_SIGMA * usual, np.maximum(1e-3 * bright, 1e-12))  # also if all is black
    return cosine, np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) * chosen, scale


def _solve(
    values: FloatArray,
    surface: FloatArray,
    texture: FloatArray,
    weight: FloatArray,
    lit: BoolArray,
    facing: BoolArray,
    in_room: bool,
) -> tuple[FloatArray, FloatArray]:
    """Weighted least squares for all lights and the room at once; the lights are eliminated first."""
    shared = np.column_stack([surface * facing[:, None], texture])
    own, both = (surface[:, :, None] * part[:, None] for part in (surface, shared))
    on = weight * lit
    moment = np.tensordot(on, own, 1)  # (d, 3, 3)
    cross = np.tensordot(on, both, 1)  # (d, 3, 4)
    common = (shared.T * weight.sum(axis=0)) @ shared
    # Without shadows the room cannot be separated from the lights; it is then nearly dark.
    ridge = 1e-9 * np.trace(common) / (3 * len(values)) + 1e-12
    right = (on * values) @ surface
    alone = np.linalg.solve(moment + ridge * np.eye(3), right[..., None])[..., 0]
    if not in_room:
        return alone, np.zeros(4)
    change = np.linalg.solve(moment + ridge * np.eye(3), cross)  # of each light with the room
    room = np.linalg.solve(
        common + 1e5 * ridge * np.eye(4) - np.einsum("dik,dil->kl", cross, change),
        shared.T @ (weight * values).sum(axis=0) - np.einsum("dik,di->k", cross, alone),
    )
    lights = alone - change @ room
    room[3] = max(room[3], 0.0)
    return lights, room


def _texture(values: FloatArray, model: FloatArray, usable: BoolArray) -> FloatArray:
    """The ball's albedo relative to its median: the median ratio over the photographs in which a pixel is lit."""
    lit = usable & (model > 0.25 * model.max(axis=1, keepdims=True))
    enough = lit.sum(axis=0) >= max(3, len(values) // 4)
    texture = np.ones(values.shape[1])
    if not enough.any():
        return texture
    ratio = np.where(lit, values / np.maximum(model, 1e-12), np.nan)[:, enough]
    texture[enough] = np.nanmedian(ratio, axis=0)
    texture[enough] /= max(float(np.median(texture[enough])), 1e-12)
    return np.clip(texture, 0.2, 5.0)
