"""The training: AdamW with a cosine over the given minutes, an average of the weights, checkpoints, a learning curve."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from photostereo.lab.training.pixels import Batch, draw_pixels
from photostereo.lab.training.rendered import Pool, draw_pool, flatten, show_pool
from photostereo.lab.training.sensor import expose
from photostereo.lab.training.validation import draw_validation, evaluate
from photostereo.reflectance.learned.torch_network import SetNetwork, angles
from photostereo.runtime.arrays import matmul_precision

#: Numbers of photographs, each with the share of batches drawn with it.
COUNTS = {8: 0.08, 10: 0.16, 12: 0.08, 16: 0.08, 20: 0.24, 32: 0.12, 48: 0.08, 96: 0.16}


@dataclass(frozen=True)
class Settings:
    """What defines a training; kept in the checkpoint and beside the weights."""

    minutes: float = 8.0
    seed: int = 0
    width: int = 96
    stages: int = 2
    rendered: float = 0.5  # share of pixels from rendered objects
    strong: float = 0.38  # share of captures with strong noise
    tokens: int = 400_000  # per step
    rate: float = 2e-3
    likelihood: float = 0.1  # weight of the spread's likelihood
    scenes: int = 96
    pixels: int = 384  # per scene
    reuse: int = 6  # times a scene is dressed anew
    compiled: bool = False
    average: float = 0.999
    validation: int = 4096  # pixels of the validation set


def loss_of(answers: list[tuple[Tensor, Tensor]], truth: Tensor, likelihood: float) -> tuple[Tensor, Tensor]:
    """Mean angle of every stage, and the Laplace likelihood of that angle under the predicted spread."""
    total = torch.zeros((), device=truth.device)
    error = total
    for number, (normal, log_error) in enumerate(answers):
        weight = 1.0 if number == len(answers) - 1 else 0.3
        error = angles(normal, truth)
        total = total + weight * (
            error.mean() + likelihood * (error * torch.exp(-log_error) + log_error).mean()
        )
    return total, error.mean()


def batches(settings: Settings, device: torch.device | str) -> Iterator[Batch]:
    """Endless batches of about ``settings.tokens`` tokens."""
    counts, shares = list(COUNTS), torch.tensor(list(COUNTS.values()))
    while True:
        pool: Pool | None = None
        if settings.rendered > 0:
            pool = draw_pool(settings.scenes, settings.pixels, 96, device)
        for _ in range(settings.reuse):
            count = counts[int(torch.multinomial(shares, 1))]
            sets = max(
                8,
                min(
                    4 * settings.tokens // count,
                    int(settings.scenes * settings.pixels / max(settings.rendered, 0.1)),
                ),
            )
            parts: list[Batch] = []
            if pool is not None:
                each = max(1, min(settings.pixels, int(sets * settings.rendered) // settings.scenes))
                colors, lights, normals = show_pool(pool, each, count)
                parts.append(flatten(expose(colors, strong=settings.strong), lights, normals))
            single = sets - (len(parts[0][0]) if parts else 0)
            if settings.rendered < 1 and single > 0:
                colors, lights, normals = draw_pixels(single, count, device)
                parts.append((expose(colors[:, None], strong=settings.strong)[:, 0], lights, normals))
            merged = tuple(torch.cat(columns) for columns in zip(*parts, strict=True))
            usable = (merged[0].amax((1, 2)) > 0) & torch.isfinite(merged[0]).all(-1).all(-1)
            order = torch.nonzero(usable)[:, 0]
            order = order[torch.randperm(len(order), device=order.device)]
            for some in order.split(max(1, settings.tokens // count)):
                if len(some) * count >= settings.tokens // 2 or len(order) < settings.tokens // count:
                    yield merged[0][some], merged[1][some], merged[2][some]


def train(
    settings: Settings,
    out: Path,
    device: str,
    *,
    resume: Path | None = None,
    begin: Path | None = None,
    stop_after: float = 0.0,
    steps: int | None = None,
    say: Callable[[str], None] | None = None,
) -> SetNetwork:
    """Train for ``settings.minutes`` of wall clock, counted over all sessions; returns the averaged network.

    Parameters
    ----------
    out : folder for ``checkpoint.pt``, ``curve.jsonl`` (one line per evaluation) and ``weights.npz``
    resume : a checkpoint to go on from; its settings must be the same but for the minutes
    begin : a checkpoint whose averaged network this training starts from, with a new schedule
    say : is told each line of the learning curve
    stop_after : minutes after which this session stops with a checkpoint, though the training is not over
    steps : the same after so many steps, counted over all sessions
    """
    with matmul_precision("high"):
        return _train(settings, out, device, resume, begin, stop_after, steps, say)


def _train(
    settings: Settings,
    out: Path,
    device: str,
    resume: Path | None,
    begin: Path | None,
    stop_after: float,
    steps: int | None,
    say: Callable[[str], None] | None,
) -> SetNetwork:
    torch.manual_seed(settings.seed)
    network = SetNetwork(settings.width, settings.stages).to(device)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.rate, weight_decay=1e-3, betas=(0.9, 0.99)
    )
    if begin is not None:
        network.load_state_dict(torch.load(begin, map_location=device, weights_only=True)["average"])
    average: SetNetwork = copy.deepcopy(network)
    step, spent = 0, 0.0
    if resume is not None:
        state = torch.load(resume, map_location=device, weights_only=True)
        network.load_state_dict(state["network"])
        average.load_state_dict(state["average"])
        optimizer.load_state_dict(state["optimizer"])
        step, spent = int(state["step"]), float(state["spent"])
        torch.manual_seed(settings.seed + step)
    if settings.compiled:
        torch._dynamo.config.suppress_errors = True
    forward: Any = torch.compile(network, dynamic=True) if settings.compiled else network
    fixed = draw_validation(device, settings.validation)
    out.mkdir(parents=True, exist_ok=True)
    begun, already = time.perf_counter(), spent
    total = settings.minutes * 60
    seen, recent, last = 0, torch.zeros((), device=device), begun

    def save() -> None:
        state = {
            "network": network.state_dict(),
            "average": average.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "spent": spent,
            "settings": asdict(settings),
        }
        # Replaced at once: an interruption leaves the last one whole.
        torch.save(state, out / "checkpoint.partial")
        (out / "checkpoint.partial").replace(out / "checkpoint.pt")

    def note() -> None:
        report = evaluate(average, fixed)
        line = {
            "step": step,
            "seconds": round(spent, 1),
            "loss": round(float(recent), 4),
            "tokens": seen,
            **{k: round(v, 3) for k, v in report.items()},
        }
        with (out / "curve.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        if say is not None:
            say(json.dumps(line))

    for colors, lights, truth in batches(settings, device):
        spent = already + time.perf_counter() - begun
        over = spent >= total or (stop_after and spent - already >= stop_after * 60)
        if over or (steps is not None and step >= steps):
            break
        warm = min(1.0, (step + 1) / 300)
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * spent / total)))
        with torch.autocast(device_type=device.split(":")[0], dtype=torch.bfloat16, enabled=device != "cpu"):
            answers = forward(colors, lights)
        loss, error = loss_of(answers, truth, settings.likelihood)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        seen += colors.shape[0] * colors.shape[1]
        decay = min(settings.average, 1 - 1 / (step + 1))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - decay)
        recent = error.detach() if step == 1 else torch.lerp(recent, error.detach(), 0.02)
        if step % 100 == 0 and time.perf_counter() - last > 30:
            note()
            save()
            last = time.perf_counter()
    note()
    save()
    return average
