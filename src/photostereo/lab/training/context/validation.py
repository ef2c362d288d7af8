"""The fixed validation set: whole objects that no training sees, as the same witnesses see them. Nothing real is in it.

Solids and reliefs, half of each finely carved, with 6, 10, 20 and 96 photographs, clean, noisy and with grossly wrong
lights. The score is the mean over the groups of the error with the correction over that without.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from photostereo.io.network_weights import Weights
from photostereo.lab.training.context.corrected import corrected
from photostereo.lab.training.context.examples import SIZE, Examples, draw_examples
from photostereo.lab.training.scenes import draw_pool
from photostereo.reflectance.learned.torch_network import angles

SEED = 20261117
#: name: scenes, photographs, shares of solids, of noisy captures, of spoiled ones
GROUPS = {
    "6": (24, 6, 1.0, 0.0, 0.0),
    "10": (24, 10, 1.0, 0.0, 0.0),
    "20 noisy": (24, 20, 1.0, 1.0, 0.0),
    "96": (24, 96, 1.0, 0.0, 0.0),
    "reliefs": (24, 12, 0.0, 0.3, 0.0),
    "spoiled": (24, 14, 0.7, 0.2, 1.0),
}


def draw_validation(
    device: torch.device | str, weights: Weights, share: float = 1.0
) -> dict[str, list[Examples]]:
    """The set by group, in parts of a few scenes under lights of their own; ``share`` makes it smaller."""
    with torch.random.fork_rng(devices=[device] if str(device).startswith("cuda") else []):
        torch.manual_seed(SEED)
        found = {}
        for name, (scenes, photographs, solids, strong, spoiled) in GROUPS.items():
            few = 4
            pool = draw_pool(max(few, round(scenes * share)), device, SIZE, solids)
            found[name] = [
                draw_examples(
                    pool[first : first + few],
                    photographs,
                    weights,
                    strong=strong,
                    damage=0.0,
                    spoiled=spoiled,
                )
                for first in range(0, len(pool.heights), few)
            ]
        return found


@torch.no_grad()  # type: ignore[untyped-decorator]
def evaluate(network: nn.Module, groups: dict[str, list[Examples]]) -> dict[str, float]:
    """By group: mean error without and with the correction, expected over true error, worst change of a scene in degrees.

    ``rank`` is the rank correlation of expected and true error over all scenes.
    """
    report, score, scenes = {}, 0.0, []
    for name, parts in groups.items():
        rows = torch.cat([_figures(network, part) for part in parts])
        scenes.append(rows[:, 1:3])
        before, after, expected, gain = rows.mean(0).tolist()
        report[f"{name} before"], report[name] = before, after
        report[f"{name} expected"] = expected / after
        report[f"{name} certain"] = gain
        report[f"{name} worst"] = float((rows[:, 1] - rows[:, 0]).max())
        score += after / before / len(groups)
    ranks = torch.cat(scenes).argsort(0).argsort(0).float()
    report["rank"] = float(torch.corrcoef(ranks.T)[0, 1])
    report["score"] = score
    return report


def _figures(network: nn.Module, part: Examples) -> Tensor:
    """Per scene, in degrees: error before and after, expected error, how far pixels that the matte fit settles move."""
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
