"""``photostereo demo``: least squares and the default method on noisy photographs of a synthetic object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.messages import about_demo
from photostereo.cli.terminal import Terminal

#: As much noise as signal, typical of a hand-held light and a short exposure in the dark.
SNR_DB = 0.0
#: Least squares, the method of the paper, and the default method.
METHODS = ("ls", "pdlnv", "dlnet")


def demo(
    terminal: Terminal, out: Path = Path("photostereo-demo"), force: bool = False
) -> dict[str, Any]:
    """Run the whole pipeline on a synthetic object, in about a minute."""
    from photostereo.capture.layouts.diligent import write_diligent
    from photostereo.cli.compare import comparison_table
    from photostereo.example import owl
    from photostereo.io.atomic import require_free
    from photostereo.pipeline import comparison

    require_free(out, force=force)
    pipeline = ps.Pipeline(owl(SNR_DB), control=terminal)
    terminal.pipeline = pipeline
    terminal.say(
        f"A synthetic owl under {len(pipeline.capture)} lights, with as much noise as signal"
    )
    with pipeline.writing(out, force=force) as (folder, _):
        write_diligent(pipeline.capture, folder / "capture")
        rows = comparison.solve_each(
            pipeline, folder, {name: {} for name in METHODS}, terminal.say
        ).rows
    table = comparison_table(rows)
    terminal.table(None, table.header, table.rows)
    best = out / METHODS[-1]
    terminal.say_all(about_demo(terminal.summary(), out, best))
    return {"out": str(out.absolute()), "methods": rows}
