"""How the set network learns: half of the pixels stand alone, half belong to rendered objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from photostereo.lab.training.loop import Settings, Task
from photostereo.lab.training.reflectance.pixels import Batch, draw_pixels, pixels_of_scenes
from photostereo.lab.training.reflectance.validation import draw_validation, evaluate
from photostereo.lab.training.scenes import draw_pool
from photostereo.lab.training.sensor import expose
from photostereo.reflectance.learned.torch_network import SetNetwork, angles

#: Numbers of photographs, each with the share of batches drawn with it.
COUNTS = {
    4: 0.05, 5: 0.05, 6: 0.08, 8: 0.1, 10: 0.14, 12: 0.08, 16: 0.08, 20: 0.18, 32: 0.08, 48: 0.06, 96: 0.1
}  # fmt: skip
#: Pixels along a side of the scenes, and the share of solids.
SIDE, SOLIDS = 96, 0.7


@dataclass(frozen=True)
class ReflectanceSettings(Settings):
    """Of this training."""

    rate: float = 2e-3
    falling: float = 1.0
    decay: float = 1e-3
    width: int = 96
    stages: int = 2
    tokens: int = 400_000  # per step
    likelihood: float = 0.1  # weight of the expected error's likelihood
    scenes: int = 96
    pixels: int = 192  # of a scene, at most
    reuse: int = 24  # times a scene is shown


class ReflectanceTask(Task):
    """Normals from single pixels."""

    settings: ReflectanceSettings
    prefix: ClassVar[str] = "stages."

    def network(self) -> nn.Module:
        return SetNetwork(self.settings.width, self.settings.stages)

    @cached_property
    def fixed(self) -> dict[str, Batch]:
        return draw_validation(self.device, max(64, round(4096 * self.settings.validation)))

    def validate(self, network: nn.Module) -> dict[str, float]:
        figures: dict[str, float] = evaluate(network, self.fixed)
        return figures

    def batches(self) -> Iterator[Batch]:
        """Batches of about ``settings.tokens`` tokens."""
        settings, device = self.settings, self.device
        counts, shares = list(COUNTS), torch.tensor(list(COUNTS.values()))
        while True:
            pool = draw_pool(settings.scenes, device, SIDE, SOLIDS)
            for _ in range(settings.reuse):
                count = counts[int(torch.multinomial(shares, 1))]
                half = max(4, settings.tokens // count // 2)
                each = max(1, min(settings.pixels, half // settings.scenes))
                colors, lights, normals = pixels_of_scenes(pool, each, count)
                shown = colors.permute(0, 2, 3, 1)[..., None]
                shown, _ = expose(shown, torch.ones_like(shown[:, 0, 0], dtype=torch.bool))
                rendered = (
                    shown[..., 0].permute(0, 3, 1, 2).flatten(0, 1),
                    lights.repeat_interleave(each, 0),
                    normals.flatten(0, 1),
                )
                alone, lights, normals = draw_pixels(half, count, device)
                alone = expose(
                    alone[..., None, None], torch.ones(half, 1, 1, dtype=torch.bool, device=device)
                )[0]
                single = (alone[..., 0, 0], lights, normals)
                colors, lights, normals = (torch.cat(both) for both in zip(rendered, single, strict=True))
                usable = (colors.amax((1, 2)) > 0) & torch.isfinite(colors).flatten(1).all(1)
                yield colors[usable], lights[usable], normals[usable]

    def loss(self, forward: Callable[..., list[tuple[Tensor, Tensor]]], batch: Batch) -> Tensor:
        """Mean angle of every stage, and the Laplace likelihood of that angle under the predicted spread."""
        colors, lights, truth = batch
        answers = forward(colors, lights)
        total = torch.zeros((), device=truth.device)
        for number, (normal, log_error) in enumerate(answers):
            weight = 1.0 if number == len(answers) - 1 else 0.3
            error = angles(normal, truth)
            spread = error * torch.exp(-log_error) + log_error
            total = total + weight * (error.mean() + self.settings.likelihood * spread.mean())
        return total
