"""``photostereo sweep``: an experiment of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from photostereo.cli.command import option
from photostereo.cli.options import DEVICE, ONLY_FIGURES, GrowingOut, Running
from photostereo.cli.terminal import Terminal


def sweep(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan (TOML); see docs/lab/sweeps.md.")],
    out: GrowingOut,
    running: Running,
    terminal: Terminal,
    data: Path | None = option("Folder of the captures in the plan.", metavar="DIR"),
    only_figures: bool = ONLY_FIGURES,
    device: str = DEVICE,
) -> dict[str, Any]:
    """Run an experiment: captures × noise × photographs × seeds × methods × parameter grids."""
    from photostereo_lab.sweeps.sweep import sweep as run

    options = running.options()
    end = run(
        plan, out, data=data, only_figures=only_figures, options=options, device=device, control=terminal
    )
    return {"out": str(out.absolute()), "total": end.total, "done": end.done, "failed_trials": end.failed}
