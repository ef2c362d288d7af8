"""Compiled implementation of the set network of :mod:`.constants`.

Each core processes a few pixels at a time through a whole stage: their tokens and activations stay
in its cache, and cores never wait for each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32, Indices
from photostereo.reflectance.learned import constants as c
from photostereo.reflectance.learned.weights import Weights, stages_of
from photostereo.runtime.illumination import shading, some_lights
from photostereo.runtime.loops import get_num_threads, njit
from photostereo.runtime.small_matmul import multiply
from photostereo.runtime.threads import in_turn

#: Tokens per thread and turn, a few hundredths of a second, so that threads finish at about the
#: same time.
TOKENS_AT_ONCE = 25_000
#: Tokens that a core processes together in a stage: activations of about 80 kB.
TOKENS_IN_CACHE = 192


class LayerWeights(NamedTuple):
    """Weights of a layer: ``hardswish(gain · y / rms(y) + shift)`` with ``y = x W + b``."""

    matrix: Float32  #: W, (inputs, width)
    bias: Float32  #: b, (width,)
    gain: Float32  #: (width,)
    shift: Float32  #: (width,)


class LinearWeights(NamedTuple):
    """Weights of ``x W + b``."""

    matrix: Float32  #: W, (inputs, outputs)
    bias: Float32  #: b, (outputs,)


class StageWeights(NamedTuple):
    """Weights of a stage, in the order in which they are used."""

    first: LayerWeights
    second: LayerWeights
    context: LinearWeights  #: of the pool, added to every token
    third: LayerWeights
    fourth: LayerWeights
    head: LayerWeights  #: of the second pool
    out: LinearWeights


class Scratch(NamedTuple):
    """Activations of a few pixels."""

    tokens: Float32  #: (tokens, FEATURES)
    x: Float32  #: (tokens, width)
    y: Float32  #: (tokens, width)
    pool: Float32  #: (pixels, 2 width)
    inner: Float32  #: (pixels, width)
    step: Float32  #: (pixels, 4)


def predict(
    colors: Float32,
    lights: Float32,
    weights: Weights,
    index: Indices | None = None,
    control: Control = SILENT,
) -> tuple[Float32, Float32]:
    """Predict unit normals and their expected errors.

    Parameters
    ----------
    colors : array (N, d, 3)
        Intensities; gray photographs have three equal channels.
    lights : array (d, 3) or (N, d, 3)
        Unit lights.
    weights : Weights
        Of the set network.
    index : array of int (M,), optional
        The pixels to predict; by default all.
    control : Control
        Progress and cancellation.

    Returns
    -------
    normals : array (M, 3)
    errors : array (M,)
        Radians.
    """
    count = len(colors) if index is None else len(index)
    lights = np.ascontiguousarray(lights, dtype=np.float32)
    normals = np.empty((count, 3), np.float32)
    errors = np.empty(count, np.float32)
    # Transposed once: products run over the inputs of a layer.
    stages = [_stage(weights, number) for number in range(stages_of(weights.arrays))]
    size = max(1, TOKENS_AT_ONCE // colors.shape[1])
    parts = [slice(first, min(first + size, count)) for first in range(0, count, size)]

    def predict_part(number: int) -> tuple[Float32, Float32]:
        which = parts[number] if index is None else index[parts[number]]
        values = np.ascontiguousarray(colors[which], dtype=np.float32)
        return _predict_batch(values, some_lights(lights, which), stages)

    control.stage("network", count)
    answers = in_turn(predict_part, len(parts), get_num_threads(), control)
    for part, (normal, error) in zip(parts, answers, strict=True):
        normals[part] = normal
        errors[part] = error
        control.advance(part.stop - part.start)
    return normals, errors


def _stage(weights: Weights, number: int) -> StageWeights:
    """Return the weights of a stage by name; in the archive, outputs are first, as in torch."""
    arrays = weights.arrays

    def matrix(name: str) -> Float32:
        return np.ascontiguousarray(arrays[f"{number}.{name}.weight"].T)

    def layer(name: str) -> LayerWeights:
        return LayerWeights(
            matrix=matrix(f"{name}.linear"),
            bias=arrays[f"{number}.{name}.linear.bias"],
            gain=arrays[f"{number}.{name}.gain"],
            shift=arrays[f"{number}.{name}.shift"],
        )

    def linear(name: str) -> LinearWeights:
        return LinearWeights(matrix(name), arrays[f"{number}.{name}.bias"])

    return StageWeights(
        first=layer("first"),
        second=layer("second"),
        context=linear("context"),
        third=layer("third"),
        fourth=layer("fourth"),
        head=layer("head"),
        out=linear("out"),
    )


def _predict_batch(
    colors: Float32, lights: Float32, stages: list[StageWeights]
) -> tuple[Float32, Float32]:
    pixels, photographs = colors.shape[:2]
    gray = colors.mean(-1)
    # The network sees intensities relative to their root mean square, so exposure does not matter.
    scale = 1.0 / np.sqrt((gray * gray).mean(1, keepdims=True) + np.float32(c.TINY_INTENSITY))
    gray = gray * scale
    scaled = colors * scale[..., None]
    normal = first_guess(gray, lights)
    log_error = np.full(pixels, c.UNKNOWN_ERROR, np.float32)
    together = max(1, TOKENS_IN_CACHE // photographs)
    # One set of lights, or one per pixel.
    sets = np.ascontiguousarray(lights.reshape(-1, photographs, 3))
    tokens = together * photographs
    width = len(stages[0].first.bias)
    # Allocated here: in the compiled loop, it would take 20 ms longer to load.
    scratch = Scratch(
        tokens=np.empty((tokens, c.FEATURES), np.float32),
        x=np.empty((tokens, width), np.float32),
        y=np.empty((tokens, width), np.float32),
        pool=np.empty((together, 2 * width), np.float32),
        inner=np.empty((together, width), np.float32),
        step=np.empty((together, 4), np.float32),
    )
    for stage in stages:
        _run_stage(gray, scaled, sets, stage, scratch, normal, log_error)
    return normal, np.exp(log_error)


def first_guess(gray: Float32, lights: Float32) -> Float32:
    """Estimate normals that face the camera by ridge regression on compressed intensities."""
    v = np.maximum(gray, 0.0)
    v = v / (v + np.float32(c.GUESS_HALF))
    across = lights.swapaxes(-1, -2)
    gram = across @ lights + c.RIDGE * gray.shape[1] * np.eye(3, dtype=np.float32)
    normal = shading(v, np.linalg.solve(gram, across).swapaxes(-1, -2).astype(np.float32))
    normal[:, 2] = np.maximum(normal[:, 2], c.LEAST_Z)
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True), dtype=np.float32)


# Pixels are independent, so :func:`predict` runs the threads: parallel loops take three times as
# long to compile.
@njit(fastmath=True, cache=True)
def _run_stage(gray, colors, lights, stage, scratch, normal, log_error):  # type: ignore[no-untyped-def]
    """Run one stage on all pixels, a few at a time; refine normals and log errors in place.

    Parameters
    ----------
    gray : array (N, d)
        Intensities over their root mean square.
    colors : array (N, d, 3)
        The same in color.
    lights : array (1, d, 3) or (N, d, 3)
        Unit lights.
    stage : StageWeights
        Its weights.
    scratch : Scratch
        Room for the activations of a few pixels.
    normal : array (N, 3)
        Unit normals.
    log_error : array (N,)
        Logarithms of their expected errors.
    """
    tokens, x, y, pool, inner, step = scratch
    first, second, context, third, fourth, head, out = stage
    pixels, d = gray.shape
    together, width = inner.shape
    for begin in range(0, pixels, together):
        n = min(together, pixels - begin)
        rows = n * d
        for q in range(n):
            p = begin + q
            own_lights = lights[p if len(lights) > 1 else 0]
            own_tokens = tokens[q * d : (q + 1) * d]
            _fill_tokens(gray[p], colors[p], own_lights, normal[p], log_error[p], own_tokens)
        # Two layers for each photograph alone...
        multiply(tokens[:rows], first.matrix, x[:rows])
        _activate(x[:rows], first.bias, first.gain, first.shift)
        multiply(x[:rows], second.matrix, y[:rows])
        _activate(y[:rows], second.bias, second.gain, second.shift)
        for q in range(n):
            _pool(y[q * d : (q + 1) * d], pool[q])
        # ... their mean and maximum, which every token then sees...
        multiply(pool[:n], context.matrix, inner[:n])
        for q in range(n):
            for w in range(width):
                inner[q, w] += context.bias[w] + third.bias[w]
        multiply(y[:rows], third.matrix, x[:rows])
        for q in range(n):
            _activate(x[q * d : (q + 1) * d], inner[q], third.gain, third.shift)
        multiply(x[:rows], fourth.matrix, y[:rows])
        _activate(y[:rows], fourth.bias, fourth.gain, fourth.shift)
        for q in range(n):
            _pool(y[q * d : (q + 1) * d], pool[q])
        # ... and the answer of the pixel from the second pool.
        multiply(pool[:n], head.matrix, inner[:n])
        _activate(inner[:n], head.bias, head.gain, head.shift)
        multiply(inner[:n], out.matrix, step[:n])
        for q in range(n):
            p = begin + q
            log_error[p] = _refine(normal[p], step[q], out.bias)


@njit(fastmath=True, error_model="numpy", cache=True)
def _refine(normal, step, bias):  # type: ignore[no-untyped-def]
    """Add a correction in the rotated frame to one normal, in place.

    Return the logarithm of its expected error.
    """
    flat = np.sqrt(normal[0] * normal[0] + normal[1] * normal[1])
    length = max(flat, np.float32(1e-6))
    cosine = normal[0] / length
    sine = normal[1] / length
    x = flat + step[0] + bias[0]
    y = step[1] + bias[1]
    z = normal[2] + step[2] + bias[2]
    scale = np.float32(1.0) / max(np.sqrt(x * x + y * y + z * z), np.float32(1e-6))
    normal[0] = scale * (cosine * x - sine * y)
    normal[1] = scale * (sine * x + cosine * y)
    normal[2] = scale * z
    log_error = step[3] + bias[3] + np.float32(c.TYPICAL_ERROR)
    return min(max(log_error, np.float32(c.LEAST_LOG_ERROR)), np.float32(c.LARGEST_LOG_ERROR))


@njit(fastmath=True, error_model="numpy", cache=True)
def _fill_tokens(gray, colors, lights, normal, log_error, tokens):  # type: ignore[no-untyped-def]
    """Fill the tokens of one pixel, one row per photograph, with the features of :mod:`.constants`."""
    photographs = len(gray)
    zero = np.float32(0.0)
    one = np.float32(1.0)
    half = np.float32(0.5)
    tiny = np.float32(c.TINY_ROOT)
    limit = np.float32(c.MOST_MISFIT)
    # All constants in single precision: one in double would slow the whole loop.
    count = np.float32(np.log(photographs) * c.COUNT_FACTOR + c.COUNT_OFFSET)
    length = max(np.sqrt(normal[0] * normal[0] + normal[1] * normal[1]), np.float32(1e-6))
    cosine = normal[0] / length
    sine = normal[1] / length
    nz = normal[2]
    nx = np.sqrt(max(one - nz * nz, zero))
    above = zero
    below = np.float32(c.MATTE_RIDGE)
    for j in range(photographs):
        x = cosine * lights[j, 0] + sine * lights[j, 1]
        y = cosine * lights[j, 1] - sine * lights[j, 0]
        z = lights[j, 2]
        nl = nx * x + nz * z
        lh = np.sqrt(max(half + half * z, tiny))
        tokens[j, 0] = x
        tokens[j, 1] = y
        tokens[j, 2] = z
        tokens[j, 3] = nl
        tokens[j, 4] = half * (nl + nz) / lh
        tokens[j, 5] = lh
        tokens[j, 6] = nz
        facing = max(nl, zero)
        v = max(gray[j], zero)
        above += v * facing
        below += facing * facing
    matte = above / below
    # Fit again, with less weight on poorly fitting photographs.
    above = zero
    below = np.float32(c.MATTE_RIDGE)
    for j in range(photographs):
        facing = max(tokens[j, 3], zero)
        v = max(gray[j], zero)
        misfit = v - matte * facing
        trust = one / np.sqrt(one + misfit * misfit)
        above += trust * v * facing
        below += trust * facing * facing
    matte = above / below
    for j in range(photographs):
        nl = tokens[j, 3]
        v = max(gray[j], zero)
        misfit = v - matte * max(nl, zero)
        tokens[j, 7] = half * min(v, np.float32(c.MOST_V))
        tokens[j, 8] = min(np.sqrt(v + tiny), np.float32(c.MOST_ROOT))
        tokens[j, 9] = v / (v + np.float32(c.HALF_V))
        ratio = np.log((v + np.float32(c.DARK)) / max(nl, np.float32(c.GRAZING)))
        tokens[j, 10] = np.float32(c.LOG_FACTOR) * min(
            max(ratio, np.float32(-c.MOST_LOG)), np.float32(c.MOST_LOG)
        )
        tokens[j, 11] = min(max(misfit, -limit), limit)
        tokens[j, 12] = half * min(matte, np.float32(c.MOST_MATTE))
        tokens[j, 13] = count
        tokens[j, 14] = log_error - np.float32(c.TYPICAL_ERROR)
        tokens[j, 15] = misfit / (abs(misfit) + np.float32(c.HALF_MISFIT))
        for channel in range(3):
            root = np.sqrt(max(colors[j, channel], zero) + tiny)
            tokens[j, 16 + channel] = min(root, np.float32(c.MOST_ROOT))


# At most four arrays and one row at a time: with more, the compiler cannot rule out overlap and
# does not vectorize. Division as in NumPy avoids a branch for zero.
@njit(fastmath=True, error_model="numpy", cache=True)
def _activate(y, offset, gain, shift):  # type: ignore[no-untyped-def]
    """Apply hardswish(gain · (y + offset) / rms + shift) in place, row by row."""
    rows, width = y.shape
    sixth = np.float32(1.0 / 6.0)
    half = np.float32(0.5)
    zero = np.float32(0.0)
    one = np.float32(1.0)
    for j in range(rows):
        row = y[j]
        total = zero
        for w in range(width):
            value = row[w] + offset[w]
            total += value * value
        scale = one / np.sqrt(total / np.float32(width) + np.float32(c.TINY_LAYER))
        for w in range(width):
            value = (row[w] + offset[w]) * scale * gain[w] + shift[w]
            row[w] = value * min(max(value * sixth + half, zero), one)


@njit(fastmath=True, error_model="numpy", cache=True)
def _pool(y, pool):  # type: ignore[no-untyped-def]
    """Mean and maximum over the rows."""
    rows, width = y.shape
    for w in range(width):
        pool[w] = y[0, w]
        pool[width + w] = y[0, w]
    for j in range(1, rows):
        row = y[j]
        for w in range(width):
            pool[w] += row[w]
        for w in range(width):
            pool[width + w] = max(pool[width + w], row[w])
    for w in range(width):
        pool[w] /= np.float32(rows)
