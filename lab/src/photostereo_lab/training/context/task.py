"""Training of the context network: examples are kept for a while and shown in all symmetries of the square.

The fixed validation set has whole objects that are never trained on, with the same per-pixel estimates: solids and
reliefs, half of each finely carved, with 6, 10, 20 and 96 photographs, clean, noisy and with grossly wrong lights. It
has no real data. The score is the mean over the groups of the ratio of the errors with and without the correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from photostereo.io.network_weights import Weights
from photostereo.reflectance.learned.weights import set_network
from photostereo_lab.training.context.examples import SIZE, Examples, draw_examples
from photostereo_lab.training.context.network import ContextNetwork, corrected
from photostereo_lab.training.loop import Settings, Task
from photostereo_lab.training.scenes import draw_pool
from photostereo_lab.training.tensors import angles, seeded

SEED = 20261117
#: name: scenes, photographs, shares of solids, of noisy captures, of captures with grossly wrong lights
GROUPS = {
    "6": (24, 6, 1.0, 0.0, 0.0),
    "10": (24, 10, 1.0, 0.0, 0.0),
    "20 noisy": (24, 20, 1.0, 1.0, 0.0),
    "96": (24, 96, 1.0, 0.0, 0.0),
    "reliefs": (24, 12, 0.0, 0.3, 0.0),
    "spoiled": (24, 14, 0.7, 0.2, 1.0),
}


def _figures(network: nn.Module, part: Examples) -> Tensor:
    """Per scene, in degrees: error before and after, expected error, change of pixels that the matte fit determines."""
    kind = part.maps.device.type
    with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind != "cpu"):
        answer = network(part.maps.float().contiguous(memory_format=torch.channels_last)).float()
    truth = part.truth.float()
    inside = (truth.square().sum(1) > 0.5).float()
    found, log_error = corrected(answer, part)
    plain, _ = corrected(torch.zeros_like(answer), part)

    def apart(one: Tensor, two: Tensor) -> Tensor:
        return angles(one.permute(0, 2, 3, 1), two.permute(0, 2, 3, 1))

    def mean(values: Tensor, weight: Tensor) -> Tensor:
        return (values * weight).sum((1, 2)) / weight.sum((1, 2)).clamp_min(1) * 180 / math.pi

    settled = inside * (part.matte[:, 3] < -8)
    rows = (
        mean(apart(plain, truth), inside),
        mean(apart(found, truth), inside),
        mean(log_error.exp(), inside),
    )
    return torch.stack([*rows, mean(apart(found, plain), settled)], 1)


@dataclass(frozen=True)
class ContextSettings(Settings):
    """Settings of this training."""

    rate: float = 1e-3
    falling: float = 0.7
    compiled: bool = True
    together: int = 24  # scenes under the same lights
    photographs: int = 384  # of all scenes together
    kept: int = 4096  # examples in memory
    batch: int = 64
    steps: int = 4  # with every new group of examples
    likelihood: float = 0.2  # weight of the expected error's likelihood
    weights: str = ""  # of the set network; default: the package's


class ContextTask(Task):
    """Learns corrections of normals from their surroundings."""

    settings: ContextSettings
    counts: ClassVar = {
        4: 0.05, 5: 0.05, 6: 0.08, 8: 0.08, 10: 0.12, 12: 0.08, 16: 0.08, 20: 0.12, 32: 0.1, 48: 0.1, 96: 0.14
    }  # fmt: skip
    side, solids = SIZE, 0.65

    def network(self) -> nn.Module:
        return ContextNetwork()

    @cached_property
    def witnesses(self) -> Weights:
        return set_network(self.settings.weights or None)

    def draw_validation(self) -> dict[str, list[Examples]]:
        """Draw the validation set by group, in parts of a few scenes, each part with its own lights."""
        few, found = 4, {}
        with seeded(SEED, self.device):
            for name, (scenes, photographs, solids, strong, spoiled) in GROUPS.items():
                scenes = max(few, round(scenes * self.settings.validation))
                pool = draw_pool(scenes, self.device, SIZE, solids)
                shares = {"strong": strong, "damage": 0.0, "spoiled": spoiled}
                found[name] = [
                    draw_examples(pool[first : first + few], photographs, self.witnesses, **shares)
                    for first in range(0, len(pool.heights), few)
                ]
        return found

    def evaluate(self, network: nn.Module, fixed: dict[str, list[Examples]]) -> dict[str, float]:
        """By group: mean error without and with the correction, expected over true error, worst change of a scene in
        degrees. ``rank`` is the rank correlation of expected and true error over all scenes.
        """
        report, score, scenes = {}, 0.0, []
        for name, parts in fixed.items():
            rows = torch.cat([_figures(network, part) for part in parts])
            scenes.append(rows[:, 1:3])
            before, after, expected, gain = rows.mean(0).tolist()
            report[f"{name} before"], report[name] = before, after
            report[f"{name} expected"] = expected / after
            report[f"{name} certain"] = gain
            report[f"{name} worst"] = float((rows[:, 1] - rows[:, 0]).max())
            score += after / before / len(fixed)
        ranks = torch.cat(scenes).argsort(0).argsort(0).float()
        report["rank"] = float(torch.corrcoef(ranks.T)[0, 1])
        report["score"] = score
        return report

    def batches(self) -> Iterator[Examples]:
        settings = self.settings
        kept: list[Examples] = []
        for new in self._groups():
            if not len(new.maps):
                continue
            kept.append(new)
            if sum(len(group.maps) for group in kept) > settings.kept:
                kept.pop(0)
            for _ in range(settings.steps):
                some = [
                    kept[int(torch.randint(0, len(kept), ()))] for _ in range(settings.batch // 4)
                ]
                parts = [
                    group[torch.randint(0, len(group.maps), (4,), device=self.device)]
                    for group in some
                ]
                yield joined(parts).turned(int(torch.randint(0, 4, ())), bool(torch.rand(()) < 0.5))

    def _groups(self) -> Iterator[Examples]:
        settings = self.settings
        for pool, count in self.pools():
            scenes = max(2, min(settings.together, settings.photographs // count))
            some = torch.randperm(settings.scenes, device=self.device)[:scenes]
            yield draw_examples(pool[some], count, self.witnesses)

    def loss(self, forward: Callable[..., Tensor], batch: Examples) -> Tensor:
        """The mean angle of the corrected normals, and the Laplace likelihood of that angle under its expected error."""
        answer = forward(batch.maps.float().contiguous(memory_format=torch.channels_last))
        with torch.autocast(batch.maps.device.type, enabled=False):
            normals, log_error = corrected(answer.float(), batch)
            inside = (batch.truth.float().square().sum(1) > 0.5).float()
            error = angles(normals.permute(0, 2, 3, 1), batch.truth.float().permute(0, 2, 3, 1))
            spread = error * torch.exp(-log_error) + log_error
            total = (error + self.settings.likelihood * spread) * inside
            # Every object has the same weight, whatever its size.
            return (total.sum((1, 2)) / inside.sum((1, 2)).clamp_min(1)).mean()


def joined(parts: list[Examples]) -> Examples:
    names = ("maps", "network", "matte", "truth")
    return Examples(*(torch.cat([getattr(part, name) for part in parts]) for name in names))
