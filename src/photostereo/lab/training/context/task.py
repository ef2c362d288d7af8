"""How the context network learns: examples are kept for a while and seen in all symmetries of the square."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from photostereo.io.network_weights import Weights
from photostereo.lab.training.context.corrected import corrected
from photostereo.lab.training.context.examples import SIZE, Examples, draw_examples
from photostereo.lab.training.context.network import ContextNetwork
from photostereo.lab.training.context.validation import draw_validation, evaluate
from photostereo.lab.training.loop import Settings, Task
from photostereo.lab.training.scenes import draw_pool
from photostereo.reflectance.learned.torch_network import angles
from photostereo.reflectance.learned.weights import set_network

#: Numbers of photographs, each with the share of batches drawn with it.
COUNTS = {
    4: 0.05, 5: 0.05, 6: 0.08, 8: 0.08, 10: 0.12, 12: 0.08, 16: 0.08, 20: 0.12, 32: 0.1, 48: 0.1, 96: 0.14
}  # fmt: skip
#: Share of solids; the others are reliefs.
SOLIDS = 0.75


@dataclass(frozen=True)
class ContextSettings(Settings):
    """Of this training."""

    rate: float = 1e-3
    falling: float = 0.7
    compiled: bool = True
    scenes: int = 96  # in a pool
    reuse: int = 16  # times a pool is shown
    together: int = 24  # scenes under the same lights
    photographs: int = 384  # of all scenes together
    kept: int = 4096  # examples in memory
    batch: int = 64
    steps: int = 4  # with every new group of examples
    likelihood: float = 0.2  # weight of the expected error's likelihood
    weights: str = ""  # of the set network; the package's own by default


class ContextTask(Task):
    """Corrections of normals from what is seen around them."""

    settings: ContextSettings

    def network(self) -> nn.Module:
        return ContextNetwork()

    @cached_property
    def witnesses(self) -> Weights:
        return set_network(self.settings.weights or None)

    @cached_property
    def fixed(self) -> dict[str, list[Examples]]:
        return draw_validation(self.device, self.witnesses, self.settings.validation)

    def validate(self, network: nn.Module) -> dict[str, float]:
        figures: dict[str, float] = evaluate(network, self.fixed)
        return figures

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
                some = [kept[int(torch.randint(0, len(kept), ()))] for _ in range(settings.batch // 4)]
                parts = [group[torch.randint(0, len(group.maps), (4,), device=self.device)] for group in some]
                yield joined(parts).turned(int(torch.randint(0, 4, ())), bool(torch.rand(()) < 0.5))

    def _groups(self) -> Iterator[Examples]:
        settings = self.settings
        counts, shares = list(COUNTS), torch.tensor(list(COUNTS.values()))
        while True:
            pool = draw_pool(settings.scenes, self.device, SIZE, SOLIDS)
            for _ in range(settings.reuse):
                count = counts[int(torch.multinomial(shares, 1))]
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
            # Every object counts alike, whatever its size.
            return (total.sum((1, 2)) / inside.sum((1, 2)).clamp_min(1)).mean()


def joined(parts: list[Examples]) -> Examples:
    """Several groups as one."""
    names = ("maps", "network", "matte", "truth")
    return Examples(*(torch.cat([getattr(part, name) for part in parts]) for name in names))
