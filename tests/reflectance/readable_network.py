"""The set network in NumPy, readable: what the compiled and the torch form are compared with.

The symbols and features are described in :mod:`photostereo.reflectance.learned.constants`. The numbers are written out
here, so that a changed constant shows.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from photostereo.io.network_weights import Weights

Floats = NDArray[np.float32]
#: The logarithm of the expected error before the first stage, and the one that the outputs count from.
UNKNOWN_ERROR, TYPICAL_ERROR = -1.5, -2.0


def predict(colors: Floats, lights: Floats, weights: Weights) -> tuple[Floats, Floats]:
    """Unit normals (N, 3) and expected errors (N,) in radians.

    Parameters
    ----------
    colors : (N, d, 3) linear intensities; gray photographs have three equal channels
    lights : (d, 3) unit directions
    weights : the network's numbers
    """
    gray, colors = normalized(colors.astype(np.float32))
    lights = lights.astype(np.float32)
    normal = first_guess(gray, lights)
    log_error = np.full(len(gray), UNKNOWN_ERROR, np.float32)
    for stage in stages_of(weights):
        turned, cosine, sine = turn(lights, normal)
        step = run_stage(stage, tokens_of(gray, colors, turned, normal[:, 2], log_error))
        normal, log_error = refine(normal, cosine, sine, step)
    return normal, np.exp(log_error)


def stages_of(weights: Weights) -> list[SimpleNamespace]:
    """The layers of every stage: matrices, inputs first, with their vectors; context and out as pairs."""
    found = []
    for stage in (0, 1):

        def affine(name: str, stage: int = stage) -> tuple[Floats, Floats]:
            return weights.arrays[f"{stage}.{name}.weight"].T, weights.arrays[
                f"{stage}.{name}.bias"
            ]

        layers = {"context": affine("context"), "out": affine("out")}
        for name in ("first", "second", "third", "fourth", "head"):
            weight, bias = affine(f"{name}.linear")
            gain, shift = (
                weights.arrays[f"{stage}.{name}.{vector}"] for vector in ("gain", "shift")
            )
            layers[name] = SimpleNamespace(weight=weight, bias=bias, gain=gain, shift=shift)
        found.append(SimpleNamespace(**layers))
    return found


def normalized(colors: Floats) -> tuple[Floats, Floats]:
    """Mean of the channels and the channels, divided by the former's root mean square over the photographs."""
    gray = colors.mean(-1)
    scale = 1.0 / np.sqrt(np.square(gray).mean(1, keepdims=True) + 1e-12)
    return (gray * scale).astype(np.float32), (colors * scale[..., None]).astype(np.float32)


def first_guess(gray: Floats, lights: Floats) -> Floats:
    """A normal from ridge regression on compressed intensities v / (v + 0.5), in front of the object."""
    v = np.maximum(gray, 0.0)
    v = v / (v + np.float32(0.5))
    gram = lights.T @ lights + 0.02 * len(lights) * np.eye(3, dtype=np.float32)
    normal = v @ np.linalg.solve(gram, lights.T).T.astype(np.float32)
    normal[:, 2] = np.maximum(normal[:, 2], 1e-3)
    return unit(np.asarray(normal, dtype=np.float32))


def turn(lights: Floats, normal: Floats) -> tuple[Floats, Floats, Floats]:
    """Lights (N, d, 3) in the frame where each normal has azimuth 0, and that frame's cosine and sine."""
    length = np.maximum(np.hypot(normal[:, 0], normal[:, 1]), 1e-6)
    cosine = np.asarray(normal[:, 0] / length, dtype=np.float32)
    sine = np.asarray(normal[:, 1] / length, dtype=np.float32)
    x = np.outer(cosine, lights[:, 0]) + np.outer(sine, lights[:, 1])
    y = np.outer(cosine, lights[:, 1]) - np.outer(sine, lights[:, 0])
    return np.stack([x, y, np.broadcast_to(lights[:, 2], x.shape)], -1), cosine, sine


def tokens_of(
    gray: Floats, colors: Floats, lights: Floats, tilt: Floats, log_error: Floats
) -> Floats:
    """The tokens (N, d, 19) of one stage; lights in the turned frame, tilt = n_z.

    See :mod:`photostereo.reflectance.learned.constants`.
    """
    nz = tilt[:, None]
    nx = np.sqrt(np.maximum(1.0 - nz * nz, 0.0))
    nl = nx * lights[..., 0] + nz * lights[..., 2]
    lh = np.sqrt(np.maximum(0.5 + 0.5 * lights[..., 2], 1e-6))
    facing, v = np.maximum(nl, 0.0), np.maximum(gray, 0.0)
    matte = (v * facing).sum(1, keepdims=True) / (np.square(facing).sum(1, keepdims=True) + 1e-3)
    # Once more with less weight for what does not fit.
    trust = 1.0 / np.sqrt(1.0 + np.square(v - matte * facing))
    matte = (trust * v * facing).sum(1, keepdims=True) / (
        (trust * np.square(facing)).sum(1, keepdims=True) + 1e-3
    )
    misfit = v - matte * facing
    columns = [
        lights[..., 0],
        lights[..., 1],
        lights[..., 2],
        nl,
        (nl + nz) / (2.0 * lh),
        lh,
        nz,
        0.5 * np.minimum(v, 8.0),
        np.minimum(np.sqrt(v + 1e-6), 3.0),
        v / (v + 0.4),
        0.4 * np.clip(np.log((v + 0.02) / np.maximum(nl, 0.08)), -6.0, 6.0),
        np.clip(misfit, -3.0, 3.0),
        0.5 * np.minimum(matte, 6.0),
        np.log(nl.shape[1]) / 3.0 - 1.0,
        log_error[:, None] - TYPICAL_ERROR,
        misfit / (np.abs(misfit) + 0.1),
    ]
    roots = np.minimum(np.sqrt(np.maximum(colors, 0.0) + 1e-6), 3.0)
    tokens = [np.broadcast_to(column, nl.shape) for column in columns] + [
        roots[..., c] for c in range(3)
    ]
    return np.stack(tokens, -1).astype(np.float32)


def run_stage(stage: SimpleNamespace, tokens: Floats) -> Floats:
    """Tokens (N, d, 19) to the correction of the normal and the logarithm of its error, (N, 4)."""
    x = activate(
        stage.second, activate(stage.first, tokens @ stage.first.weight) @ stage.second.weight
    )
    matrix, bias = stage.context
    context = pooled(x) @ matrix + bias
    x = activate(stage.third, x @ stage.third.weight + context[:, None])
    x = activate(stage.fourth, x @ stage.fourth.weight)
    matrix, bias = stage.out
    return np.asarray(activate(stage.head, pooled(x) @ stage.head.weight) @ matrix + bias)


def activate(layer: SimpleNamespace, product: Floats) -> Floats:
    """hardswish(gain · y / rms(y) + shift), y = product + bias."""
    y = product + layer.bias
    y = (
        y / np.sqrt(np.square(y).mean(-1, keepdims=True) + np.float32(1e-5)) * layer.gain
        + layer.shift
    )
    return np.asarray(y * np.clip(y * np.float32(1 / 6) + np.float32(0.5), 0.0, 1.0))


def pooled(x: Floats) -> Floats:
    """Mean and maximum over the photographs: (N, d, W) to (N, 2W)."""
    return np.concatenate([x.mean(1), x.max(1)], -1)


def refine(normal: Floats, cosine: Floats, sine: Floats, step: Floats) -> tuple[Floats, Floats]:
    """The corrected normal, turned back, and the logarithm of its expected error."""
    inside = unit(
        np.stack(
            [
                np.hypot(normal[:, 0], normal[:, 1]) + step[:, 0],
                step[:, 1],
                normal[:, 2] + step[:, 2],
            ],
            -1,
        )
    )
    x = cosine * inside[:, 0] - sine * inside[:, 1]
    y = sine * inside[:, 0] + cosine * inside[:, 1]
    return np.stack([x, y, inside[:, 2]], -1), np.clip(step[:, 3] + TYPICAL_ERROR, -6.0, 1.0)


def unit(vectors: Floats) -> Floats:
    """Vectors divided by their lengths."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6))
