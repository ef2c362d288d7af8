"""``photostereo train``: weights of the learned model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.options import Force, Quiet, Seed


def train(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The weights, an .npz archive.")],
    minutes: Annotated[float, typer.Option(min=0.01, help="Wall-clock time of the training.")] = 10.0,
    seed: Seed = 0,
    width: Annotated[
        int, typer.Option(min=8, max=512, help="Numbers per photograph inside the network.")
    ] = 96,
    tokens: Annotated[int, typer.Option(min=1000, help="Photographs of pixels per step.")] = 400_000,
    device: Annotated[str, typer.Option(help="cuda, cpu, or auto.")] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside FILE.")] = False,
    begin: Annotated[Path | None, typer.Option(help="Start from a checkpoint's network.")] = None,
    evaluate: Annotated[
        Path | None, typer.Option(help="Then try `net` on the captures in this folder.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train the learned reflectance model on synthetic pixels (needs PyTorch, better a GPU)."""
    from photostereo.commands.train import run

    run(
        out,
        minutes=minutes,
        seed=seed,
        width=width,
        device=device,
        tokens=tokens,
        resume=resume,
        begin=begin,
        evaluate=evaluate,
        force=force,
        quiet=quiet,
    )
