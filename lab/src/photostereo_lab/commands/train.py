"""``photostereo train``: weights of the learned models."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import photostereo as ps
from photostereo.cli.command import REQUIRED, option
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import OutputError, ParameterError, require_extra

if TYPE_CHECKING:
    from photostereo_lab.training.loop import Task


class Model(StrEnum):
    REFLECTANCE = "reflectance"
    CONTEXT = "context"
    LIGHTS = "lights"


def train(
    terminal: Terminal,
    out: Path = option(
        "Weights to write (.npz).", metavar="FILE", flags="--out -o", default=REQUIRED
    ),
    model: Model = option("The network to train.", default=Model.REFLECTANCE),
    minutes: float = option("Duration of the training.", min=0.01, default=10.0),
    seed: int = 0,
    device: str = option("cuda, cpu, or auto.", default="auto"),
    resume: bool = option("Continue from the checkpoint next to FILE.", default=False),
    begin: Path | None = option("Start from these weights (.npz)."),
    evaluate: Path | None = option("Afterwards, test `net` on the captures in this folder."),
    force: bool = False,
) -> dict[str, Any]:
    """Train a learned model on synthetic data (needs PyTorch; a GPU is recommended).

    --evaluate applies to the reflectance model only.
    """
    require_extra("torch", "gpu", "Training and GPUs")
    import torch

    from photostereo.io.atomic import write_bytes
    from photostereo.runtime.arrays import find_device
    from photostereo_lab.training.loop import archive_of
    from photostereo_lab.training.loop import train as run_training

    if out.exists() and not force:
        raise OutputError(
            f"{out} exists. Give another name, or --force to replace it.", code="exists", file=out
        )
    place = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    find_device(place)
    if evaluate is not None and not evaluate.is_dir():
        raise ParameterError(
            f"{evaluate} is not a folder of captures.", code="not-a-folder", file=evaluate
        )
    beside = out.with_suffix(".training")
    checkpoint = beside / "checkpoint.pt"
    if resume and not checkpoint.exists():
        raise OutputError(
            f"There is no checkpoint at {checkpoint}. Omit --resume to start over, or give the --out of the training to "
            "continue.",
            code="no-checkpoint",
            file=checkpoint,
        )
    if checkpoint.exists() and not (resume or force):
        raise OutputError(
            f"{checkpoint} is the state of an earlier training. Continue it with --resume, or replace it with --force.",
            code="checkpoint-exists",
            file=checkpoint,
        )
    terminal.say(
        f"Training on {place} for {minutes:g} minutes; checkpoint and learning curve in {beside}"
    )
    task = _task(model, place, minutes, seed)
    network = run_training(task, beside, resume=resume, begin=begin, say=terminal.say)
    archive = archive_of(network, task.prefix)
    write_bytes(out, archive)
    terminal.say(f"Weights: {out}")
    lines = evaluation(evaluate, out) if evaluate is not None and model is Model.REFLECTANCE else []
    for line in lines:
        terminal.say(line)
    return {"out": str(out.absolute()), "evaluation": lines}


def _task(model: Model, device: str, minutes: float, seed: int) -> Task:
    from photostereo_lab.training.context.task import ContextSettings, ContextTask
    from photostereo_lab.training.lights.task import LightSettings, LightTask
    from photostereo_lab.training.reflectance.task import ReflectanceSettings, ReflectanceTask

    if model is Model.LIGHTS:
        return LightTask(LightSettings(minutes=minutes, seed=seed), device)
    if model is Model.CONTEXT:
        return ContextTask(ContextSettings(minutes=minutes, seed=seed), device)
    return ReflectanceTask(ReflectanceSettings(minutes=minutes, seed=seed), device)


def evaluation(folder: Path, weights: Path) -> list[str]:
    """Return the mean error of `net` with these weights.

    It is that on every capture with ground truth under a folder.
    """
    from photostereo.capture.loading import recognize

    lines = []
    for path in sorted(entry for entry in folder.iterdir() if recognize(entry) is not None):
        capture = ps.load(path, color=True)
        result = ps.solve(capture, "net", weights=str(weights))
        if result.angular_error is not None:
            lines.append(f"{capture.name}: mean {result.angular_error.mean:.2f}°")
    return lines or [f"{folder} has no capture with truth."]
