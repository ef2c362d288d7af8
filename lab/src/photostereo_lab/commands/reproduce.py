"""``photostereo reproduce``: the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.batch.options import RunOptions
from photostereo.cli.command import argument, option
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import ParameterError
from photostereo_lab.commands.sweep import GROWING, ONLY_FIGURES


def reproduce(
    terminal: Terminal,
    options: RunOptions,
    names: list[str] | None = argument("Runs; see --list.", "NAME...", default=None),
    data: Path | None = option(
        "Folder with diligent/pmsData and harvard.", metavar="DIR", envvar="PHOTOSTEREO_DATA"
    ),
    out: Path = option(GROWING, "Output", "OUT", flags="--out -o", default=Path("reproduction")),
    everything: bool = option("Run all experiments.", flags="--all", default=False),
    listing: bool = option(
        "List the runs and what the paper reports.", flags="--list", default=False
    ),
    quick: bool = option("Use small grids and few trials (takes minutes).", default=False),
    only_figures: bool = ONLY_FIGURES,
    device: str = "cpu",
) -> dict[str, Any]:
    """Reproduce the tables and figures of the paper, next to the published numbers."""
    from photostereo_lab.paper.experiments import NAMED_RUNS
    from photostereo_lab.paper.reproduce import reproduce as run

    if listing:
        entries = []
        for name, entry in NAMED_RUNS.items():
            terminal.say(f"{name:16} {entry.title}\n{'':16}   the paper: {entry.source}")
            entries.append({"name": name, "title": entry.title, "source": entry.source})
        return {"runs": entries}
    if not names and not everything:
        raise ParameterError(
            "Name the runs (see `photostereo reproduce --list`), or use --all.", code="no-runs"
        )
    ends = run(
        [] if everything else list(names or ()),
        data,
        out,
        quick=quick,
        only_figures=only_figures,
        options=options,
        device=device,
        control=terminal,
    )
    runs = [
        {"name": name, "total": end.total, "done": end.done, "failed": end.failed}
        for name, end in zip(names or NAMED_RUNS, ends, strict=True)
    ]
    return {"out": str(out.absolute()), "runs": runs}
