"""The set network of :mod:`.constants` in torch: what is trained, and what runs on a GPU.

On a GPU what lies between two matrix products is one launch (``set_network.cu``): in plain torch a layer's norm and
activation read and write every token seven times. :meth:`Stage.forward` is the readable form, which has gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.learned import constants as c
from photostereo.reflectance.learned.weights import Weights, stages_of, width_of
from photostereo.runtime.algebra import inverse_symmetric_3x3
from photostereo.runtime.cuda_kernels import launch
from photostereo.runtime.illumination import some_lights

#: Tokens at once: about 2 GB on the GPU.
CHUNK = 1_500_000
_THREADS, _MOST_BLOCKS = 256, 1 << 16


class RmsLinear(nn.Module):  # type: ignore[misc]
    """x ↦ hardswish(g · (Wx + b + context) / rms + c): one layer."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        y = self.linear(x)
        if context is not None:
            y = y + context
        scale = torch.rsqrt(y.float().square().mean(-1, keepdim=True) + c.TINY_LAYER).to(y.dtype)
        return functional.hardswish(y * scale * self.gain + self.shift)


class Stage(nn.Module):  # type: ignore[misc]
    """One look at the set."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = RmsLinear(c.FEATURES, width)
        self.second = RmsLinear(width, width)
        self.context = nn.Linear(2 * width, width)
        self.third = RmsLinear(width, width)
        self.fourth = RmsLinear(width, width)
        self.head = RmsLinear(2 * width, width)
        self.out = nn.Linear(width, 4)
        nn.init.normal_(self.out.weight, std=1e-2)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.second(self.first(tokens))
        x = self.fourth(self.third(x, self.context(pooled(x))[:, None]))
        return self.out(self.head(pooled(x))).float()


class SetNetwork(nn.Module):  # type: ignore[misc]
    """Intensities (B, d, 3) and lights (B, d, 3) or (d, 3) to unit normals and the logarithm of the expected
    error, which ``stages`` of ``width`` numbers per token refine.
    """

    def __init__(self, width: int = 96, stages: int = 2) -> None:
        super().__init__()
        self.width = width
        self.stages = nn.ModuleList(Stage(width) for _ in range(stages))

    def forward(
        self, colors: Tensor, lights: Tensor, run: Callable[[Stage, Tensor], Tensor] = Stage.__call__
    ) -> list[tuple[Tensor, Tensor]]:
        """(normals, log of the expected angle in radians) after every stage; ``run`` may be a faster form of one."""
        gray, colors = normalized(colors)
        normal = first_guess(gray, lights)
        if lights.ndim == 2:
            lights = lights.expand(colors.shape[0], -1, -1)
        log_error = torch.full_like(normal[:, 0], c.UNKNOWN_ERROR)
        answers = []
        for stage in self.stages:
            turned, cosine, sine = turn(lights, normal)
            tokens = tokens_of(gray, colors, turned, normal[:, 2], log_error.detach())
            step = run(stage, tokens)
            start = torch.stack(
                [torch.hypot(normal[:, 0], normal[:, 1]), torch.zeros_like(sine), normal[:, 2]], -1
            )
            inside = functional.normalize(start + step[:, :3], dim=-1, eps=1e-6)
            x = cosine * inside[:, 0] - sine * inside[:, 1]
            y = sine * inside[:, 0] + cosine * inside[:, 1]
            answer = torch.stack([x, y, inside[:, 2]], -1)
            log_error = (step[:, 3] + c.TYPICAL_ERROR).clamp(c.LEAST_LOG_ERROR, c.LARGEST_LOG_ERROR)
            answers.append((answer, log_error))
            normal = answer.detach()
        return answers


def pooled(x: Tensor) -> Tensor:
    """Mean and maximum over the photographs: (B, d, W) to (B, 2W)."""
    return torch.cat([x.mean(1), x.amax(1)], -1)


def normalized(colors: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the channels and the channels, divided by the former's root mean square over the photographs."""
    gray = colors.mean(-1)
    scale = torch.rsqrt(gray.square().mean(1, keepdim=True) + c.TINY_INTENSITY)
    return gray * scale, colors * scale[..., None]


def first_guess(gray: Tensor, lights: Tensor) -> Tensor:
    """A normal from ridge regression on compressed intensities: (B, 3), in front of the object."""
    v = gray.clamp_min(0.0)
    v = v / (v + c.GUESS_HALF)
    count = lights.shape[-2]
    eye = torch.eye(3, dtype=gray.dtype, device=gray.device)
    gram = lights.transpose(-1, -2) @ lights + c.RIDGE * count * eye
    if lights.ndim == 2:
        # The same for all: one system, and so small that a GPU's library takes longer to begin.
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = gram
        xx, xy, xz, yy, yz, zz = inverse_symmetric_3x3(torch.stack([xx, xy, xz, yy, yz, zz]))
        normal = v @ (lights @ torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz]).view(3, 3))
    else:
        normal = torch.linalg.solve(gram, (lights * v[..., None]).sum(1))
    normal = torch.cat([normal[:, :2], normal[:, 2:].clamp_min(c.LEAST_Z)], -1)
    return functional.normalize(normal, dim=-1, eps=1e-6)


def turn(lights: Tensor, normal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lights in the frame where the normal has azimuth 0, and that frame's cosine and sine."""
    length = torch.hypot(normal[:, 0], normal[:, 1]).clamp_min(1e-6)
    cosine, sine = normal[:, 0] / length, normal[:, 1] / length
    x = cosine[:, None] * lights[..., 0] + sine[:, None] * lights[..., 1]
    y = cosine[:, None] * lights[..., 1] - sine[:, None] * lights[..., 0]
    return torch.stack([x, y, lights[..., 2]], -1), cosine, sine


def tokens_of(gray: Tensor, colors: Tensor, lights: Tensor, tilt: Tensor, log_error: Tensor) -> Tensor:
    """The tokens (B, d, FEATURES) of one stage; lights in the turned frame, tilt = n_z."""
    nx, nz = torch.sqrt((1.0 - tilt.square()).clamp_min(0.0))[:, None], tilt[:, None]
    nl = nx * lights[..., 0] + nz * lights[..., 2]
    lh = torch.sqrt((0.5 + 0.5 * lights[..., 2]).clamp_min(c.TINY_ROOT))
    nh = (nl + nz) / (2.0 * lh)
    facing = nl.clamp_min(0.0)
    v = gray.clamp_min(0.0)
    # What a matte pixel would show, scaled to the robustly compressed intensities.
    matte = (v * facing).sum(1, keepdim=True) / (facing.square().sum(1, keepdim=True) + c.MATTE_RIDGE)
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
        c.LOG_FACTOR * torch.log((v + c.DARK) / nl.clamp_min(c.GRAZING)).clamp(-c.MOST_LOG, c.MOST_LOG),
        misfit.clamp(-c.MOST_MISFIT, c.MOST_MISFIT),
        0.5 * matte.clamp_max(c.MOST_MATTE).expand_as(nl),
        count,
        (log_error[:, None] - c.TYPICAL_ERROR).expand_as(nl),
        misfit / (misfit.abs() + c.HALF_MISFIT),
    ]
    roots = torch.sqrt(colors.clamp_min(0.0) + c.TINY_ROOT).clamp_max(c.MOST_ROOT)
    return torch.cat([torch.stack(features, -1), roots], -1)


@torch.no_grad()  # type: ignore[untyped-decorator]
def predict(
    values: Tensor,
    lights: NDArray[Any],
    weights: Weights,
    index: Tensor | None = None,
    control: Control = SILENT,
) -> tuple[Tensor, Tensor]:
    """Unit normals (N, 3) and expected errors (N,) in radians of (N, d) or (N, d, 3) intensities; of ``index`` if given."""
    network = network_of(weights, values.device)
    directions = torch.from_numpy(lights).to(values.device)
    run = run_stage if values.is_cuda else Stage.__call__
    normals, errors = [], []
    count = len(values) if index is None else len(index)
    size = max(1, CHUNK // values.shape[1])
    control.stage("network", count)
    for first in range(0, count, size):
        which = slice(first, first + size) if index is None else index[first : first + size]
        part, own = values[which], some_lights(directions, which)
        part = part[..., None].expand(-1, -1, 3) if part.ndim == 2 else part
        normal, log_error = network(part.float(), own, run)[-1]
        normals.append(normal)
        errors.append(log_error.exp())
        control.advance(len(part))
    return torch.cat(normals), torch.cat(errors)


_networks: dict[tuple[str, str], SetNetwork] = {}


def network_of(weights: Weights, device: torch.device) -> SetNetwork:
    """The network with these numbers, kept for the next call."""
    key = (weights.digest, str(device))
    if key not in _networks:
        network = SetNetwork(width_of(weights.arrays), stages_of(weights.arrays))
        state = {f"stages.{name}": torch.from_numpy(values.copy()) for name, values in weights.arrays.items()}
        network.load_state_dict(state)
        _networks[key] = network.to(device).eval().requires_grad_(False)
    return _networks[key]


def run_stage(stage: Stage, tokens: Tensor) -> Tensor:
    """:meth:`Stage.forward` on the tokens' GPU: (B, d, FEATURES) to (B, 4)."""
    sets, count, features = tokens.shape
    x = _layer(stage.second, _layer(stage.first, tokens.reshape(-1, features)))
    context = stage.context(_pooled(x, sets, count))
    x = _layer(stage.fourth, _layer(stage.third, x, context, count))
    return stage.out(stage.head(_pooled(x, sets, count))).float()


def _layer(layer: RmsLinear, x: Tensor, context: Tensor | None = None, per_context: int = 0) -> Tensor:
    """One layer of (rows, inputs), with the context of each ``per_context`` rows."""
    y = functional.linear(x, layer.linear.weight, layer.linear.bias)
    added = y if context is None else context.contiguous()
    _launch("activate", len(y) * 32, y.shape[1], (y, added, layer.gain, layer.shift, len(y), per_context))
    return y


def _pooled(x: Tensor, sets: int, tokens: int) -> Tensor:
    """As :func:`pooled`, of (sets × tokens, W)."""
    width = x.shape[1]
    out = x.new_empty(sets, 2 * width)
    _launch("pool", sets * width, width, (x, out, sets, tokens))
    return out


def _launch(name: str, threads: int, width: int, arguments: tuple[Any, ...]) -> None:
    built = {"WIDTH": width, "TINY_LAYER": f"{c.TINY_LAYER}f"}
    blocks = min(-(-threads // _THREADS), _MOST_BLOCKS)
    launch(__package__, "set_network.cu", name, built, arguments, blocks, _THREADS)
