"""``photostereo corrupt``: a capture with noise added, on disk."""

from __future__ import annotations

from pathlib import Path

from photostereo.capture.corruptions import (
    add_gaussian,
    add_poisson,
    add_salt_and_pepper,
    noise_of_seed,
    signal_to_noise,
)
from photostereo.capture.layouts.diligent import write_diligent
from photostereo.capture.options import ReadOptions
from photostereo.commands.solve import read_capture
from photostereo.commands.terminal import Terminal
from photostereo.core.errors import ParameterError


def run(
    path: Path,
    out: Path,
    *,
    poisson: float | None,
    salt_pepper: float | None,
    gaussian: float | None,
    images: int | None,
    seed: int,
    color: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Draw photographs, add the noises asked for (Poisson, then Gaussian, then salt and pepper), write."""
    if poisson is None and salt_pepper is None and gaussian is None and images is None:
        raise ParameterError(
            "Nothing to do. Give --poisson DB, --salt-pepper SHARE, --gaussian SIGMA or --images N."
        )
    with Terminal(quiet=quiet) as terminal:
        clean = read_capture(path, ReadOptions(color=color), images, seed)
        rng = noise_of_seed(seed)
        noisy = clean
        if poisson is not None:
            noisy = add_poisson(noisy, poisson, rng)
        if gaussian is not None:
            noisy = add_gaussian(noisy, gaussian, rng)
        if salt_pepper is not None:
            noisy = add_salt_and_pepper(noisy, salt_pepper, rng)
        write_diligent(noisy, out, force=force, keep=[path])
        terminal.say(f"{noisy}")
        terminal.say(f"Signal-to-noise ratio: {signal_to_noise(clean, noisy):.2f} dB")
        terminal.say(f"Written: {out}")
