"""``photostereo sweep``: run a user's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.cli.command import REQUIRED, argument, option
from photostereo.cli.options import DEVICE, GROWING, Running, output
from photostereo.cli.terminal import Terminal

ONLY_FIGURES = option("Redraw tables and figures without computing anything.", default=False)


def sweep(
    terminal: Terminal,
    running: Running,
    plan: Path = argument("A plan (TOML); see docs/lab/sweeps.md.", "PLAN"),
    out: Path = output(GROWING, default=REQUIRED),
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
