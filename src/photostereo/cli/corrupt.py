"""``photostereo corrupt``: a capture with noise added, on disk."""

from __future__ import annotations

from typing import Any

from photostereo.cli.command import option
from photostereo.cli.options import COLOR, FORCE, IMAGES, SEED, CapturePath, OutFolder
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError


def corrupt(
    capture: CapturePath,
    out: OutFolder,
    terminal: Terminal,
    poisson: float | None = option("Poisson noise with this signal-to-noise ratio.", metavar="DB"),
    salt_pepper: float | None = option("Share of values set to 0 or 1.", metavar="SHARE"),
    gaussian: float | None = option("Gaussian noise, for intensities from 0 to 1.", metavar="SIGMA"),
    images: int | None = IMAGES,
    seed: int = SEED,
    color: bool = COLOR,
    force: bool = FORCE,
) -> dict[str, Any]:
    """Add noise to a capture (Poisson, then Gaussian, then salt and pepper) and write it in the DiLiGenT layout."""
    if poisson is None and salt_pepper is None and gaussian is None and images is None:
        raise ParameterError(
            "Nothing to do. Give --poisson DB, --salt-pepper SHARE, --gaussian SIGMA or --images N.",
            code="nothing-to-do",
        )
    from photostereo.capture import corruptions
    from photostereo.capture.layouts.diligent import write_diligent
    from photostereo.cli.state import capture_line
    from photostereo.io.atomic import require_free
    from photostereo.pipeline.pipeline import Pipeline

    require_free(out, force=force)
    reading = Pipeline(capture, control=terminal, color=color, images=images, seed=seed, method="ls")
    clean = noisy = reading.loaded
    rng = corruptions.noise_of_seed(seed)
    for add, level in (
        (corruptions.add_poisson, poisson),
        (corruptions.add_gaussian, gaussian),
        (corruptions.add_salt_and_pepper, salt_pepper),
    ):
        noisy = noisy if level is None else add(noisy, level, rng)
    write_diligent(noisy, out, force=force, keep=[capture])
    ratio = corruptions.signal_to_noise(clean, noisy)
    terminal.say(capture_line(noisy))
    terminal.say(f"Signal-to-noise ratio: {ratio:.2f} dB")
    terminal.say(f"Written: {out}")
    return {"out": str(out.absolute()), "signal_to_noise_db": ratio, "photographs": len(noisy)}
