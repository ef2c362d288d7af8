"""``photostereo train``: the learned reflectance model's weights, made anew from synthetic pixels."""

from __future__ import annotations

from pathlib import Path

from photostereo.commands.terminal import Terminal
from photostereo.core.errors import MissingDependencyError, OutputError
from photostereo.io.atomic import replacing_file


def run(
    out: Path,
    *,
    minutes: float,
    seed: int,
    width: int,
    device: str,
    tokens: int,
    resume: bool,
    begin: Path | None,
    evaluate: Path | None,
    force: bool,
    quiet: bool,
) -> None:
    """Train, write the weights, and perhaps try them on every capture with truth in a folder."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError(
            'Training needs PyTorch. Install it with `pip install "photostereo[train]"`.'
        ) from None
    from photostereo.lab.training.export import archive_of
    from photostereo.lab.training.loop import Settings, train

    if out.exists() and not force:
        raise OutputError(f"{out} exists. Give another name, or --force to replace it.")
    place = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    beside = out.with_suffix(".training")
    checkpoint = beside / "checkpoint.pt"
    if resume and not checkpoint.exists():
        raise OutputError(
            f"There is no checkpoint to go on from at {checkpoint}. Leave out --resume to begin anew, or give the --out of "
            "the training that is to go on."
        )
    settings = Settings(minutes=minutes, seed=seed, width=width, tokens=tokens, compiled=place != "cpu")
    with Terminal(quiet=quiet) as terminal:
        terminal.say(
            f"Training on {place} for {minutes:g} minutes; checkpoint and learning curve in {beside}"
        )
        network = train(
            settings,
            beside,
            place,
            resume=checkpoint if resume else None,
            begin=begin,
            say=terminal.say,
        )
        with replacing_file(out, force=force) as file:
            file.write_bytes(archive_of(network))
        terminal.say(f"Weights: {out}")
        if evaluate is not None:
            for line in evaluation(evaluate, out):
                terminal.say(line)


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
    return lines or [f"No capture with truth lies in {folder}."]
