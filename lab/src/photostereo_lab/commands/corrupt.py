"""``photostereo corrupt``: write a capture with added noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.command import option
from photostereo.cli.terminal import Terminal


def corrupt(
    terminal: Terminal,
    capture: Path,
    out: Path,
    poisson: float | None = option("Poisson noise with this signal-to-noise ratio.", metavar="DB"),
    salt_pepper: float | None = option("Share of values set to 0 or 1.", metavar="SHARE"),
    gaussian: float | None = option(
        "Gaussian noise, for intensities from 0 to 1.", metavar="SIGMA"
    ),
    images: int | None = None,
    seed: int = 0,
    color: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Add noise to a capture and write it in the DiLiGenT layout.

    Poisson noise comes first, then Gaussian, then salt and pepper.
    """
    if poisson is None and salt_pepper is None and gaussian is None and images is None:
        raise ps.ParameterError(
            "Nothing to do. Give --poisson DB, --salt-pepper SHARE, --gaussian SIGMA or "
            "--images N.",
            code="nothing-to-do",
        )
    from photostereo.capture.layouts.diligent import write_diligent
    from photostereo.cli.info import capture_line
    from photostereo.io.atomic import require_free
    from photostereo_lab.corruptions import (
        add_gaussian,
        add_poisson,
        add_salt_and_pepper,
        noise_of_seed,
        signal_to_noise,
    )

    require_free(out, force=force)
    reading = ps.Pipeline(
        capture, control=terminal, color=color, images=images, seed=seed, method="ls"
    )
    clean = noisy = reading.loaded
    rng = noise_of_seed(seed)
    if poisson is not None:
        noisy = add_poisson(noisy, poisson, rng)
    if gaussian is not None:
        noisy = add_gaussian(noisy, gaussian, rng)
    if salt_pepper is not None:
        noisy = add_salt_and_pepper(noisy, salt_pepper, rng)
    write_diligent(noisy, out, force=force, keep=[capture])
    ratio = signal_to_noise(clean, noisy)
    terminal.say(capture_line(noisy))
    terminal.say(f"Signal-to-noise ratio: {ratio:.2f} dB")
    terminal.say(f"Written: {out}")
    return {"out": str(out.absolute()), "signal_to_noise_db": ratio, "photographs": len(noisy)}
