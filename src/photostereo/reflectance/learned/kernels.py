"""The set network, compiled: the same arithmetic as :mod:`.network`, pixel by pixel.

One pixel's tokens and activations fit into a core's cache, so each core takes a pixel through a whole stage before
the next; cores never wait for each other. The matrix products go to BLAS in slices of so few rows that it does not
start threads of its own.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads

from photostereo.reflectance.learned import network
from photostereo.reflectance.learned.network import FEATURES, TYPICAL_ERROR, UNKNOWN_ERROR, Floats
from photostereo.reflectance.learned.weights import LAYERS, StageWeights, Weights
from photostereo.runtime.loops import njit, prange

#: Pixels at once; what lies between the stages is small.
CHUNK = 16_384
#: Rows of one matrix product. OpenBLAS takes one thread up to 2^18 multiplications: 28 rows of 96 × 96.
MULTIPLICATIONS = 1 << 18


def predict(colors: Floats, lights: Floats, weights: Weights) -> tuple[Floats, Floats]:
    """As :func:`.network.predict`: unit normals (N, 3) and expected errors (N,) in radians."""
    count = len(colors)
    lights = np.ascontiguousarray(lights, dtype=np.float32)
    normals, errors = np.empty((count, 3), np.float32), np.empty(count, np.float32)
    packed = [_packed(stage) for stage in weights.stages]
    for first in range(0, count, CHUNK):
        part = slice(first, min(first + CHUNK, count))
        values = np.ascontiguousarray(colors[part], dtype=np.float32)
        normals[part], errors[part] = _predict_chunk(values, lights, packed)
    return normals, errors


def _packed(stage: StageWeights) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """The matrices and the vectors of a stage, in the order of LAYERS, then context and out."""
    layers = [getattr(stage, name) for name in LAYERS]
    matrices = (*(layer.weight for layer in layers), stage.context[0], stage.out[0])
    vectors = [vector for layer in layers for vector in (layer.bias, layer.gain, layer.shift)]
    return matrices, (*vectors, stage.context[1], stage.out[1])


def _predict_chunk(
    colors: Floats, lights: Floats, packed: list[tuple[tuple[Floats, ...], tuple[Floats, ...]]]
) -> tuple[Floats, Floats]:
    pixels, photographs = colors.shape[:2]
    gray = np.empty((pixels, photographs), np.float32)
    scaled = np.empty_like(colors)
    _normalize(colors, gray, scaled)
    normal = network.first_guess(gray, lights)
    log_error = np.full(pixels, UNKNOWN_ERROR, np.float32)
    step = np.empty((pixels, 4), np.float32)
    for matrices, vectors in packed:
        _, cosine, sine = network.turn(lights[:1], normal)
        width = matrices[1].shape[1]
        rows = max(1, MULTIPLICATIONS // (width * width) - 1)
        _run_stage(
            gray, scaled, lights, normal, cosine, sine, log_error, np.float32(TYPICAL_ERROR),
            matrices, vectors, rows, get_num_threads(), step,
        )  # fmt: skip
        normal, log_error = network.refine(normal, cosine, sine, step)
    return normal, np.exp(log_error)


@njit(parallel=True, fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _normalize(colors: Floats, gray: Floats, scaled: Floats) -> None:
    """Channel means and channels, divided by the former's root mean square over the photographs."""
    pixels, photographs = gray.shape
    third = np.float32(1.0 / 3.0)
    for p in prange(pixels):
        total = np.float32(0.0)
        for j in range(photographs):
            value = (colors[p, j, 0] + colors[p, j, 1] + colors[p, j, 2]) * third
            gray[p, j] = value
            total += value * value
        scale = np.float32(1.0) / np.sqrt(total / np.float32(photographs) + np.float32(1e-12))
        for j in range(photographs):
            gray[p, j] *= scale
            for c in range(3):
                scaled[p, j, c] = colors[p, j, c] * scale


@njit(parallel=True, fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _run_stage(
    gray: Floats,
    colors: Floats,
    lights: Floats,
    normal: Floats,
    cosine: Floats,
    sine: Floats,
    log_error: Floats,
    typical: np.float32,
    matrices: tuple[Floats, ...],
    vectors: tuple[Floats, ...],
    rows: int,
    workers: int,
    step: Floats,
) -> None:
    """As :func:`.network.run_stage` on the tokens of :func:`.network.tokens_of`, into ``step`` (N, 4)."""
    pixels, photographs = gray.shape
    width = matrices[1].shape[1]
    for worker in prange(workers):
        tokens = np.empty((photographs, FEATURES), np.float32)
        x = np.empty((photographs, width), np.float32)
        y = np.empty((photographs, width), np.float32)
        pool = np.empty((1, 2 * width), np.float32)
        inner = np.empty((1, width), np.float32)
        last = np.empty((1, 4), np.float32)
        first = np.int64(worker) * pixels // workers
        stop = (np.int64(worker) + 1) * pixels // workers
        for p in range(first, stop):
            _fill_tokens(
                gray[p], colors[p], lights, normal[p, 2], cosine[p], sine[p], log_error[p], typical, tokens
            )
            _multiply(tokens, matrices[0], rows, x)
            _activate(x, vectors[0], vectors[1], vectors[2])
            _multiply(x, matrices[1], rows, y)
            _activate(y, vectors[3], vectors[4], vectors[5])
            _pool(y, pool[0])
            np.dot(pool, matrices[5], inner)
            for w in range(width):
                inner[0, w] += vectors[15][w] + vectors[6][w]
            _multiply(y, matrices[2], rows, x)
            _activate(x, inner[0], vectors[7], vectors[8])
            _multiply(x, matrices[3], rows, y)
            _activate(y, vectors[9], vectors[10], vectors[11])
            _pool(y, pool[0])
            np.dot(pool, matrices[4], inner)
            _activate(inner, vectors[12], vectors[13], vectors[14])
            np.dot(inner, matrices[6], last)
            for c in range(4):
                step[p, c] = last[0, c] + vectors[16][c]


@njit(fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _multiply(x: Floats, matrix: Floats, rows: int, out: Floats) -> None:
    """x W in slices of a few rows."""
    for first in range(0, len(x), rows):
        np.dot(x[first : first + rows], matrix, out[first : first + rows])


@njit(fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def _fill_tokens(
    gray: Floats,
    colors: Floats,
    lights: Floats,
    nz: np.float32,
    cosine: np.float32,
    sine: np.float32,
    log_error: np.float32,
    typical: np.float32,
    tokens: Floats,
) -> None:
    """As :func:`.network.tokens_of` for one pixel, one row per photograph."""
    photographs = len(gray)
    zero, one, half = np.float32(0.0), np.float32(1.0), np.float32(0.5)
    small, edge = np.float32(1e-6), np.float32(1e-3)
    count = np.float32(np.log(photographs) / 3.0 - 1.0)
    nx = np.sqrt(max(one - nz * nz, zero))
    above, below = zero, edge
    for j in range(photographs):
        x = cosine * lights[j, 0] + sine * lights[j, 1]
        y = cosine * lights[j, 1] - sine * lights[j, 0]
        z = lights[j, 2]
        nl = nx * x + nz * z
        lh = np.sqrt(max(half + half * z, small))
        tokens[j, 0], tokens[j, 1], tokens[j, 2] = x, y, z
        tokens[j, 3], tokens[j, 4] = nl, half * (nl + nz) / lh
        tokens[j, 5], tokens[j, 6] = lh, nz
        facing, v = max(nl, zero), max(gray[j], zero)
        above += v * facing
        below += facing * facing
    matte = above / below
    above, below = zero, edge
    for j in range(photographs):
        facing, v = max(tokens[j, 3], zero), max(gray[j], zero)
        misfit = v - matte * facing
        trust = one / np.sqrt(one + misfit * misfit)
        above += trust * v * facing
        below += trust * facing * facing
    matte = above / below
    for j in range(photographs):
        nl, v = tokens[j, 3], max(gray[j], zero)
        misfit = v - matte * max(nl, zero)
        tokens[j, 7] = half * min(v, np.float32(8.0))
        tokens[j, 8] = min(np.sqrt(v + small), np.float32(3.0))
        tokens[j, 9] = v / (v + np.float32(0.4))
        ratio = np.log((v + np.float32(0.02)) / max(nl, np.float32(0.08)))
        tokens[j, 10] = np.float32(0.4) * min(max(ratio, np.float32(-6.0)), np.float32(6.0))
        tokens[j, 11] = min(max(misfit, np.float32(-3.0)), np.float32(3.0))
        tokens[j, 12] = half * min(matte, np.float32(6.0))
        tokens[j, 13] = count
        tokens[j, 14] = log_error - typical
        tokens[j, 15] = misfit / (abs(misfit) + np.float32(0.1))
        for c in range(3):
            root = np.sqrt(max(colors[j, c], zero) + small)
            tokens[j, 16 + c] = min(root, np.float32(3.0))


# Four arrays at most and one row at a time: with more the compiler cannot rule out that they overlap, and gives up
# doing sixteen numbers at once. Division as in NumPy, so that no branch for zero stands in the way.
@njit(fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def _activate(y: Floats, offset: Floats, gain: Floats, shift: Floats) -> None:
    """In place hardswish(gain · (y + offset) / rms + shift), row by row."""
    rows, width = y.shape
    sixth, half = np.float32(1.0 / 6.0), np.float32(0.5)
    zero, one = np.float32(0.0), np.float32(1.0)
    for j in range(rows):
        row = y[j]
        total = zero
        for w in range(width):
            value = row[w] + offset[w]
            total += value * value
        scale = one / np.sqrt(total / np.float32(width) + np.float32(1e-5))
        for w in range(width):
            value = (row[w] + offset[w]) * scale * gain[w] + shift[w]
            row[w] = value * min(max(value * sixth + half, zero), one)


@njit(fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def _pool(y: Floats, pool: Floats) -> None:
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


def warm_up(weights: Weights) -> None:
    """Compile on a tiny problem, outside of any timing."""
    predict(np.ones((2, 3, 3), np.float32), np.eye(3, dtype=np.float32), weights)
