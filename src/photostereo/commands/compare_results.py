"""``photostereo compare RESULT RESULT ...``: results that are there already, on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from photostereo.commands.export import size_of_result
from photostereo.commands.figure import truth_of
from photostereo.commands.terminal import Terminal
from photostereo.core.conventions import FloatArray
from photostereo.core.errors import ParameterError
from photostereo.core.units import PixelSize
from photostereo.diagnosis.metrics import angular_error
from photostereo.io.atomic import replacing_directory, write_array
from photostereo.io.names import folder_name, printable
from photostereo.report.contestants import ground_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import is_result, read_depth


def run(
    sources: Sequence[Path],
    out: Path | None,
    *,
    truth: Path | None,
    pixel_size: PixelSize,
    force: bool,
    quiet: bool,
) -> None:
    """Write a folder with a page, and beside it what the page needs to be served pixel by pixel."""
    from photostereo.report import write_comparison

    strangers = [str(source) for source in sources if not is_result(source)]
    if strangers:
        raise ParameterError(
            f"{strangers[0]} is not the result of a solve. Give one capture, or two and more OUT folders of "
            "`photostereo solve`."
        )
    if len(sources) < 2:
        raise ParameterError(f"{sources[0]} is a result. Give at least one more to compare it with.")
    names = names_of(sources)
    results = [Reconstruction.load(source) for source in sources]
    known = None if truth is None else truth_of(truth)
    # Page and server cut their tiles around the same pixels: those that all results know.
    mask = ground_of(results, None, known).mask
    results = [replace(result, mask=mask) for result in results]
    sizes = {size_of_result(source) for source in sources}
    size = sizes.pop() if not pixel_size.known and len(sizes) == 1 else pixel_size
    target = out or Path(f"{folder_name(names[0])}-compare")
    with Terminal(quiet=quiet) as terminal:
        with replacing_directory(target, force=force, keep=sources) as folder:
            folders, depths = [], []
            for number, (source, result) in enumerate(zip(sources, results, strict=True)):
                folders.append(f"{number + 1}-{folder_name(names[number])}")
                (folder / folders[-1]).mkdir()
                result.save(folder / folders[-1])
                depths.append(read_depth(source, mask.shape))
                if depths[-1] is not None:
                    write_array(folder / folders[-1] / "depth.npy", depths[-1])
            if known is not None:
                write_array(folder / "truth" / "normals.npy", known.astype(np.float32))
                write_array(folder / "truth" / "mask.npy", mask)
            write_comparison(
                folder / "report.html",
                results,
                None,
                labels=names,
                truth=known,
                depths=depths,
                files={f"{name}/summary.json": f"{name}/summary.json" for name in folders},
                folders=folders,
                pixel_size=size,
            )
        terminal.say(angles_table(names, results, known))
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")


def names_of(sources: Sequence[Path]) -> list[str]:
    """The names of the folders; where two are called alike, numbers tell them apart.

    >>> names_of([Path("a/cat"), Path("b/cat"), Path("b/dog")])
    ['cat (1)', 'cat (2)', 'dog']
    """
    names = [source.resolve().name if source.name in ("", "..") else source.name for source in sources]
    counts, seen = Counter(names), Counter[str]()
    told = []
    for name in names:
        seen[name] += 1
        told.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return told


def angles_table(names: Sequence[str], results: Sequence[Reconstruction], truth: FloatArray | None) -> Table:
    """Angles to the truth, or without it to the first result; all have one mask."""
    mask = results[0].mask
    against = results[0].normals if truth is None else truth
    table = Table()
    table.add_column("result")
    table.add_column("method")
    heading = "error" if truth is not None else f"angle to {names[0]}"
    for word in (f"mean {heading}", "median", "90 % below"):
        table.add_column(Text(printable(word)), justify="right")
    for name, result in zip(names, results, strict=True):
        angle = angular_error(result.normals, against, mask)[mask]
        table.add_row(
            Text(printable(name)),
            Text(printable(result.method)),
            f"{angle.mean():.2f}°",
            f"{np.median(angle):.2f}°",
            f"{np.percentile(angle, 90):.2f}°",
        )
    return table
