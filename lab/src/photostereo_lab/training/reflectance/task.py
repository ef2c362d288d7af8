"""Training of the set network: half of the pixels are isolated, half belong to rendered objects.

The fixed validation set is drawn once, half from each source, in conditions that mirror the use of the model: 96
photographs nearly clean, 20 at 15 dB, 20 at 5 dB, 10 and 6 nearly clean. It has no real data. The score is the mean
over the conditions of the mean angle, each divided by a reference, so that no condition outweighs the others. Steep
(n_z < 0.3) pixels are also reported separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from photostereo_lab.training.loop import Settings, Task
from photostereo_lab.training.reflectance.network import SetNetwork
from photostereo_lab.training.reflectance.pixels import Batch, draw_pixels, pixels_of_scenes
from photostereo_lab.training.scenes import draw_pool
from photostereo_lab.training.sensor import LUMA, expose
from photostereo_lab.training.tensors import angles, seeded

SEED = 20240611
#: name: photographs, decibels, reference angle in degrees
CONDITIONS = {
    "96": (96, 45.0, 6.0),
    "20 15dB": (20, 15.0, 10.0),
    "20 5dB": (20, 5.0, 18.0),
    "10": (10, 45.0, 9.0),
    "6": (6, 45.0, 13.0),
}


def _poisson(clean: Tensor, decibels: float) -> Tensor:
    """Add shot noise to pixels (B, d, 3), gray in every channel of every second one."""
    gray = (clean * torch.tensor(LUMA, device=clean.device)).sum(-1, keepdim=True)
    mean = gray.mean((1, 2), keepdim=True).clamp_min(1e-8)
    photons = (
        10 ** (decibels / 10) * mean / gray.square().mean((1, 2), keepdim=True).clamp_min(1e-16)
    )
    noisy = (torch.poisson(gray * photons) / photons).expand_as(clean).clone()
    noisy[::2] = (torch.poisson(clean * photons) / photons)[::2]
    return noisy


@dataclass(frozen=True)
class ReflectanceSettings(Settings):
    """Settings of this training."""

    rate: float = 2e-3
    falling: float = 1.0
    decay: float = 1e-3
    width: int = 96
    stages: int = 2
    tokens: int = 400_000  # per step
    likelihood: float = 0.1  # weight of the expected error's likelihood
    pixels: int = 192  # of a scene, at most
    reuse: int = 24


class ReflectanceTask(Task):
    """Learns normals from single pixels."""

    settings: ReflectanceSettings
    prefix = "stages."
    counts: ClassVar = {
        4: 0.05, 5: 0.05, 6: 0.08, 8: 0.1, 10: 0.14, 12: 0.08, 16: 0.08, 20: 0.18, 32: 0.08, 48: 0.06, 96: 0.1
    }  # fmt: skip
    side, solids = 96, 0.7

    def network(self) -> nn.Module:
        return SetNetwork(self.settings.width, self.settings.stages)

    def draw_validation(self) -> dict[str, Batch]:
        """Draw the validation set by condition; the first half of each is single pixels."""
        sets, found = max(64, round(4096 * self.settings.validation)), {}
        with seeded(SEED, self.device):
            pool = draw_pool(max(2, sets // 64), self.device, 128, 0.7)
            for name, (photographs, decibels, _) in CONDITIONS.items():
                single = draw_pixels(sets // 2, photographs, self.device)
                colors, lights, normals = pixels_of_scenes(pool, 32, photographs)
                rendered = (
                    colors.flatten(0, 1),
                    lights.repeat_interleave(32, 0),
                    normals.flatten(0, 1),
                )
                colors, lights, normals = map(torch.cat, zip(single, rendered, strict=True))
                found[name] = (_poisson(colors, decibels), lights, normals)
        return found

    def evaluate(self, network: nn.Module, fixed: dict[str, Batch]) -> dict[str, float]:
        """Mean angles in degrees by condition, of single, rendered and steep pixels and of the predicted error, and the
        score.
        """
        report: dict[str, float] = {}
        score, chunk = 0.0, 2048
        for name, (colors, lights, truth) in fixed.items():
            pairs = zip(colors.split(chunk), lights.split(chunk), strict=True)
            found, log_error = map(
                torch.cat, zip(*(network(*pair)[-1] for pair in pairs), strict=True)
            )
            error = torch.rad2deg(angles(found, truth))
            half = len(error) // 2
            report |= {
                name: float(error.mean()),
                f"{name} single": float(error[:half].mean()),
                f"{name} rendered": float(error[half:].mean()),
                f"{name} steep": float(error[truth[:, 2] < 0.3].mean()),
                f"{name} predicted": float(torch.rad2deg(log_error.exp()).mean()),
            }
            score += report[name] / CONDITIONS[name][2] / len(CONDITIONS)
        report["score"] = score
        return report

    def batches(self) -> Iterator[Batch]:
        """Yield batches of about ``settings.tokens`` tokens."""
        settings, device = self.settings, self.device
        for pool, count in self.pools():
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
            everywhere = torch.ones(half, 1, 1, dtype=torch.bool, device=device)
            single = (expose(alone[..., None, None], everywhere)[0][..., 0, 0], lights, normals)
            colors, lights, normals = map(torch.cat, zip(rendered, single, strict=True))
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
