"""The network in torch, for training; :mod:`photostereo.lights.unknown.network` is the same network in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.lights.unknown.crops import SIDE
from photostereo.lights.unknown.network import (
    FIRST_LAYERS,
    FIRST_STRIDE,
    HEADS,
    SECOND_LAYERS,
    SECOND_STRIDE,
    WIDTH,
)
from photostereo.lights.unknown.shading import (
    first_inputs,
    fit_lights,
    frames_of,
    half_frames,
    matte_normals,
    second_inputs,
    weighted_half,
)

#: Pixels along a side of the maps on which normals are predicted.
COARSE = SIDE // 4
#: Channels that are kept of each of the 6 × 6 places of the last map.
KEPT = 24
#: Channels of the network of normals.
NORMAL_WIDTH = 64
#: Inputs of the two looks, and of the second look's tokens besides the map.
FIRST_INPUTS, SECOND_INPUTS, CLUES = 8, 16, 13


@dataclass(frozen=True)
class Look:
    """Channels of an encoder after each convolution, and the first one's stride."""

    stride: int
    inputs: int
    stem: int
    fine: int
    middle: int
    last: int


FIRST = Look(FIRST_STRIDE, FIRST_INPUTS, 32, 48, 80, 96)
SECOND = Look(SECOND_STRIDE, SECOND_INPUTS, 32, 64, 96, 96)


@dataclass
class Answer:
    """The network's output for S scenes of d photographs."""

    first_lights: Tensor  # (S, d, 3)
    first_strengths: Tensor  # (S, d) logarithms, mean 0
    lights: Tensor  # (S, d, 3)
    strengths: Tensor  # (S, d)
    log_error: Tensor  # (S, d) of the expected error in radians
    normals: Tensor  # (S, 3, C, C) unit


class Block(nn.Module):  # type: ignore[misc]
    """x + conv(relu(conv(x)))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        with torch.no_grad():
            self.second.weight.mul_(0.3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(functional.relu(self.first(x)))
        return x + y


class Encoder(nn.Module):  # type: ignore[misc]
    """Converts pictures (S · d, channels, h, w) to tokens and the maps from which they are computed."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.stem = nn.Conv2d(look.inputs, look.stem, 3, look.stride, 1)
        self.fine = nn.Conv2d(look.stem, look.fine, 3, 2, 1)
        self.context = nn.Conv2d(2 * look.fine, look.fine, 1)
        self.fine_block = Block(look.fine)
        self.middle = nn.Conv2d(look.fine, look.middle, 3, 2, 1)
        self.middle_block = Block(look.middle)
        self.last = nn.Conv2d(look.middle, look.last, 3, 2, 1)
        self.kept = nn.Conv2d(look.last, KEPT, 1)
        self.token = nn.Linear((SIDE // 16) ** 2 * KEPT, WIDTH)

    def forward(self, pictures: Tensor, photographs: int) -> tuple[Tensor, Tensor]:
        x = functional.relu(self.fine(functional.relu(self.stem(pictures))))
        shared = self.context(pooled(x, photographs))
        x = x + shared.repeat_interleave(photographs, 0)
        x = self.fine_block(x)
        maps = x
        x = self.middle_block(functional.relu(self.middle(x)))
        x = self.kept(functional.relu(self.last(functional.relu(x))))
        # Channels last, as in the NumPy version.
        return self.token(functional.relu(x).permute(0, 2, 3, 1).flatten(1)), maps


def pooled(x: Tensor, photographs: int) -> Tensor:
    """Pool mean and maximum over the photographs: (S · d, C, h, w) to (S, 2 C, h, w)."""
    sets = x.unflatten(0, (-1, photographs))
    return torch.cat([sets.mean(1), sets.amax(1)], 1).contiguous(memory_format=torch.channels_last)


class Attention(nn.Module):  # type: ignore[misc]
    """A transformer layer over the unordered photographs."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.three = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.between = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        q, k, v = self.three(self.before(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(seen.permute(0, 2, 1, 3).reshape(shape))
        y: Tensor = self.down(functional.relu(self.up(self.between(x))))
        return x + y


class NormalNetwork(nn.Module):  # type: ignore[misc]
    """Estimates normals (S, 3, C, C) from pooled maps, the matte fit's normals and the mask."""

    def __init__(self) -> None:
        super().__init__()
        w = NORMAL_WIDTH
        self.enter = nn.Conv2d(2 * SECOND.fine + 4, w, 3, 1, 1)
        self.halved = nn.Conv2d(w, w, 3, 2, 1)
        self.quartered = nn.Conv2d(w, w, 3, 2, 1)
        self.deep = nn.Conv2d(w, w, 3, 1, 1)
        self.up_half = nn.Conv2d(w, w, 3, 1, 1)
        self.up_full = nn.Conv2d(w, w, 3, 1, 1)
        self.leave = nn.Conv2d(w, 3, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        relu = functional.relu
        full = relu(self.enter(x))
        half = relu(self.halved(full))
        deep = relu(self.deep(relu(self.quartered(half))))
        half = relu(half + self.up_half(deep.repeat_interleave(2, 2).repeat_interleave(2, 3)))
        full = relu(full + self.up_full(half.repeat_interleave(2, 2).repeat_interleave(2, 3)))
        y: Tensor = self.leave(full)
        return y


def upper(raw: Tensor) -> Tensor:
    """Map any three numbers to unit vectors with z > 0."""
    return functional.normalize(
        torch.cat([raw[..., :2], functional.softplus(raw[..., 2:]) + 0.02], -1), dim=-1
    )


class LightNetwork(nn.Module):  # type: ignore[misc]
    """Estimates lights from photographs (S, d, 3, SIDE, SIDE) and masks (S, SIDE, SIDE)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Encoder(FIRST), Encoder(SECOND)
        self.first_layers = nn.ModuleList(Attention() for _ in range(FIRST_LAYERS))
        self.second_layers = nn.ModuleList(Attention() for _ in range(SECOND_LAYERS))
        self.known = nn.Linear(4, WIDTH)
        self.first_head = nn.Linear(WIDTH, 4)
        self.normals = NormalNetwork()
        self.clues = nn.Linear(CLUES, WIDTH)
        self.second_head = nn.Linear(WIDTH, 5)
        for head in (self.first_head, self.second_head, self.normals.leave):
            with torch.no_grad():
                head.weight.mul_(0.1)

    def forward(self, images: Tensor, mask: Tensor, known: Tensor | None = None) -> Answer:
        """``known`` (S, d, 4): given directions followed by 1; zeros if not given."""
        scenes, photographs = images.shape[:2]
        given = (
            torch.zeros(scenes, photographs, 4, device=images.device) if known is None else known
        )
        flag = given[..., 3:]
        frames = frames_of(images.permute(0, 1, 3, 4, 2), mask)
        token, _ = self.first(_pictures(first_inputs(frames)), photographs)
        token = token.unflatten(0, (scenes, photographs)) + self.known(given)
        for layer in self.first_layers:
            token = layer(token)
        with torch.autocast(images.device.type, enabled=False):
            raw = self.first_head(token.float())
            lights = torch.lerp(upper(raw[..., :3]), given[..., :3], flag)
            logs = raw[..., 3] - raw[..., 3].mean(1, keepdim=True)
            with torch.no_grad():
                half = half_frames(frames)
                matte = matte_normals(half.gray, lights, logs.exp())
                both = second_inputs(half, lights, logs.exp(), matte)
                quarter = half_frames(half)
                inside = half.cover[:, None]
                fitted = weighted_half(torch.movedim(matte.normals, -1, 1) * inside, inside)
        second, maps = self.second(_pictures(both), photographs)
        rough = self.normals(
            torch.cat([pooled(maps, photographs), fitted, quarter.cover[:, None]], 1)
        )
        with torch.autocast(images.device.type, enabled=False):
            normals = functional.normalize(fitted + rough.float(), dim=1)
            with torch.no_grad():
                facing = normals.detach().permute(0, 2, 3, 1)
                fit = fit_lights(facing, quarter.gray, quarter.cover, lights, logs.exp())
            clues = torch.cat([lights, logs[..., None], fit, given], -1).detach()
        token = token + second.unflatten(0, (scenes, photographs)) + self.clues(clues)
        for layer in self.second_layers:
            token = layer(token)
        with torch.autocast(images.device.type, enabled=False):
            change = self.second_head(token.float())
            better = lights.detach() + change[..., :3]
            better = torch.cat([better[..., :2], better[..., 2:].clamp_min(0.02)], -1)
            better = torch.lerp(functional.normalize(better, dim=-1), given[..., :3], flag)
            strengths = logs.detach() + change[..., 3]
            return Answer(
                lights,
                logs,
                better,
                strengths - strengths.mean(1, keepdim=True),
                change[..., 4] - 1.5,
                normals,
            )


def _pictures(channels: Tensor) -> Tensor:
    """Reshape (S, d, h, w, C) to (S · d, C, h, w), channels last in memory; in half precision on a GPU."""
    kind = torch.bfloat16 if channels.is_cuda else torch.float32
    return channels.flatten(0, 1).permute(0, 3, 1, 2).to(kind)
