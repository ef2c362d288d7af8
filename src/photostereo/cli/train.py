"""``photostereo train``: weights of the learned models."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from photostereo.cli.options import Force, Seed, option
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import OutputError
from photostereo.core.extras import require_extra


class Model(StrEnum):
    """What can be trained."""

    REFLECTANCE = "reflectance"
    LIGHTS = "lights"


def train(
    out: Annotated[Path, option("--out -o", None, "Where the weights go, an .npz archive.", "FILE")],
    terminal: Terminal,
    model: Annotated[
        Model, option("--model", None, "The reflectance model, or the network that estimates lights.")
    ] = Model.REFLECTANCE,
    minutes: Annotated[float, option("--minutes", None, "Duration of the training.", min=0.01)] = 10.0,
    seed: Seed = 0,
    width: Annotated[
        int, option("--width", None, "Features per photograph inside the network.", min=8, max=512)
    ] = 96,
    tokens: Annotated[
        int, option("--tokens", None, "Pixels times photographs per step.", min=1000)
    ] = 400_000,
    device: Annotated[str, option("--device", None, "cuda, cpu, or auto.")] = "auto",
    resume: Annotated[bool, option("--resume", None, "Continue from the checkpoint beside FILE.")] = False,
    begin: Annotated[Path | None, option("--begin", None, "Start from the network of a checkpoint.")] = None,
    evaluate: Annotated[
        Path | None, option("--evaluate", None, "Then try `net` on the captures in this folder.")
    ] = None,
    force: Force = False,
) -> None:
    """Train a learned model on synthetic data (needs PyTorch; a GPU is better).

    --width, --tokens, --begin and --evaluate are options of the reflectance model.
    """
    require_extra("torch", "gpu", "Training and GPUs")
    import torch

    from photostereo.io.atomic import write_bytes

    if out.exists() and not force:
        raise OutputError(
            f"{out} exists. Give another name, or --force to replace it.", code="exists", file=out
        )
    place = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    beside = out.with_suffix(".training")
    checkpoint = beside / "checkpoint.pt"
    if resume and not checkpoint.exists():
        raise OutputError(
            f"There is no checkpoint at {checkpoint}. Leave out --resume to start anew, or give the --out of the training "
            "to continue.",
            code="no-checkpoint",
            file=checkpoint,
        )
    if checkpoint.exists() and not (resume or force):
        raise OutputError(
            f"{checkpoint} is the state of an earlier training. Continue it with --resume, or replace it with --force.",
            code="checkpoint-exists",
            file=checkpoint,
        )
    terminal.say(f"Training on {place} for {minutes:g} minutes; checkpoint and learning curve in {beside}")
    if model is Model.LIGHTS:
        archive = _lights(beside, place, minutes, seed, resume, terminal.say)
    else:
        archive = _reflectance(beside, place, minutes, seed, width, tokens, resume, begin, terminal.say)
    write_bytes(out, archive)
    terminal.say(f"Weights: {out}")
    if evaluate is not None and model is Model.REFLECTANCE:
        for line in evaluation(evaluate, out):
            terminal.say(line)


def _reflectance(
    beside: Path,
    device: str,
    minutes: float,
    seed: int,
    width: int,
    tokens: int,
    resume: bool,
    begin: Path | None,
    say: Callable[[str], None],
) -> bytes:
    """The weights archive of the reflectance model."""
    from photostereo.lab.training.export import archive_of
    from photostereo.lab.training.loop import Settings, train

    settings = Settings(minutes=minutes, seed=seed, width=width, tokens=tokens, compiled=device != "cpu")
    checkpoint = beside / "checkpoint.pt" if resume else None
    return archive_of(train(settings, beside, device, resume=checkpoint, begin=begin, say=say))


def _lights(
    beside: Path, device: str, minutes: float, seed: int, resume: bool, say: Callable[[str], None]
) -> bytes:
    """The weights archive of the network that estimates lights."""
    from photostereo.lab.training.lights.export import archive_of
    from photostereo.lab.training.lights.loop import Settings, train

    settings = Settings(minutes=minutes, seed=seed)
    return archive_of(train(settings, beside, device, resume=beside if resume else None, say=say))


def evaluation(folder: Path, weights: Path) -> list[str]:
    """The mean error of `net` with these weights on every capture with truth under a folder."""
    from photostereo.capture import load
    from photostereo.capture.loading import recognize
    from photostereo.solver.solve import solve

    lines = []
    for path in sorted(entry for entry in folder.iterdir() if recognize(entry) is not None):
        capture = load(path, color=True)
        result = solve(capture, "net", weights=str(weights))
        if result.angular_error is not None:
            lines.append(f"{capture.name}: mean {result.angular_error.mean:.2f}°")
    return lines or [f"{folder} has no capture with truth."]
