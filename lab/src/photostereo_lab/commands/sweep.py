"""``photostereo sweep``: run a user's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.batch.options import RunOptions
from photostereo.cli.command import REQUIRED, argument, option
from photostereo.cli.terminal import Terminal

#: Help of ``--out``, for commands that continue earlier runs.
GROWING = "Folder for the results; continues an earlier run."
#: Redraw from the store.
ONLY_FIGURES = option("Redraw tables and figures without computing anything.", default=False)


def sweep(
    terminal: Terminal,
    options: RunOptions,
    plan: Path = argument("A plan (TOML); see docs/lab/sweeps.md.", "PLAN"),
    out: Path = option(GROWING, "Output", "OUT", flags="--out -o", default=REQUIRED),
    data: Path | None = option("Folder of the captures in the plan.", metavar="DIR"),
    only_figures: bool = ONLY_FIGURES,
    device: str = "cpu",
) -> dict[str, Any]:
    """Run an experiment: captures × noise × photographs × seeds × methods × parameter grids."""
    from photostereo_lab.sweeps.sweep import sweep as run

    end = run(
        plan,
        out,
        data=data,
        only_figures=only_figures,
        options=options,
        device=device,
        control=terminal,
    )
    terminal.some_failed = end.failed > 0
    return {
        "out": str(out.absolute()),
        "total": end.total,
        "done": end.done,
        "failed_trials": end.failed,
    }
