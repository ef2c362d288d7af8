"""Training of the network for unknown lights.

The fixed validation set is the same for every variant, on every machine of one kind: solids and reliefs under 16 lights,
and a mixture under 64. It has no real data. The score is the mean angle of the solids plus half that of the reliefs, in
degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.lights.unknown.crops import SIDE
from photostereo_lab.training.lights.network import COARSE, Answer, LightNetwork
from photostereo_lab.training.lights.shots import Shot, show
from photostereo_lab.training.loop import Settings, Task
from photostereo_lab.training.scenes import draw_pool
from photostereo_lab.training.tensors import angles, seeded

SEED = 20261116
#: name: scenes, photographs, share of solids
GROUPS = {"solids": (192, 16, 1.0), "reliefs": (96, 16, 0.0), "many": (32, 64, 0.72)}
#: Scenes that are processed together.
CHUNK = 32


def figures(answer: Answer, shot: Shot) -> tuple[Tensor, ...]:
    """Per scene: angles of the first pass, the second and their mean, strength error, expected angle, error of normals."""
    to_degrees = 180 / math.pi
    truth, known = coarse_normals(shot)
    cosine = (answer.normals * truth).sum(1).clamp(-1, 1)
    apart = (torch.acos(cosine) * known).sum((1, 2)) / known.sum((1, 2)).clamp_min(1)
    return (
        angles(answer.first_lights, shot.lights).mean(1) * to_degrees,
        angles(answer.lights, shot.lights).mean(1) * to_degrees,
        angles(functional.normalize(answer.first_lights + answer.lights, dim=-1), shot.lights).mean(
            1
        )
        * to_degrees,
        (answer.strengths - shot.strengths).abs().mean(1),
        answer.log_error.exp().mean(1) * to_degrees,
        apart * to_degrees,
    )


def coarse_normals(shot: Shot) -> tuple[Tensor, Tensor]:
    """Return true normals (S, 3, C, C) of the cells, and which of them are known well enough to count."""
    truth = functional.avg_pool2d(shot.normals * shot.mask[:, None], SIDE // COARSE)
    cover = functional.avg_pool2d(shot.mask[:, None].float(), SIDE // COARSE)
    size = truth.norm(dim=1)
    return truth / size.clamp_min(1e-3)[:, None], (
        (size > 0.4 * cover[:, 0]) & (cover[:, 0] > 0.2)
    ).float()


#: Share of scenes in which some directions are given.
PARTLY_KNOWN = 0.15
#: Share of scenes into which photographs of another scene are mixed.
STRANGERS = 0.01
TEN_DEGREES = 0.1745


@dataclass(frozen=True)
class LightSettings(Settings):
    """Settings of this training."""

    photographs: int = 2048  # per step, at most
    scenes: int = 160
    reuse: int = 12
    likelihood: float = 0.25  # weight of the expected error's likelihood


class LightTask(Task):
    """Learns lights from photographs."""

    settings: LightSettings
    counts: ClassVar = {
        4: 0.05, 5: 0.04, 6: 0.07, 8: 0.1, 10: 0.12, 12: 0.1, 16: 0.18, 20: 0.12, 24: 0.08, 32: 0.09, 48: 0.03,
        96: 0.02,
    }  # fmt: skip
    side, solids = SIDE, 0.5

    def network(self) -> nn.Module:
        return LightNetwork()

    def draw_validation(self) -> dict[str, list[Shot]]:
        """Draw the validation set by group, in chunks."""
        found: dict[str, list[Shot]] = {}
        with seeded(SEED, self.device):
            for name, (scenes, photographs, solids) in GROUPS.items():
                left = max(1, round(scenes * self.settings.validation))
                chunks = (min(CHUNK, left - done) for done in range(0, left, CHUNK))
                found[name] = [
                    show(draw_pool(some, self.device, SIDE, solids), photographs) for some in chunks
                ]
        return found

    def evaluate(self, network: nn.Module, fixed: dict[str, list[Shot]]) -> dict[str, float]:
        """Mean angles of both passes, strength errors (relative), error of normals, expected over true error, the score."""
        report: dict[str, float] = {}
        for name, shots in fixed.items():
            rows = [figures(self._answer(network, shot), shot) for shot in shots]
            first, second, both, strength, expected, normals = map(
                torch.cat, zip(*rows, strict=True)
            )
            report |= {
                f"{name} first": float(first.mean()),
                name: float(second.mean()),
                f"{name} both": float(both.mean()),
                f"{name} median": float(second.median()),
                f"{name} strength": float(strength.mean()),
                f"{name} expected": float(expected.mean() / second.mean()),
                f"{name} normals": float(normals.mean()),
            }
        report["score"] = report["solids"] + 0.5 * report["reliefs"]
        return report

    def _answer(self, network: nn.Module, shot: Shot) -> Answer:
        kind = shot.images.device.type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind != "cpu"):
            answer: Answer = network(shot.images, shot.mask)
        return answer

    def batches(self) -> Iterator[tuple[Shot, Tensor]]:
        """Generate photographs of scenes, and the given directions."""
        settings = self.settings
        for pool, count in self.pools():
            scenes = max(2, min(settings.scenes, settings.photographs // count))
            some = torch.randperm(settings.scenes, device=self.device)[:scenes]
            shot = with_strangers(show(pool[some], count))
            first = int(torch.randint(0, 4, ()))
            for turns, flip in (
                (0, False),
                (first, True),
                (1 + first % 3, False),
            ):  # never the same twice
                turned = shot.turned(turns, flip)
                yield turned, partly_known(turned)

    def loss(self, forward: Callable[..., Answer], batch: tuple[Shot, Tensor]) -> Tensor:
        shot, known = batch
        answer = forward(shot.images, shot.mask, known)
        with torch.autocast(shot.images.device.type, enabled=False):
            return loss_of(answer, shot, 1 - known[..., 3], self.settings.likelihood)


def loss_of(answer: Answer, shot: Shot, free: Tensor, likelihood: float) -> Tensor:
    """Angles of both passes, the Laplace likelihood of the second, strengths, and normals."""
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
    """In a few scenes, replace the first half of the photographs with those of another scene."""
    picked = torch.rand(len(shot.mask), device=shot.mask.device) < STRANGERS
    half = shot.images.shape[1] // 2
    images, lights = shot.images, shot.lights
    images[:, :half] = (
        torch.where(
            picked[:, None, None, None, None], images[:, :half].roll(1, 0), images[:, :half]
        )
        * shot.mask[:, None, None]
    )
    lights[:, :half] = torch.where(
        picked[:, None, None], lights[:, :half].roll(1, 0), lights[:, :half]
    )
    return shot


def partly_known(shot: Shot) -> Tensor:
    """Given directions (S, d, 4) with their flags; mostly none."""
    scenes, photographs = shot.lights.shape[:2]
    device = shot.lights.device
    share = torch.rand(scenes, 1, device=device) * (
        torch.rand(scenes, 1, device=device) < PARTLY_KNOWN
    )
    flag = (torch.rand(scenes, photographs, device=device) < share).float()[..., None]
    return torch.cat([shot.lights * flag, flag], -1)
