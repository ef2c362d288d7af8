"""The fixed validation set: the same scenes for every variant, on every machine of one kind. Nothing real is in it.

Three groups of scenes: solids and reliefs under 16 lights, and a mixture under 64. The score is the mean angle of the
solids plus half that of the reliefs, in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.lab.training.lights.network import Answer
from photostereo.lab.training.lights.shots import Shot, show
from photostereo.lab.training.scenes import draw_pool
from photostereo.lights.unknown.architecture import COARSE, SIDE

SEED = 20261116
#: name: scenes, photographs, share of solids
GROUPS = {"solids": (192, 16, 1.0), "reliefs": (96, 16, 0.0), "many": (32, 64, 0.72)}
#: Scenes that are looked at together.
CHUNK = 32


def angles(found: Tensor, truth: Tensor) -> Tensor:
    """Angles in radians between unit vectors, exact for small and large ones."""
    cross = torch.linalg.cross(found, truth).square().sum(-1)
    return torch.atan2(torch.sqrt(cross + 1e-10), (found * truth).sum(-1))


def draw_validation(device: torch.device | str, share: float = 1.0) -> dict[str, list[Shot]]:
    """The set by group, in chunks; ``share`` makes it smaller."""
    with torch.random.fork_rng(devices=[device] if str(device).startswith("cuda") else []):
        torch.manual_seed(SEED)
        found: dict[str, list[Shot]] = {}
        for name, (scenes, photographs, solids) in GROUPS.items():
            left = max(1, round(scenes * share))
            found[name] = []
            while left > 0:
                found[name].append(show(draw_pool(min(CHUNK, left), device, SIDE, solids), photographs))
                left -= CHUNK
        return found


def evaluate(network: nn.Module, groups: dict[str, list[Shot]]) -> dict[str, float]:
    """Mean angles of both looks, strength errors (relative), error of normals, expected over true error, the score."""
    report = {}
    for name, shots in groups.items():
        rows = [figures(answer, shot) for answer, shot in answers(network, shots)]
        first, second, both, strength, expected, normals = (
            torch.cat(column) for column in zip(*rows, strict=True)
        )
        report[f"{name} first"] = float(first.mean())
        report[name] = float(second.mean())
        report[f"{name} both"] = float(both.mean())
        report[f"{name} median"] = float(second.median())
        report[f"{name} strength"] = float(strength.mean())
        report[f"{name} expected"] = float(expected.mean() / second.mean())
        report[f"{name} normals"] = float(normals.mean())
    report["score"] = report["solids"] + 0.5 * report["reliefs"]
    return report


@torch.no_grad()  # type: ignore[untyped-decorator]
def answers(network: nn.Module, shots: list[Shot]) -> Iterator[tuple[Answer, Shot]]:
    for shot in shots:
        kind = shot.images.device.type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind != "cpu"):
            yield network(shot.images, shot.mask), shot


def figures(answer: Answer, shot: Shot) -> tuple[Tensor, ...]:
    """Per scene: angles of the first look, the second and their mean, strength error, expected angle, error of normals."""
    to_degrees = 180 / math.pi
    truth, known = coarse_normals(shot)
    cosine = (answer.normals * truth).sum(1).clamp(-1, 1)
    apart = (torch.acos(cosine) * known).sum((1, 2)) / known.sum((1, 2)).clamp_min(1)
    return (
        angles(answer.first_lights, shot.lights).mean(1) * to_degrees,
        angles(answer.lights, shot.lights).mean(1) * to_degrees,
        angles(functional.normalize(answer.first_lights + answer.lights, dim=-1), shot.lights).mean(1)
        * to_degrees,
        (answer.strengths - shot.strengths).abs().mean(1),
        answer.log_error.exp().mean(1) * to_degrees,
        apart * to_degrees,
    )


def coarse_normals(shot: Shot) -> tuple[Tensor, Tensor]:
    """True normals (S, 3, C, C) of the cells, and which of them are known well enough to count."""
    truth = functional.avg_pool2d(shot.normals * shot.mask[:, None], SIDE // COARSE)
    cover = functional.avg_pool2d(shot.mask[:, None].float(), SIDE // COARSE)
    size = truth.norm(dim=1)
    return truth / size.clamp_min(1e-3)[:, None], ((size > 0.4 * cover[:, 0]) & (cover[:, 0] > 0.2)).float()
