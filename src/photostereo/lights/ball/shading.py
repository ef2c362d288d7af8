"""Lights from the shading of a matte ball: directions and strengths.

A matte ball under light i, in a room with a little light of its own, shows

    I_i(p) = ρ(p) · ( max(0, n·s_i) + max(0, n·a) + e ),        s_i = strength · direction

with n known from the circle, a texture ρ that is the same in all photographs, a second light a that is always on and
light e from all sides. If a pixel is lit by light i, the model is linear in (s_i, a, e); if it is turned away, it shows
the room alone, which separates a and e from the s_i. All are found together by reweighted least squares, in which
highlights, cast shadows and saturated pixels lose their weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.lights.ball.geometry import Camera, Circle, ball_normals
from photostereo.runtime.quantiles import MAD_TO_SIGMA

_MOST_PIXELS = 4000
#: Pixels whose cosine to the light is within this of zero are left out: there the width of the light shows.
_TERMINATOR = 0.06
#: A pixel with a cosine to the light below minus this is turned away from it.
_AWAY = 0.12
#: Pixels this close to the outline are mixed with the background by the lens.
_LENS = 2.5
#: Number of neighboring pixels that deviate alike from the model: paint that is not quite matte deviates smoothly. Factors
#: of three either way move the circle by less than a tenth of a pixel.
_ALIKE = 30.0
#: Error of the outline that a matte ball's shading may correct, in pixels.
_EDGE = 0.25
#: A ball whose albedo varies by less than this is of one color.
_ONE_COLOR = 0.1
#: The room is lit if its light lowers the mean deviation to this share.
_ROOM_HELPS = 0.8
#: Rounds of reweighted least squares.
_ROUNDS = 12
#: Rounds after which the texture is estimated again.
_TEXTURE_AFTER = (2, 5, 8)


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


class _Fit(NamedTuple):
    """Lights (d, 3), light of the room (4,): a and e, and texture (n,)."""

    lights: FloatArray
    room: FloatArray
    texture: FloatArray

    def plain(self, normals: FloatArray) -> FloatArray:
        """Return the model (d, n) for texture 1."""
        constant = np.maximum(normals @ self.room[:3], 0) + self.room[3]
        return np.asarray(np.maximum(self.lights @ normals.T, 0) + constant)

    def shown(self, normals: FloatArray) -> FloatArray:
        return self.texture * self.plain(normals)


def fit_shading(images: FloatArray, circle: Circle, camera: Camera | None = None) -> Shading:
    """Fit directions and strengths of the lights to a matte ball in the photographs (d, H, W)."""
    values, normals, _ = _pixels(images, circle, camera)
    usable = _unclipped(values)
    fit = _fit_with_room(values, normals, usable)
    error = np.where(usable, values - fit.shown(normals), 0)
    level = np.maximum(values.mean(axis=1), 1e-12)
    # Pixels without weight count here: a circle that is no ball has many.
    explained = 1.0 - float(np.mean(error[usable] ** 2)) / max(float(np.var(values[usable])), 1e-12)
    strength = np.maximum(np.linalg.norm(fit.lights, axis=1), 1e-12)
    return Shading(
        directions=fit.lights / strength[:, None],
        strengths=strength / np.exp(np.mean(np.log(strength))),
        residual=MAD_TO_SIGMA * np.median(np.abs(error), axis=1) / level,
        explained=explained,
        patchiness=float(np.ptp(np.percentile(fit.texture, [10, 90]))),
        constant=float((np.linalg.norm(fit.room[:3]) + fit.room[3]) / np.mean(strength)),
    )


def settle_circle(images: FloatArray, circle: Circle, camera: Camera | None = None) -> Circle:
    """Return the circle that agrees best with a matte ball's shading, and with its outline within ``_EDGE`` or so.

    All pixels of the ball determine its middle, not only those of the outline. For a given circle the model is
    linear in the light of each photograph, which is eliminated; the outline enters as a prior.
    """
    from scipy.optimize import least_squares  # takes half a second to import

    values, normals, places = _pixels(images, circle, camera, share=0.93)
    usable = _unclipped(values)

    def left(
        move: FloatArray,
        weight: FloatArray,
        lit: BoolArray,
        room: BoolArray | None,
        texture: FloatArray,
    ) -> FloatArray:
        """Return the weighted values without the best light of each photograph, and the prior."""
        normals = (
            np.nan_to_num(ball_normals(circle.moved(*move), *places, camera)) * texture[:, None]
        )
        parts = [move / _EDGE]
        for value, w, on in zip(values, weight, lit, strict=True):
            columns = [normals * on[:, None]]
            if room is not None:
                columns += [normals * room[:, None], texture[:, None]]
            design = np.hstack(columns) * w[:, None]
            parts.append(w * value - design @ np.linalg.lstsq(design, w * value, rcond=1e-6)[0])
        return np.concatenate(parts)

    moved = np.zeros(3)
    for _ in range(4):
        normals = ball_normals(circle.moved(*moved), *places, camera)
        fit = _fit_with_room(values, normals, usable)
        texture = fit.texture
        if np.ptp(np.percentile(texture, [10, 90])) < _ONE_COLOR:
            texture = np.ones_like(texture)  # its variation is due to the error of the circle
        bright = np.linalg.norm(fit.lights, axis=1, keepdims=True)
        cosine = fit.lights @ normals.T / np.maximum(bright, 1e-12)
        chosen = usable & (np.abs(cosine) > _TERMINATOR)
        miss = values - texture * fit.plain(normals)
        scale = MAD_TO_SIGMA * np.median(np.where(chosen, np.abs(miss), 0), axis=1, keepdims=True)
        scale = np.maximum(scale, np.maximum(1e-3 * bright, 1e-12))  # also if all is black
        weight = (
            np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) * chosen / (scale * np.sqrt(_ALIKE))
        )
        # A smaller ball in a brighter room looks much like a larger one in the dark, so the room must follow the circle.
        room = normals @ fit.room[:3] > 0 if fit.room.any() else None
        given = weight, cosine > 0, room, texture
        before = moved
        moved = least_squares(left, moved, x_scale=0.1, max_nfev=5, args=given).x
        if np.abs(moved - before).max() < 0.01:
            break
    if np.abs(moved).max() < max(1.0, 0.03 * circle.radius):
        return circle.moved(*moved)
    return circle


def _pixels(
    images: FloatArray, circle: Circle, camera: Camera | None, *, share: float = 0.97
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return values (d, n), normals (n, 3) and places (columns, rows) of pixels well inside the ball."""
    share = min(share, max(1.0 - _LENS / circle.radius, 0.8))
    rows, cols = np.nonzero(circle.inside(images.shape[1:3], share=share))
    if len(rows) > _MOST_PIXELS:
        keep = np.linspace(0, len(rows) - 1, _MOST_PIXELS).astype(np.intp)
        rows = rows[keep]
        cols = cols[keep]
    normals = ball_normals(circle, cols.astype(np.float64), rows.astype(np.float64), camera)
    known = np.isfinite(normals).all(axis=1)
    rows = rows[known]
    cols = cols[known]
    values = np.asarray(images[:, rows, cols], dtype=np.float64)
    return values, normals[known], (cols.astype(np.float64), rows.astype(np.float64))


def _unclipped(values: FloatArray) -> BoolArray:
    """Return which values lie below white."""
    white = values >= 0.995 * float(values.max())
    return np.asarray(~white if 0.002 < white.mean() < 0.8 else np.ones_like(white))


def _fit_with_room(values: FloatArray, normals: FloatArray, usable: BoolArray) -> _Fit:
    """Fit the model; the room is dark unless the photographs show otherwise.

    Pixels turned away from the light show the room alone, so they decide whether it is lit: shading that is not
    quite Lambertian can look like light of the room, but not there.
    """
    dark = _fit(values, normals, usable, with_room=False)
    away = usable & (
        dark.lights @ normals.T < -_AWAY * np.linalg.norm(dark.lights, axis=1)[:, None]
    )
    if away.sum() < 20:
        return dark
    lit = _fit(values, normals, usable, with_room=True)
    misfits = [float(np.mean(np.abs(values - fit.shown(normals))[away])) for fit in (lit, dark)]
    if misfits[0] < _ROOM_HELPS * misfits[1]:
        return lit
    return dark


def _fit(values: FloatArray, normals: FloatArray, usable: BoolArray, *, with_room: bool) -> _Fit:
    start = np.stack(
        [_start(normals, image, good) for image, good in zip(values, usable, strict=True)]
    )
    fit = _Fit(start, np.zeros(4), np.ones(len(normals)))
    for turn in range(_ROUNDS):
        # At first the room is unknown: its light must not look like an outlier.
        lights, room = _solve(values, normals, usable, fit, robust=turn > 0, with_room=with_room)
        fit = _Fit(lights, room, fit.texture)
        if turn in _TEXTURE_AFTER:
            fit = fit._replace(texture=_texture(values, fit.plain(normals), usable))
    return fit


def _start(normals: FloatArray, values: FloatArray, usable: BoolArray) -> FloatArray:
    """Return a first light: least squares over the brighter pixels, then over those that it lights."""
    chosen = usable & (values > 0.3 * np.percentile(values, 95))
    vector = np.array([0.0, 0.0, 1e-9])
    for _ in range(4):
        if chosen.sum() < 10:
            break
        vector = np.linalg.lstsq(normals[chosen], values[chosen], rcond=None)[0]
        shade = normals @ vector
        chosen = usable & (shade > 0.1 * float(shade.max()))
    return vector


def _solve(
    values: FloatArray,
    normals: FloatArray,
    usable: BoolArray,
    fit: _Fit,
    *,
    robust: bool,
    with_room: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return lights and room after one step of reweighted least squares, which is linear in all of them."""
    count = len(values)
    texture = fit.texture
    facing = normals @ fit.room[:3] > 0 if fit.room[:3].any() else np.ones(len(normals), dtype=bool)
    shared = np.column_stack([normals * facing[:, None], np.ones(len(normals))]) * texture[:, None]
    miss = values - fit.shown(normals)
    size = 3 * count + 4
    moment = np.zeros((size, size))
    right = np.zeros(size)
    common = slice(3 * count, size)
    for number, light in enumerate(fit.lights):
        bright = float(np.linalg.norm(light))
        cosine = normals @ light / max(bright, 1e-12)
        lit = cosine > _TERMINATOR
        chosen = usable[number] & (np.abs(cosine) > _TERMINATOR)
        weight = chosen.astype(np.float64)
        if robust:
            usual = float(np.median(np.abs(miss[number][chosen]))) if chosen.any() else 0.0
            scale = max(MAD_TO_SIGMA * usual, 1e-3 * bright, 1e-12)
            weight *= np.clip(1 - (miss[number] / (4.685 * scale)) ** 2, 0, 1) ** 2
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
    """Return the albedo relative to its median: the median ratio over the photographs in which a pixel is lit."""
    lit = usable & (model > 0.25 * model.max(axis=1, keepdims=True))
    enough = lit.sum(axis=0) >= max(3, len(values) // 4)
    texture = np.ones(values.shape[1])
    if not enough.any():
        return texture
    ratio = np.where(lit, values / np.maximum(model, 1e-12), np.nan)[:, enough]
    texture[enough] = np.nanmedian(ratio, axis=0)
    texture[enough] /= max(float(np.median(texture[enough])), 1e-12)
    return np.clip(texture, 0.2, 5.0)
