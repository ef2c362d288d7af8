"""How the network of unknown lights learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from photostereo.lab.training.lights.network import Answer, LightNetwork
from photostereo.lab.training.lights.shots import Shot, show
from photostereo.lab.training.lights.validation import angles, coarse_normals, draw_validation, evaluate
from photostereo.lab.training.loop import Settings, Task
from photostereo.lab.training.scenes import draw_pool
from photostereo.lights.unknown.architecture import SIDE

#: Numbers of photographs, each with the share of batches drawn with it.
COUNTS = {
    4: 0.05, 5: 0.04, 6: 0.07, 8: 0.1, 10: 0.12, 12: 0.1, 16: 0.18, 20: 0.12, 24: 0.08, 32: 0.09, 48: 0.03, 96: 0.02
}  # fmt: skip
#: Share of solids; the others are reliefs.
SOLIDS = 0.5
#: Share of scenes in which some directions are given.
PARTLY_KNOWN = 0.15
#: Share of scenes into which photographs of another scene are mixed.
STRANGERS = 0.01
TEN_DEGREES = 0.1745


@dataclass(frozen=True)
class LightSettings(Settings):
    """Of this training."""

    photographs: int = 2048  # per step, at most
    scenes: int = 160  # in a pool
    reuse: int = 12  # times a pool is shown
    likelihood: float = 0.25  # weight of the expected error's likelihood


class LightTask(Task):
    """Lights from photographs."""

    settings: LightSettings

    def network(self) -> nn.Module:
        return LightNetwork()

    @cached_property
    def fixed(self) -> dict[str, list[Shot]]:
        return draw_validation(self.device, self.settings.validation)

    def validate(self, network: nn.Module) -> dict[str, float]:
        figures: dict[str, float] = evaluate(network, self.fixed)
        return figures

    def batches(self) -> Iterator[tuple[Shot, Tensor]]:
        """Photographs of scenes, and the directions that are given."""
        settings, device = self.settings, self.device
        counts, shares = list(COUNTS), torch.tensor(list(COUNTS.values()))
        while True:
            pool = draw_pool(settings.scenes, device, SIDE, SOLIDS)
            for _ in range(settings.reuse):
                count = counts[int(torch.multinomial(shares, 1))]
                scenes = max(2, min(settings.scenes, settings.photographs // count))
                some = torch.randperm(settings.scenes, device=device)[:scenes]
                shot = with_strangers(show(pool[some], count))
                first = int(torch.randint(0, 4, ()))
                for turns, flip in (
                    (0, False),
                    (first, True),
                    (1 + first % 3, False),
                ):  # never the same again
                    turned = shot.turned(turns, flip)
                    yield turned, partly_known(turned)

    def loss(self, forward: Callable[..., Answer], batch: tuple[Shot, Tensor]) -> Tensor:
        shot, known = batch
        answer = forward(shot.images, shot.mask, known)
        with torch.autocast(shot.images.device.type, enabled=False):
            return loss_of(answer, shot, 1 - known[..., 3], self.settings.likelihood)


def loss_of(answer: Answer, shot: Shot, free: Tensor, likelihood: float) -> Tensor:
    """Angles of both looks, the Laplace likelihood of the second, strengths, and normals."""
    count = free.sum().clamp_min(1)
    first = angles(answer.first_lights, shot.lights)
    second = angles(answer.lights, shot.lights)
    spread = second * torch.exp(-answer.log_error) + answer.log_error
    truth, known = coarse_normals(shot)
    straying = (1 - (answer.normals * truth).sum(1)) * known
    straying = straying.sum((1, 2)) / known.sum((1, 2)).clamp_min(1)
    strengths = (answer.strengths - shot.strengths).abs() + 0.4 * (
        answer.first_strengths - shot.strengths
    ).abs()
    return (
        ((0.7 * first + second) * free).sum() / count / TEN_DEGREES
        + likelihood * (spread * free).sum() / count
        + 0.5 * strengths.mean()
        + 1.5 * straying.mean()
    )


def with_strangers(shot: Shot) -> Shot:
    """In a few scenes the first half of the photographs is another scene's."""
    picked = torch.rand(len(shot.mask), device=shot.mask.device) < STRANGERS
    half = shot.images.shape[1] // 2
    images, lights = shot.images, shot.lights
    images[:, :half] = (
        torch.where(picked[:, None, None, None, None], images[:, :half].roll(1, 0), images[:, :half])
        * shot.mask[:, None, None]
    )
    lights[:, :half] = torch.where(picked[:, None, None], lights[:, :half].roll(1, 0), lights[:, :half])
    return shot


def partly_known(shot: Shot) -> Tensor:
    """Given directions (S, d, 4) with their flags, mostly none."""
    scenes, photographs = shot.lights.shape[:2]
    device = shot.lights.device
    share = torch.rand(scenes, 1, device=device) * (torch.rand(scenes, 1, device=device) < PARTLY_KNOWN)
    flag = (torch.rand(scenes, photographs, device=device) < share).float()[..., None]
    return torch.cat([shot.lights * flag, flag], -1)
