"""``photostereo export``: a result in the formats that other programs open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from photostereo.capture import load
from photostereo.commands.terminal import Terminal
from photostereo.core.units import PixelSize
from photostereo.io.atomic import replacing_directory
from photostereo.pipeline.folder import write_summary
from photostereo.results.export import check_kinds, export_result
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.result_files import read_summary
from photostereo.surface.integration import check_method


def run(
    source: Path,
    out: Path | None,
    *,
    kinds: Sequence[str],
    pixel_size: PixelSize,
    photographs: Path | None,
    tileable: bool,
    linear: bool,
    flip_y: bool,
    surface_method: str,
    decimate: int | None,
    force: bool,
    quiet: bool,
) -> None:
    """Into a folder of its own; the result stays as it is."""
    wanted = check_kinds(kinds)
    check_method(surface_method)
    result = Reconstruction.load(source)
    size = pixel_size if pixel_size.known else size_of_result(source)
    target = out or source.with_name(f"{source.resolve().name}-export")
    with Terminal(quiet=quiet) as terminal:
        capture = None if photographs is None else load(photographs)
        with replacing_directory(
            target, force=force, keep=[source, *([] if photographs is None else [photographs])]
        ) as folder:
            facts = export_result(
                folder,
                result,
                wanted,
                pixel_size=size,
                capture=capture,
                tileable=tileable,
                linear=linear,
                flip_y=flip_y,
                surface_method=surface_method,
                decimate=decimate,
                control=terminal,
            )
            told = {"capture": result.capture, "digest": result.digest, "method": result.method, **facts}
            write_summary(folder, {key: value for key, value in told.items() if value is not None})
    if "material" in wanted and photographs is None:
        terminal.say("Roughness is assumed (0.8); --photographs CAPTURE measures it from the highlights.")
    terminal.say(f"{len(facts['files'])} files: {target}")


def size_of_result(source: Path) -> PixelSize:
    """The pixel size that the surface of a result was made with."""
    facts = read_summary(source).get("surface") or {}
    return PixelSize.of(facts.get("pixel_size") if facts.get("unit") == "mm" else None)
