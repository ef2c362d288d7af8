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
from photostereo.runtime.order import MAD_TO_SIGMA

_MOST_PIXELS = 4000
#: Pixels whose cosine to the light is within this of zero are left out: there a light's width shows.
_TERMINATOR = 0.06
#: A pixel with a cosine to the light below minus this is turned away from it.
_AWAY = 0.12
#: Into the pixels so close to the outline the lens mixes what lies beyond it.
_LENS = 2.5
#: How many neighboring pixels deviate alike from the model: paint that is not quite matte deviates smoothly. Factors of
#: three either way move the circle by less than a tenth of a pixel.
_ALIKE = 30.0
#: A ball whose albedo varies by less than this is of one color.
_ONE_COLOR = 0.1
#: The light of the room is believed in where it lowers their mean deviation to this share.
_ROOM_HELPS = 0.8


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
    lights, room, texture = _fit_with_room(values, normals, usable)
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
    for _ in range(4):
        normals = ball_normals(circle.moved(*moved), *places, camera)
        lights, room, texture = _fit_with_room(values, normals, usable)
        if np.ptp(np.percentile(texture, [10, 90])) < _ONE_COLOR:
            texture = np.ones_like(texture)  # what varies then is the error of the circle
        bright = np.linalg.norm(lights, axis=1, keepdims=True)
        cosine = lights @ normals.T / np.maximum(bright, 1e-12)
        chosen = usable & (np.abs(cosine) > _TERMINATOR)
        miss = values - texture * _model(normals, lights, room)
        scale = MAD_TO_SIGMA * np.median(np.where(chosen, np.abs(miss), 0), axis=1, keepdims=True)
        scale = np.maximum(scale, np.maximum(1e-3 * bright, 1e-12))  # also if all is black
        weight = np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) * chosen / (scale * np.sqrt(_ALIKE))
        facing = normals @ room[:3] > 0
        fixed = (values, weight, cosine > 0, facing if room.any() else None, texture)

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
    """What the best light of each photograph leaves of its values, weighted; with that of a room if it has ``facing``.

    A smaller ball in a brighter room looks much like a larger one in the dark, so the room must follow the circle.
    """
    surface, parts = normals * texture[:, None], []
    for value, w, on in zip(values, weight, lit, strict=True):
        columns = [surface * on[:, None]]
        if facing is not None:
            columns += [surface * facing[:, None], texture[:, None]]
        design = np.hstack(columns) * w[:, None]
        parts.append(w * value - design @ np.linalg.lstsq(design, w * value, rcond=1e-6)[0])
    return np.concatenate(parts)


def _fit_with_room(
    values: FloatArray, normals: FloatArray, usable: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lights (d, 3), room (4,) and texture (n,); the room is dark unless the photographs say otherwise.

    Pixels that are turned away from the light show the room alone, so they decide whether it is lit: shading that is not
    quite Lambertian can look like light of the room, but not there.
    """
    dark = _fit(values, normals, usable, with_room=False)
    lights = dark[0]
    away = usable & (lights @ normals.T < -_AWAY * np.linalg.norm(lights, axis=1)[:, None])
    if away.sum() < 20:
        return dark
    lit = _fit(values, normals, usable, with_room=True)
    misfits = [_misfit(values, part[2] * _model(normals, *part[:2]), away) for part in (lit, dark)]
    return lit if misfits[0] < _ROOM_HELPS * misfits[1] else dark


def _unclipped(values: FloatArray) -> BoolArray:
    """Which values lie below white."""
    white = values >= 0.995 * float(values.max())
    return np.asarray(~white if 0.002 < white.mean() < 0.8 else np.ones_like(white))


def _fit(
    values: FloatArray, normals: FloatArray, usable: BoolArray, *, with_room: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lights (d, 3), room (4,) and texture (n,)."""
    lights = np.stack([_start(normals, image, good) for image, good in zip(values, usable, strict=True)])
    room: FloatArray = np.zeros(4)
    texture: FloatArray = np.ones(len(normals))
    for turn in range(12):
        lights, room = _solve(
            values, normals, texture, usable, lights, room, first=turn == 0, with_room=with_room
        )
        if turn in (2, 5, 8):
            texture = _texture(values, _model(normals, lights, room), usable)
    return lights, room, texture


def _misfit(values: FloatArray, fitted: FloatArray, chosen: BoolArray) -> float:
    return float(np.mean(np.abs(values - fitted)[chosen]))


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
    """A first light: least squares over the brighter pixels, then over those that it lights."""
    chosen = usable & (values > 0.3 * np.percentile(values, 95))
    vector = np.array([0.0, 0.0, 1e-9])
    for _ in range(4):
        if chosen.sum() < 10:
            break
        vector = np.linalg.lstsq(normals[chosen], values[chosen], rcond=None)[0]
        shade = normals @ vector
        chosen = usable & (shade > 0.1 * float(shade.max()))
    return vector


def _model(normals: FloatArray, lights: FloatArray, room: FloatArray) -> FloatArray:
    """What the model shows for texture 1, (d, n)."""
    constant = np.maximum(normals @ room[:3], 0) + room[3]
    return np.asarray(np.maximum(lights @ normals.T, 0) + constant)


def _solve(
    values: FloatArray,
    normals: FloatArray,
    texture: FloatArray,
    usable: BoolArray,
    lights: FloatArray,
    room: FloatArray,
    *,
    first: bool,
    with_room: bool,
) -> tuple[FloatArray, FloatArray]:
    """One step of reweighted least squares for all lights and the room."""
    count = len(values)
    size = 3 * count + 4
    moment, right = np.zeros((size, size)), np.zeros(size)
    bright = np.linalg.norm(lights, axis=1)
    facing = normals @ room[:3] > 0 if room[:3].any() else np.ones(len(normals), dtype=bool)
    shared = np.column_stack([normals * facing[:, None], np.ones(len(normals))]) * texture[:, None]
    common = slice(3 * count, size)
    model = texture * _model(normals, lights, room)
    for number in range(count):
        cosine = normals @ lights[number] / max(bright[number], 1e-12)
        lit, dark = cosine > _TERMINATOR, cosine < -_TERMINATOR
        chosen = usable[number] & (lit | dark)
        miss = values[number] - model[number]
        scale = max(
            MAD_TO_SIGMA * float(np.median(np.abs(miss[chosen]))) if chosen.any() else 0.0,
            1e-3 * bright[number],
        )
        weight = np.clip(1 - (miss / (4.685 * max(scale, 1e-12))) ** 2, 0, 1) ** 2 * chosen
        if first:  # nothing is known of the room yet: its light must not look like an outlier
            weight = chosen.astype(np.float64)
        own = slice(3 * number, 3 * number + 3)
        design = normals * (texture * lit)[:, None]
        weighted = weight[:, None] * design
        moment[own, own] = weighted.T @ design
        right[own] = weighted.T @ values[number]
        if with_room:
            moment[own, common] = weighted.T @ shared
            moment[common, own] = moment[own, common].T
            moment[common, common] += shared.T @ (weight[:, None] * shared)
            right[common] += shared.T @ (weight * values[number])
    # Without shadows the room cannot be separated from the lights; it is then assumed to be dark.
    known = size if with_room else 3 * count
    ridge = np.full(known, 1e-9 * np.trace(moment) / size + 1e-12)
    ridge[3 * count :] *= 1e5
    solution = np.zeros(size)
    solution[:known] = np.linalg.solve(moment[:known, :known] + np.diag(ridge), right[:known])
    solution[-1] = max(solution[-1], 0.0)
    return solution[: 3 * count].reshape(count, 3), solution[common]


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
