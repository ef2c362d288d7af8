"""``photostereo demo``: a synthetic object, noisy photographs, least squares and PDLNV side by side."""

from __future__ import annotations

from pathlib import Path

from photostereo.capture.corruptions import add_poisson
from photostereo.capture.layouts.diligent import write_diligent
from photostereo.commands.compare import comparison_rows, comparison_table, write_comparison_files
from photostereo.commands.terminal import Terminal
from photostereo.io.atomic import replacing_directory
from photostereo.pipeline.folder import SurfaceChoice, fill_results
from photostereo.scenes import dome_lights, render_scene
from photostereo.solver.solve import solve

PHOTOGRAPHS = 20
#: As much noise as signal: what a hand-held lamp and a short exposure in the dark give.
SNR_DB = 0.0
SIZE = 400


def run(out: Path, *, force: bool, quiet: bool) -> None:
    """Render, corrupt, solve by two methods, write everything, say where it is."""
    with Terminal(quiet=quiet) as terminal, replacing_directory(out, force=force) as folder:
        terminal.say(
            f"Photographing a synthetic figure under {PHOTOGRAPHS} lights, with as much noise as signal ..."
        )
        clean = render_scene(
            "figure", size=SIZE, lights=dome_lights(PHOTOGRAPHS), reflectance="oren-nayar", color=True
        )
        capture = add_poisson(clean, SNR_DB, rng=0)
        write_diligent(capture, folder / "capture")
        results = []
        for method in ("ls", "pdlnv"):
            terminal.say(f"Solving with {method} ...")
            results.append(solve(capture, method=method, control=terminal))
        terminal.say("Integrating the surface, writing meshes and the report ...")
        for result in results:
            (folder / result.method).mkdir()
            fill_results(
                folder / result.method,
                capture,
                result,
                surface=SurfaceChoice(),
                report=True,
                control=terminal,
            )
        rows = comparison_rows(results, capture)
        write_comparison_files(folder, capture, results, rows)
    terminal.say(comparison_table(rows))
    best = out / results[-1].method
    terminal.say(f"Results:  {out}")
    terminal.say(f"Report:   {best / 'report.html'}")
    terminal.say(f"Picture:  {best / 'normals.png'}")
    terminal.say(f"Mesh:     {best / 'mesh.glb'}")
    terminal.say(f"Next:     photostereo view {best}    or    photostereo solve YOUR_FOLDER")
