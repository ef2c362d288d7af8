"""``save``: a result with everything that can be looked at, in one folder."""

from __future__ import annotations

import os
from pathlib import Path

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.io.atomic import replacing_directory
from photostereo.pipeline.folder import fill_results
from photostereo.pipeline.settings import OutputSettings
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.opinion import assess
from photostereo.solver.reconstruction import Reconstruction
from photostereo.surface.integration import check_method


def save(
    result: Reconstruction,
    out: str | os.PathLike[str],
    capture: Capture | None = None,
    *,
    surface: str | None = "poisson",
    report: bool = True,
    pixel_size: str | None = None,
    flip_y: bool = False,
    force: bool = False,
    control: Control = SILENT,
) -> Path:
    """Write a result as ``photostereo solve`` does: arrays, pictures, depth, meshes, page; complete or not at all.

    Parameters
    ----------
    result : Reconstruction
        What to write.
    out : path
        The folder to create.
    capture : Capture, optional
        What it was computed from; the page then shows the photographs, the lights and the diagnosis.
    surface : {"poisson", "robust", "simchony"} or None
        Integration method for depth and mesh; None for neither.
    report : bool
        Whether the page is written.
    pixel_size : str, optional
        Width of a pixel, such as ``"0.1mm"``, for the scale of meshes.
    flip_y : bool
        ``normals.png`` in the DirectX convention.
    force : bool
        Replace an existing folder of results.
    control : Control
        Receives progress.

    Returns
    -------
    Path
        The folder. :meth:`Reconstruction.load` reads it again.

    Raises
    ------
    OutputError
        If the folder exists (and ``force`` is not given), holds anything that photostereo did not write, or cannot be
        written.

    Examples
    --------
    >>> import tempfile
    >>> import photostereo as ps
    >>> scene = ps.render_scene("sphere", size=32)
    >>> folder = ps.save(ps.solve(scene, "ls"), tempfile.mkdtemp() + "/sphere", scene, report=False)
    >>> sorted(path.name for path in folder.glob("mesh.*"))
    ['mesh.glb', 'mesh.ply']
    >>> ps.Reconstruction.load(folder).method
    'ls'
    """
    if surface is not None:
        check_method(surface)
    choice = None if surface is None else SurfaceChoice(method=surface, pixel_size=PixelSize.of(pixel_size))
    target = Path(out).expanduser()
    with replacing_directory(target, force=force) as folder:
        output = OutputSettings(report=report, flip_y=flip_y)
        expected = assess(result, capture)
        fill_results(
            folder, capture, result, surface=choice, output=output, expected=expected, control=control
        )
    return target
