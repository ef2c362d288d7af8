"""The network that estimates lights, in NumPy; :mod:`photostereo_lab.training.lights.network` is its version in torch.

It has two stages ("looks"). The first encodes every photograph as a token (convolutions), relates the tokens to each
other (attention) and outputs lights. From these lights a robust matte fit gives normals. The second look takes the
photographs together with this fit. Its pooled maps give better normals, these give each light again in closed form, and
tokens of all that give the final lights and their expected errors.

Pictures are (photographs, height, width, channels).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import BoolArray, Float32
from photostereo.io import network_weights
from photostereo.io.network_weights import Weights
from photostereo.lights.unknown.crops import Symmetry, Thumbnails
from photostereo.lights.unknown.shading import (
    Frames,
    Matte,
    first_inputs,
    fit_lights,
    frames_of,
    half_frames,
    matte_normals,
    second_inputs,
    weighted_half,
)
from photostereo.runtime.convolution import convolve, relu, twice

SHIPPED_DIGEST = "17162c0df7463551858608b025b3f48344724dd3a3db5d6474e816754ff16fed"

#: Numbers per photograph between the layers of attention.
WIDTH = 160
#: Heads of attention, which share these numbers.
HEADS = 4
#: Layers of attention after the first look.
FIRST_LAYERS = 1
#: Layers of attention after the second look.
SECOND_LAYERS = 2
#: Stride of the first convolution of the first look.
FIRST_STRIDE = 2
#: The same of the second look, which sees pictures of half the size.
SECOND_STRIDE = 1
#: Photographs convolved together: enough for a matrix product, few enough for the cache.
TOGETHER = 4
#: Logarithm of the expected error, in radians, for a zero output of the last layer.
USUAL_LOG_ERROR = -1.5


def shipped_weights() -> Weights:
    """Return the weights that come with the package."""
    return network_weights.shipped_weights(__package__, _shapes, SHIPPED_DIGEST)


def _shapes(arrays: Mapping[str, NDArray[Any]]) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in arrays.items()}


@dataclass(frozen=True, eq=False)
class Look:
    """Result of a look: tokens (d, WIDTH), directions (d, 3) and log strengths (d,) with mean 0.

    The second look also gives logarithms of the expected errors (d,) and normals (h, w, 3).
    """

    tokens: Float32
    lights: Float32
    logs: Float32
    log_errors: Any = None
    normals: Any = None


class LightNetwork:
    """Both looks, for one set of photographs, some of whose lights (d, 3) may be ``known``; NaN for the others."""

    def __init__(
        self, weights: Weights, thumbnails: Thumbnails, known: ArrayLike | None = None
    ) -> None:
        self._w = weights.arrays
        self._full = frames_of(thumbnails.images, thumbnails.mask)
        self.half = half_frames(self._full)
        self.quarter = half_frames(self.half)  #: its mask is that of the coarse normals
        if known is None:
            lights = np.full((len(thumbnails.images), 3), np.nan)
        else:
            lights = np.asarray(known)
        self.is_known: BoolArray = np.asarray(np.isfinite(lights).all(axis=1))
        self._known = unit_vectors(np.where(self.is_known[:, None], lights, [0.0, 0.0, 1.0]))

    def keep_known(self, lights: Float32) -> Float32:
        """Return the lights with the known ones in their places."""
        return np.where(self.is_known[:, None], self._known, lights)

    def _given(self, symmetry: Symmetry) -> Float32:
        """Return the known lights (d, 4), turned and followed by 1; zero if they are not known."""
        flags = self.is_known[:, None].astype(np.float32)
        return np.concatenate([symmetry.of_vectors(self._known) * flags, flags], axis=1)

    def first_look(self, symmetry: Symmetry) -> Look:
        """Estimate lights from the photographs alone, under a symmetry of the square that is undone afterwards."""
        w = self._w
        pictures = symmetry.of_pictures(first_inputs(self._full))
        tokens, _ = _encode(w, "first", pictures, FIRST_STRIDE)
        tokens = tokens + _affine(w, "known", self._given(symmetry))
        for number in range(FIRST_LAYERS):
            tokens = _attention(w, f"first_layers.{number}", tokens)
        raw = _affine(w, "first_head", tokens)
        upward = np.logaddexp(raw[:, 2:3], np.float32(0)) + np.float32(0.02)
        lights = symmetry.inverse.of_vectors(
            unit_vectors(np.concatenate([raw[:, :2], upward], axis=1))
        )
        return Look(tokens, self.keep_known(lights), raw[:, 3] - raw[:, 3].mean())

    def second_look(self, first: Look, lights: Float32, logs: Float32, symmetry: Symmetry) -> Look:
        """Refine the lights, from the photographs and a matte fit to ``lights`` of strengths exp ``logs``."""
        w = self._w
        strengths = np.exp(logs)
        matte = matte_normals(self.half.gray, lights, strengths)
        shown = _turned_frames(self.half, symmetry)
        turned = symmetry.of_vectors(lights)
        fit = Matte(
            symmetry.of_vectors(symmetry.of_pictures(matte.normals[None])[0]),
            symmetry.of_pictures(matte.albedo[None])[0],
            symmetry.of_pictures(matte.misfit[None])[0],
        )
        tokens, pool = _encode(
            w, "second", second_inputs(shown, turned, strengths, fit), SECOND_STRIDE
        )
        quarter = _turned_frames(self.quarter, symmetry)
        inside = np.moveaxis(fit.normals * shown.cover[..., None], -1, 0)
        fitted = np.moveaxis(weighted_half(inside, shown.cover), 0, -1)
        maps = np.concatenate([pool, fitted, quarter.cover[..., None]], axis=-1)
        normals = unit_vectors(fitted + _normals(w, maps))
        closed = fit_lights(normals, quarter.gray, quarter.cover, turned, strengths)
        clues = np.concatenate([turned, logs[:, None], closed, self._given(symmetry)], axis=1)
        tokens = first.tokens + tokens + _affine(w, "clues", clues)
        for number in range(SECOND_LAYERS):
            tokens = _attention(w, f"second_layers.{number}", tokens)
        change = _affine(w, "second_head", tokens)
        better = turned + change[:, :3]
        better[:, 2] = np.maximum(better[:, 2], np.float32(0.02))
        found = self.keep_known(symmetry.inverse.of_vectors(unit_vectors(better)))
        new_logs = logs + change[:, 3]
        upright = symmetry.inverse.of_vectors(symmetry.inverse.of_pictures(normals[None])[0])
        errors = change[:, 4] + np.float32(USUAL_LOG_ERROR)
        return Look(tokens, found, new_logs - new_logs.mean(), errors, upright)


def _turned_frames(frames: Frames, symmetry: Symmetry) -> Frames:
    return Frames(
        symmetry.of_pictures(frames.colors),
        symmetry.of_pictures(frames.gray),
        symmetry.of_pictures(frames.cover[None])[0],
    )


def unit_vectors(vectors: Float32) -> Float32:
    """Return the vectors (..., 3) divided by their lengths."""
    size = np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
    return np.asarray(vectors / size, dtype=np.float32)


def _affine(w: Mapping[str, Float32], name: str, x: Float32) -> Float32:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _in_parts(function: Callable[[Float32], Float32], x: Float32) -> Float32:
    return np.concatenate([function(x[i : i + TOGETHER]) for i in range(0, len(x), TOGETHER)])


def _block(w: Mapping[str, Float32], name: str, x: Float32) -> Float32:
    return x + convolve(w, f"{name}.second", relu(convolve(w, f"{name}.first", x)))


def _encode(
    w: Mapping[str, Float32], name: str, pictures: Float32, stride: int
) -> tuple[Float32, Float32]:
    """Return tokens (d, WIDTH), and the pooled fine maps (h, w, 2 C)."""

    def begin(x: Float32) -> Float32:
        return relu(convolve(w, f"{name}.fine", relu(convolve(w, f"{name}.stem", x, stride)), 2))

    def finish(x: Float32) -> Float32:
        x = _block(w, f"{name}.middle_block", relu(convolve(w, f"{name}.middle", x, 2)))
        x = relu(convolve(w, f"{name}.last", relu(x), 2))
        kept = w[f"{name}.kept.weight"]
        x = relu(x @ kept.reshape(kept.shape[:2]).T + w[f"{name}.kept.bias"])
        return _affine(w, f"{name}.token", x.reshape(len(x), -1))

    fine = _in_parts(begin, pictures)
    context = w[f"{name}.context.weight"]
    fine += _pooled(fine) @ context.reshape(context.shape[:2]).T + w[f"{name}.context.bias"]
    fine = _in_parts(lambda x: _block(w, f"{name}.fine_block", x), fine)
    return _in_parts(finish, fine), _pooled(fine)


def _pooled(x: Float32) -> Float32:
    return np.concatenate([x.mean(axis=0), x.max(axis=0)], axis=-1)


def _layer_norm(w: Mapping[str, Float32], name: str, x: Float32) -> Float32:
    centered = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    return np.asarray(centered / scale * w[f"{name}.weight"] + w[f"{name}.bias"], dtype=np.float32)


def _attention(w: Mapping[str, Float32], name: str, x: Float32) -> Float32:
    three = _affine(w, f"{name}.three", _layer_norm(w, f"{name}.before", x))
    q, k, v = three.reshape(len(x), 3, HEADS, -1).transpose(1, 2, 0, 3)
    scores = q @ k.transpose(0, 2, 1) * np.float32((WIDTH // HEADS) ** -0.5)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    seen = scores / scores.sum(axis=-1, keepdims=True) @ v
    x = x + _affine(w, f"{name}.out", seen.transpose(1, 0, 2).reshape(len(x), -1))
    inner = relu(_affine(w, f"{name}.up", _layer_norm(w, f"{name}.between", x)))
    return x + _affine(w, f"{name}.down", inner)


def _normals(w: Mapping[str, Float32], x: Float32) -> Float32:
    """Apply the network of normals: maps (h, w, C) to (h, w, 3)."""
    full = relu(convolve(w, "normals.enter", x[None]))
    half = relu(convolve(w, "normals.halved", full, 2))
    deep = relu(convolve(w, "normals.deep", relu(convolve(w, "normals.quartered", half, 2))))
    half = relu(half + convolve(w, "normals.up_half", twice(deep)))
    full = relu(full + convolve(w, "normals.up_full", twice(half)))
    return np.asarray(convolve(w, "normals.leave", full)[0])
