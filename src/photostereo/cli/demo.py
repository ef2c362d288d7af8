"""``photostereo demo``: a synthetic object, end to end."""

from __future__ import annotations

from pathlib import Path

from photostereo.cli.options import Force, OutFolder, Quiet


def demo(out: OutFolder = Path("photostereo-demo"), force: Force = False, quiet: Quiet = False) -> None:
    """A synthetic object, end to end, in under a minute."""
    from photostereo.commands.demo import run

    run(out, force=force, quiet=quiet)
