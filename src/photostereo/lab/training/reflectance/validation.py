"""The fixed validation set: the same pixels for every variant, on every machine of one kind.

Drawn once with a fixed seed from both sources (single pixels and pixels of rendered objects, half each), in conditions
that mirror what is asked of the model: 96 photographs nearly clean, 20 at 15 dB, 20 at 5 dB, 10 and 6 nearly clean. The
score is the mean over the conditions of the mean angle, each divided by a reference, so that no condition outweighs the
others.

Nothing real is in it. Steep (n_z < 0.3) pixels are also reported alone.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from photostereo.lab.training.reflectance.pixels import Batch, draw_pixels, pixels_of_scenes
from photostereo.lab.training.scenes import draw_pool
from photostereo.lab.training.sensor import LUMA
from photostereo.reflectance.learned.torch_network import angles

SEED = 20240611
#: name: photographs, decibels, reference angle in degrees
CONDITIONS = {
    "96": (96, 45.0, 6.0),
    "20 15dB": (20, 15.0, 10.0),
    "20 5dB": (20, 5.0, 18.0),
    "10": (10, 45.0, 9.0),
    "6": (6, 45.0, 13.0),
}


def draw_validation(device: torch.device | str, sets: int = 4096) -> dict[str, Batch]:
    """The set, by condition; the first half of each are single pixels."""
    with torch.random.fork_rng(devices=[device] if str(device).startswith("cuda") else []):
        torch.manual_seed(SEED)
        pool = draw_pool(max(2, sets // 64), device, 128, 0.7)
        found = {}
        for name, (photographs, decibels, _) in CONDITIONS.items():
            parts = [draw_pixels(sets // 2, photographs, device)]
            colors, lights, normals = pixels_of_scenes(pool, 32, photographs)
            parts.append((colors.flatten(0, 1), lights.repeat_interleave(32, 0), normals.flatten(0, 1)))
            merged = [torch.cat(columns) for columns in zip(*parts, strict=True)]
            found[name] = (_poisson(merged[0], decibels), merged[1], merged[2])
        return found


def _poisson(clean: Tensor, decibels: float) -> Tensor:
    """Shot noise on pixels (B, d, 3), gray in every channel of every second one."""
    gray = (clean * torch.tensor(LUMA, device=clean.device)).sum(-1, keepdim=True)
    mean = gray.mean((1, 2), keepdim=True).clamp_min(1e-8)
    photons = 10 ** (decibels / 10) * mean / gray.square().mean((1, 2), keepdim=True).clamp_min(1e-16)
    noisy = (torch.poisson(gray * photons) / photons).expand_as(clean).clone()
    noisy[::2] = (torch.poisson(clean * photons) / photons)[::2]
    return noisy


@torch.no_grad()  # type: ignore[untyped-decorator]
def evaluate(network: nn.Module, batches: dict[str, Batch], chunk: int = 2048) -> dict[str, float]:
    """Mean angles in degrees by condition, of single, rendered and steep pixels, of the predicted error, and the score."""
    report, score = {}, 0.0
    for name, (colors, lights, truth) in batches.items():
        parts = [network(c, li)[-1] for c, li in zip(colors.split(chunk), lights.split(chunk), strict=True)]
        error = torch.rad2deg(angles(torch.cat([p[0] for p in parts]), truth))
        half = len(error) // 2
        report[name] = float(error.mean())
        report[f"{name} single"], report[f"{name} rendered"] = (
            float(error[:half].mean()),
            float(error[half:].mean()),
        )
        report[f"{name} steep"] = float(error[truth[:, 2] < 0.3].mean())
        report[f"{name} predicted"] = float(torch.cat([p[1] for p in parts]).exp().mean()) * 180 / math.pi
        score += report[name] / CONDITIONS[name][2] / len(CONDITIONS)
    report["score"] = score
    return report
