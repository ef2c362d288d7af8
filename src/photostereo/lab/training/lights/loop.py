"""The training: AdamW, a constant rate that falls at the end, an average of the weights, checkpoints, a learning curve."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch._dynamo
from torch import Tensor

from photostereo.io.atomic import write_bytes
from photostereo.lab.training.lights.export import archive_of
from photostereo.lab.training.lights.network import Answer, LightNetwork
from photostereo.lab.training.lights.scenes import Shot, draw_pool, mirrored, show
from photostereo.lab.training.lights.validation import angles, coarse_normals, draw_validation, evaluate

#: Numbers of photographs, each with the share of batches drawn with it.
COUNTS = {
    4: 0.05, 5: 0.04, 6: 0.07, 8: 0.1, 10: 0.12, 12: 0.1, 16: 0.18, 20: 0.12, 24: 0.08, 32: 0.09, 48: 0.03, 96: 0.02
}  # fmt: skip
#: Share of scenes in which some directions are given.
PARTLY_KNOWN = 0.15
#: Share of scenes into which photographs of another scene are mixed.
STRANGERS = 0.01
WARM_UP = 300  # steps
TEN_DEGREES = 0.1745


@dataclass(frozen=True)
class Settings:
    """What defines a training; kept in the checkpoint and beside the weights."""

    minutes: float = 17.0
    seed: int = 0
    photographs: int = 2048  # per step, at most
    scenes: int = 160  # in a pool
    reuse: int = 12  # times a pool is shown
    rate: float = 1.2e-3
    falling: float = 0.5  # share of the time in which the rate falls to zero
    likelihood: float = 0.25  # weight of the expected error's likelihood
    average: float = 0.999
    validation: float = 1.0  # size of the validation set


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


def batches(settings: Settings, device: torch.device | str) -> Iterator[Shot]:
    """Endless photographs of endless scenes."""
    counts, shares = list(COUNTS), torch.tensor(list(COUNTS.values()))
    while True:
        pool = draw_pool(settings.scenes, device)
        for _ in range(settings.reuse):
            count = counts[int(torch.multinomial(shares, 1))]
            scenes = max(2, min(settings.scenes, settings.photographs // count))
            some = torch.randperm(settings.scenes, device=device)[:scenes]
            shot = with_strangers(show(pool[some], count))
            yield shot
            first = int(torch.randint(0, 4, ()))
            for turns, flip in ((first, True), (1 + first % 3, False)):  # never the same again
                yield mirrored(shot, turns, flip)


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


def rate_at(settings: Settings, step: int, share: float) -> float:
    """The learning rate after a share of the time."""
    falling = min(1.0, (1 - share) / settings.falling)
    return settings.rate * min(1.0, (step + 1) / WARM_UP) * max(falling, 0.0)


def train(
    settings: Settings,
    out: Path,
    device: str,
    *,
    resume: Path | None = None,
    stop_after: float = 0.0,
    steps: int | None = None,
    say: Callable[[str], None] | None = None,
    every: float = 45.0,
) -> LightNetwork:
    """Train for ``settings.minutes`` of wall clock, counted over all runs; returns the averaged network.

    Parameters
    ----------
    out : folder for ``checkpoint.pt``, ``optimizer.pt``, ``curve.jsonl`` and ``weights.npz``
    resume : folder with a checkpoint to go on from
    stop_after : minutes after which this run stops with a checkpoint, even if the training is not over
    steps : stop after this number of steps, counted over all runs
    say : receives each line of the learning curve
    every : seconds between two evaluations
    """
    torch.manual_seed(settings.seed)
    network = LightNetwork().to(device).to(memory_format=torch.channels_last)
    on_gpu = not device.startswith("cpu")
    if on_gpu:
        torch._dynamo.config.suppress_errors = True  # what cannot be fused runs as it is
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.rate, weight_decay=2e-3, betas=(0.9, 0.99), fused=on_gpu
    )
    average: LightNetwork = copy.deepcopy(network)
    step, spent = 0, 0.0
    if resume is not None:
        state = torch.load(resume / "checkpoint.pt", map_location=device, weights_only=True)
        network.load_state_dict(state["network"])
        average.load_state_dict(state["average"])
        step, spent = int(state["step"]), float(state["spent"])
        optimizer.load_state_dict(
            torch.load(resume / "optimizer.pt", map_location=device, weights_only=True)["optimizer"]
        )
        torch.manual_seed(settings.seed + step)
    out.mkdir(parents=True, exist_ok=True)
    fixed = draw_validation(device, settings.validation)
    begun, already = time.perf_counter(), spent
    total = settings.minutes * 60
    recent, last, scenes = torch.zeros((), device=device), begun, 0

    def save() -> None:
        state = {
            "network": network.state_dict(),
            "average": average.state_dict(),
            "step": step,
            "spent": spent,
            "settings": asdict(settings),
        }
        # Replaced at once: an interruption leaves the last one whole.
        for name, content in (("checkpoint", state), ("optimizer", {"optimizer": optimizer.state_dict()})):
            torch.save(content, out / f"{name}.partial")
            (out / f"{name}.partial").replace(out / f"{name}.pt")
        write_bytes(out / "weights.npz", archive_of(average))

    def note() -> None:
        line = {"step": step, "seconds": round(spent, 1), "loss": round(float(recent), 3), "scenes": scenes}
        line |= {name: round(value, 3) for name, value in evaluate(average, fixed).items()}
        with (out / "curve.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        if say is not None:
            say(json.dumps(line))

    for shot in batches(settings, device):
        spent = already + time.perf_counter() - begun
        over = spent >= total or (stop_after and spent - already >= stop_after * 60)
        if over or (steps is not None and step >= steps):
            break
        for group in optimizer.param_groups:
            group["lr"] = rate_at(settings, step, spent / total)
        known = partly_known(shot)
        with torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=on_gpu):
            answer = network(shot.images, shot.mask, known)
        loss = loss_of(answer, shot, 1 - known[..., 3], settings.likelihood)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        scenes += len(shot.mask)
        decay = min(settings.average, 1 - 1 / (step / 10 + 1))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - decay)
        recent = loss.detach() if step == 1 else torch.lerp(recent, loss.detach(), 0.02)
        if step % 50 == 0 and time.perf_counter() - last > every:
            note()
            save()
            last = time.perf_counter()
    note()
    save()
    return average
