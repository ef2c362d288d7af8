"""The set network in torch: what is trained, and what runs on a GPU.

One pixel is a set of d tokens, one per photograph. A stage turns the frame about the viewing axis until the
present normal lies at azimuth 0, so that a turned object gives the turned answer, looks at every token alone,
pools (mean and maximum), looks again with what was pooled, pools again, and adds a correction to the normal.
The order of the photographs and the scale of the intensities cannot matter. Symbols, features and numbers are in
:mod:`photostereo.reflectance.learned.constants`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.reflectance.learned import constants as c
from photostereo.runtime.algebra import inverse_symmetric_3x3


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
    """One look at the set; see the module's text."""

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


def angles(a: Tensor, b: Tensor) -> Tensor:
    """Angle in radians between unit vectors, well behaved at 0."""
    return 2.0 * torch.atan2((a - b).norm(dim=-1).clamp_min(1e-7), (a + b).norm(dim=-1).clamp_min(1e-7))
