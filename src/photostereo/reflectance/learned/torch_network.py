"""The set network of :mod:`.constants` on torch tensors.

The version for training shares parts of it.

On a GPU, everything between two matrix products is one launch (``set_network.cu``): in plain torch,
the norm and activation of a layer read and write every token seven times. The version with
gradients is ``photostereo_lab.training.reflectance.network``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.learned import constants as c
from photostereo.reflectance.learned.weights import Weights, stages_of
from photostereo.runtime.cuda_kernels import launch
from photostereo.runtime.illumination import some_lights
from photostereo.runtime.symmetric import inverse_symmetric_3x3

#: Tokens processed at once: about 2 GB on the GPU.
CHUNK = 1_500_000
#: Threads per block; a row of a layer takes 32 of them.
_THREADS = 256
#: Most blocks per launch; each processes several rows.
_MOST_BLOCKS = 1 << 16
#: Weights of each stage by name, cached for the next call.
_loaded: dict[tuple[str, str], list[dict[str, Tensor]]] = {}


@torch.no_grad()  # type: ignore[untyped-decorator]
def predict(
    values: Tensor,
    lights: NDArray[Any],
    weights: Weights,
    index: Tensor | None = None,
    control: Control = SILENT,
) -> tuple[Tensor, Tensor]:
    """Predict unit normals and their expected errors.

    Parameters
    ----------
    values : tensor (N, d) or (N, d, 3)
        Intensities, gray or in color.
    lights : array (d, 3) or (N, d, 3)
        Unit lights.
    weights : Weights
        Of the set network.
    index : tensor of int (M,), optional
        The pixels to predict; by default all.
    control : Control
        Progress and cancellation.

    Returns
    -------
    normals : tensor (M, 3)
    errors : tensor (M,)
        Radians.
    """
    stages = _stages_on(weights, values.device)
    directions = torch.from_numpy(lights).to(values.device)
    normals = []
    errors = []
    count = len(values) if index is None else len(index)
    size = max(1, CHUNK // values.shape[1])
    control.stage("network", count)
    for first in range(0, count, size):
        which = slice(first, first + size) if index is None else index[first : first + size]
        part = values[which].float()
        own = some_lights(directions, which)
        if part.ndim == 2:
            part = part[..., None].expand(-1, -1, 3)
        gray, colors = normalized(part)
        normal, log_error = begin(gray, own)
        for numbers in stages:
            normal, log_error = refine(
                gray, colors, own, normal, log_error, partial(run_stage, numbers)
            )
        normals.append(normal)
        errors.append(log_error.exp())
        control.advance(len(part))
    return torch.cat(normals), torch.cat(errors)


def _stages_on(weights: Weights, device: torch.device) -> list[dict[str, Tensor]]:
    """Return the weights of each stage by name, on a device."""
    # By digest: two files with the same weights share their copy on the device.
    key = (weights.digest, str(device))
    if key not in _loaded:
        stages: list[dict[str, Tensor]] = [{} for _ in range(stages_of(weights.arrays))]
        for name, values in weights.arrays.items():
            stage, _, inner_name = name.partition(".")
            stages[int(stage)][inner_name] = torch.from_numpy(values.copy()).to(device)
        _loaded[key] = stages
    return _loaded[key]


def begin(gray: Tensor, lights: Tensor) -> tuple[Tensor, Tensor]:
    """Return normals (B, 3) and logarithms of their expected errors (B,) before all stages."""
    normal = first_guess(gray, lights)
    return normal, torch.full_like(normal[:, 0], c.UNKNOWN_ERROR)


def refine(
    gray: Tensor,
    colors: Tensor,
    lights: Tensor,
    normal: Tensor,
    log_error: Tensor,
    stage: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Return normals and logarithms of their expected errors after a stage.

    Parameters
    ----------
    gray : tensor (B, d)
        Intensities, from :func:`normalized`.
    colors : tensor (B, d, 3)
        The same in color.
    lights : tensor (d, 3) or (B, d, 3)
        Unit lights.
    normal : tensor (B, 3)
        Unit normals before the stage.
    log_error : tensor (B,)
        Logarithms of their expected errors.
    stage : callable
        Maps tokens (B, d, FEATURES) to a correction and a logarithm (B, 4).
    """
    # In the frame of the normal, a rotated object is the same object.
    turned, cosine, sine = turn(lights.expand(len(gray), -1, -1), normal)
    step = stage(tokens_of(gray, colors, turned, normal[:, 2], log_error))
    start = torch.stack(
        [torch.hypot(normal[:, 0], normal[:, 1]), torch.zeros_like(sine), normal[:, 2]], -1
    )
    inside = functional.normalize(start + step[:, :3], dim=-1, eps=1e-6)
    x = cosine * inside[:, 0] - sine * inside[:, 1]
    y = sine * inside[:, 0] + cosine * inside[:, 1]
    log_error = (step[:, 3] + c.TYPICAL_ERROR).clamp(c.LEAST_LOG_ERROR, c.LARGEST_LOG_ERROR)
    return torch.stack([x, y, inside[:, 2]], -1), log_error


def normalized(colors: Tensor) -> tuple[Tensor, Tensor]:
    """Divide channel means and channels by the root mean square of the means over the photographs."""
    gray = colors.mean(-1)
    scale = torch.rsqrt(gray.square().mean(1, keepdim=True) + c.TINY_INTENSITY)
    return gray * scale, colors * scale[..., None]


def first_guess(gray: Tensor, lights: Tensor) -> Tensor:
    """Estimate normals (B, 3) that face the camera by ridge regression on compressed intensities."""
    v = gray.clamp_min(0.0)
    v = v / (v + c.GUESS_HALF)
    count = lights.shape[-2]
    eye = torch.eye(3, dtype=gray.dtype, device=gray.device)
    gram = lights.transpose(-1, -2) @ lights + c.RIDGE * count * eye
    if lights.ndim == 2:
        # One system for all pixels, so small that calling a GPU library would take longer.
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = gram
        xx, xy, xz, yy, yz, zz = inverse_symmetric_3x3(xx, xy, xz, yy, yz, zz)
        normal = v @ (lights @ torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz]).view(3, 3))
    else:
        normal = torch.linalg.solve(gram, (lights * v[..., None]).sum(1))
    normal = torch.cat([normal[:, :2], normal[:, 2:].clamp_min(c.LEAST_Z)], -1)
    return functional.normalize(normal, dim=-1, eps=1e-6)


def turn(lights: Tensor, normal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rotate lights to the frame in which the normal has azimuth 0.

    Also return the frame's cosine and sine.
    """
    length = torch.hypot(normal[:, 0], normal[:, 1]).clamp_min(1e-6)
    cosine = normal[:, 0] / length
    sine = normal[:, 1] / length
    x = cosine[:, None] * lights[..., 0] + sine[:, None] * lights[..., 1]
    y = cosine[:, None] * lights[..., 1] - sine[:, None] * lights[..., 0]
    return torch.stack([x, y, lights[..., 2]], -1), cosine, sine


def tokens_of(
    gray: Tensor, colors: Tensor, lights: Tensor, tilt: Tensor, log_error: Tensor
) -> Tensor:
    """Return the tokens (B, d, FEATURES) of one stage; lights are in the rotated frame, tilt = n_z."""
    nx = torch.sqrt((1.0 - tilt.square()).clamp_min(0.0))[:, None]
    nz = tilt[:, None]
    nl = nx * lights[..., 0] + nz * lights[..., 2]
    lh = torch.sqrt((0.5 + 0.5 * lights[..., 2]).clamp_min(c.TINY_ROOT))
    nh = (nl + nz) / (2.0 * lh)
    facing = nl.clamp_min(0.0)
    v = gray.clamp_min(0.0)
    # The intensities of a matte pixel, scaled to the robustly compressed intensities.
    matte = (v * facing).sum(1, keepdim=True) / (
        facing.square().sum(1, keepdim=True) + c.MATTE_RIDGE
    )
    half = torch.rsqrt(1.0 + (v - matte * facing).square())
    matte = (half * v * facing).sum(1, keepdim=True) / (
        (half * facing.square()).sum(1, keepdim=True) + c.MATTE_RIDGE
    )
    misfit = v - matte * facing
    count = torch.full_like(nl, float(nl.shape[1])).log() * c.COUNT_FACTOR + c.COUNT_OFFSET
    features = [
        lights[..., 0],
        lights[..., 1],
        lights[..., 2],
        nl,
        nh,
        lh,
        nz.expand_as(nl),
        v.clamp_max(c.MOST_V) * 0.5,
        torch.sqrt(v + c.TINY_ROOT).clamp_max(c.MOST_ROOT),
        v / (v + c.HALF_V),
        c.LOG_FACTOR
        * torch.log((v + c.DARK) / nl.clamp_min(c.GRAZING)).clamp(-c.MOST_LOG, c.MOST_LOG),
        misfit.clamp(-c.MOST_MISFIT, c.MOST_MISFIT),
        0.5 * matte.clamp_max(c.MOST_MATTE).expand_as(nl),
        count,
        (log_error[:, None] - c.TYPICAL_ERROR).expand_as(nl),
        misfit / (misfit.abs() + c.HALF_MISFIT),
    ]
    roots = torch.sqrt(colors.clamp_min(0.0) + c.TINY_ROOT).clamp_max(c.MOST_ROOT)
    return torch.cat([torch.stack(features, -1), roots], -1)


def run_stage(numbers: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """Run a stage with these weights: (B, d, FEATURES) to (B, 4)."""
    sets, count, features = tokens.shape
    x = _layer(numbers, "first", tokens.reshape(-1, features))
    x = _layer(numbers, "second", x)
    context = _linear(numbers, "context", _pooled(x, sets, count))
    x = _layer(numbers, "third", x, context, count)
    x = _layer(numbers, "fourth", x)
    return _linear(numbers, "out", _layer(numbers, "head", _pooled(x, sets, count)))


def _linear(numbers: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return functional.linear(x, numbers[f"{name}.weight"], numbers[f"{name}.bias"])


def _layer(
    numbers: dict[str, Tensor],
    name: str,
    x: Tensor,
    context: Tensor | None = None,
    per_context: int = 0,
) -> Tensor:
    """Apply one layer to (rows, inputs), with one context per ``per_context`` rows."""
    # The product is the library's; all that follows is one launch on a GPU.
    y = _linear(numbers, f"{name}.linear", x)
    gain = numbers[f"{name}.gain"]
    shift = numbers[f"{name}.shift"]
    if y.is_cuda:
        added = y if context is None else context.contiguous()
        _launch("activate", len(y) * 32, y.shape[1], (y, added, gain, shift, len(y), per_context))
        return y
    y = y if context is None else y + context.repeat_interleave(per_context, 0)
    scale = torch.rsqrt(y.square().mean(-1, keepdim=True) + c.TINY_LAYER)
    return functional.hardswish(y * scale * gain + shift)


def _pooled(x: Tensor, sets: int, tokens: int) -> Tensor:
    """Mean and maximum over the tokens of each set: (sets × tokens, W) to (sets, 2W)."""
    width = x.shape[1]
    if not x.is_cuda:
        apart = x.view(sets, tokens, width)
        return torch.cat([apart.mean(1), apart.amax(1)], -1)
    out = x.new_empty(sets, 2 * width)
    _launch("pool", sets * width, width, (x, out, sets, tokens))
    return out


def _launch(name: str, threads: int, width: int, arguments: tuple[Any, ...]) -> None:
    built = {"WIDTH": width, "TINY_LAYER": f"{c.TINY_LAYER}f"}
    blocks = min(-(-threads // _THREADS), _MOST_BLOCKS)
    launch(__package__, "set_network.cu", name, built, arguments, blocks, _THREADS)
