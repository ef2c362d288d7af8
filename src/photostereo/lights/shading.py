"""Lamps from the shading of a matte ball: directions and strengths.

A matte ball under lamp i, in a room with a little light of its own, shows

    I_i(p) = ρ(p) · ( max(0, n·s_i) + max(0, n·a) + e ),        s_i = strength · direction

with n known from the circle, a texture ρ that is the same in all photographs, a second lamp a that is always on and
light e from all sides. Where a pixel is lit by lamp i the model is linear in (s_i, a, e); where it is turned away from
it, the pixel shows the room alone, which tells a and e from the s_i. All are solved together by reweighted least
squares: highlights, cast shadows and saturated pixels are forgotten by their residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.conventions import BoolArray, FloatArray
from photostereo.lights.ball import Camera, ball_normals
from photostereo.lights.circle import Circle

_MOST_PIXELS = 4000
#: Pixels whose cosine to the lamp is within this of zero are left out: there a lamp's width shows.
_TERMINATOR = 0.06
#: A pixel with a cosine to the lamp below minus this is turned away from it.
_AWAY = 0.12
#: The light of the room is believed in where it lowers their mean deviation to this share.
_ROOM_HELPS = 0.8


@dataclass(frozen=True, eq=False)
class Shading:
    """Lamps fitted to a matte ball.

    Attributes
    ----------
    directions : (d, 3) unit
    strengths : (d,) with geometric mean 1
    residual : (d,) median deviation of the photograph from the fit, as a share of its brightness there
    explained : share of the variance over pixels and photographs that the fit explains
    patchiness : range of the ball's albedo between its 10th and 90th percentile, as a share of the median
    constant : light of the room that is in every photograph, as a share of the lamps'
    """

    directions: FloatArray
    strengths: FloatArray
    residual: FloatArray
    explained: float
    patchiness: float
    constant: float


def fit_shading(images: FloatArray, circle: Circle, camera: Camera | None = None) -> Shading:
    """Directions and strengths of the lamps from a matte ball in the photographs (d, H, W).

    Examples
    --------
    >>> rows, cols = np.mgrid[:60, :60].astype(float)
    >>> normals = np.nan_to_num(ball_normals(Circle(30, 30, 25), cols, rows))
    >>> lights = np.array([[0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8]])
    >>> images = np.maximum(0, np.einsum("hwc,dc->dhw", normals, lights)) * np.array([1, 2, 0.5])[:, None, None]
    >>> found = fit_shading(images, Circle(30, 30, 25))
    >>> bool(np.allclose(found.directions, lights, atol=1e-4)), np.round(found.strengths, 3)
    (True, array([1. , 2. , 0.5]))
    """
    values, normals = _pixels(images, circle, camera)
    top = float(values.max())
    white = values >= 0.995 * top
    usable = ~white if 0.002 < white.mean() < 0.8 else np.ones_like(white)
    lamps, room, texture = _fit(values, normals, usable, with_room=False)
    fitted = texture * _model(normals, lamps, room)
    # Pixels that are turned away from the lamp show the room alone, so they decide whether it is lit: shading that
    # is not quite Lambertian can look like light of the room, but not there.
    away = usable & (lamps @ normals.T < -_AWAY * np.linalg.norm(lamps, axis=1)[:, None])
    if away.sum() >= 20:
        lit = _fit(values, normals, usable, with_room=True)
        other = lit[2] * _model(normals, *lit[:2])
        if _misfit(values, other, away) < _ROOM_HELPS * _misfit(values, fitted, away):
            (lamps, room, texture), fitted = lit, other
    error = np.where(usable, values - fitted, 0)
    level = np.maximum(values.mean(axis=1), 1e-12)
    # Pixels forgotten by the fit count here: a circle that is no ball leaves most of them.
    explained = 1.0 - float(np.mean(error[usable] ** 2)) / max(float(np.var(values[usable])), 1e-12)
    strength = np.maximum(np.linalg.norm(lamps, axis=1), 1e-12)
    return Shading(
        directions=lamps / strength[:, None],
        strengths=strength / np.exp(np.mean(np.log(strength))),
        residual=1.4826 * np.median(np.abs(error), axis=1) / level,
        explained=explained,
        patchiness=float(np.percentile(texture, 90) - np.percentile(texture, 10)),
        constant=float((np.linalg.norm(room[:3]) + room[3]) / np.mean(strength)),
    )


def _fit(
    values: FloatArray, normals: FloatArray, usable: BoolArray, *, with_room: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lamps (d, 3), room (4,) and texture (n,)."""
    lamps = np.stack([_start(normals, image, good) for image, good in zip(values, usable, strict=True)])
    room: FloatArray = np.zeros(4)
    texture: FloatArray = np.ones(len(normals))
    for turn in range(12):
        lamps, room = _solve(
            values, normals, texture, usable, lamps, room, first=turn == 0, with_room=with_room
        )
        if turn in (2, 5, 8):
            texture = _texture(values, _model(normals, lamps, room), usable)
    return lamps, room, texture


def _misfit(values: FloatArray, fitted: FloatArray, chosen: BoolArray) -> float:
    return float(np.mean(np.abs(values - fitted)[chosen]))


def _pixels(images: FloatArray, circle: Circle, camera: Camera | None) -> tuple[FloatArray, FloatArray]:
    """Values (d, n) and normals (n, 3) of pixels well inside the ball."""
    rows, cols = np.nonzero(circle.inside(images.shape[1:3], share=0.97))
    if len(rows) > _MOST_PIXELS:
        keep = np.linspace(0, len(rows) - 1, _MOST_PIXELS).astype(np.intp)
        rows, cols = rows[keep], cols[keep]
    normals = ball_normals(circle, cols.astype(np.float64), rows.astype(np.float64), camera)
    known = np.isfinite(normals).all(axis=1)
    return np.asarray(images[:, rows[known], cols[known]], dtype=np.float64), normals[known]


def _start(normals: FloatArray, values: FloatArray, usable: BoolArray) -> FloatArray:
    """A first lamp: least squares over the brighter pixels, then over those that it lights."""
    chosen = usable & (values > 0.3 * np.percentile(values, 95))
    vector = np.array([0.0, 0.0, 1e-9])
    for _ in range(4):
        if chosen.sum() < 10:
            break
        vector = np.linalg.lstsq(normals[chosen], values[chosen], rcond=None)[0]
        shade = normals @ vector
        chosen = usable & (shade > 0.1 * float(shade.max()))
    return vector


def _model(normals: FloatArray, lamps: FloatArray, room: FloatArray) -> FloatArray:
    """What the model shows for texture 1, (d, n)."""
    constant = np.maximum(normals @ room[:3], 0) + room[3]
    return np.asarray(np.maximum(lamps @ normals.T, 0) + constant)


def _solve(
    values: FloatArray,
    normals: FloatArray,
    texture: FloatArray,
    usable: BoolArray,
    lamps: FloatArray,
    room: FloatArray,
    *,
    first: bool,
    with_room: bool,
) -> tuple[FloatArray, FloatArray]:
    """One step of reweighted least squares for all lamps and the room."""
    count = len(values)
    size = 3 * count + 4
    moment, right = np.zeros((size, size)), np.zeros(size)
    bright = np.linalg.norm(lamps, axis=1)
    facing = normals @ room[:3] > 0 if room[:3].any() else np.ones(len(normals), dtype=bool)
    shared = np.column_stack([normals * facing[:, None], np.ones(len(normals))]) * texture[:, None]
    common = slice(3 * count, size)
    model = texture * _model(normals, lamps, room)
    for number in range(count):
        cosine = normals @ lamps[number] / max(bright[number], 1e-12)
        lit, dark = cosine > _TERMINATOR, cosine < -_TERMINATOR
        chosen = usable[number] & (lit | dark)
        miss = values[number] - model[number]
        scale = max(
            1.4826 * float(np.median(np.abs(miss[chosen]))) if chosen.any() else 0.0, 1e-3 * bright[number]
        )
        weight = np.clip(1 - (miss / (4.685 * max(scale, 1e-12))) ** 2, 0, 1) ** 2 * chosen
        if first:  # nothing is known of the room yet: its light must not look like an outlier
            weight = chosen.astype(np.float64)
        own = slice(3 * number, 3 * number + 3)
        design = normals * (texture * lit)[:, None]
        moment[own, own] += design.T @ (weight[:, None] * design)
        cross = design.T @ (weight[:, None] * shared)
        moment[own, common] += cross
        moment[common, own] += cross.T
        moment[common, common] += shared.T @ (weight[:, None] * shared)
        right[own] += design.T @ (weight * values[number])
        right[common] += shared.T @ (weight * values[number])
    # Without shadows the room cannot be told from the lamps; then it is taken to be dark.
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
