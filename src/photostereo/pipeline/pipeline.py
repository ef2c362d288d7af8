"""``Pipeline``: all stages of one capture, from photographs to results."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from photostereo.capture import Capture
from photostereo.capture.options import NAMED_FILES
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ConvergenceWarning
from photostereo.core.findings import Finding
from photostereo.diagnosis.diagnose import Diagnosis, diagnose
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.diagnosis.noise import NoiseEstimate
from photostereo.io.atomic import replacing_directory
from photostereo.io.memory import share_one_heap
from photostereo.io.names import folder_name
from photostereo.io.safe import exists
from photostereo.photographs.files import PhotographFiles
from photostereo.pipeline.budget import (
    ENOUGH,
    Plan,
    budget_of,
    glance,
    is_diagnosed_whole,
    plan_solve,
    require_feasible,
)
from photostereo.pipeline.provenance import provenance
from photostereo.pipeline.reading import ReadingStages
from photostereo.pipeline.settings import FLAT, Settings
from photostereo.pipeline.stage import stage
from photostereo.report.about import check_about, read_about
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.finish import with_colors
from photostereo.solver.methods import find_method
from photostereo.solver.near import camera_of
from photostereo.solver.opinion import assess
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import Deal, solve
from photostereo.solver.state import require_checkpoint
from photostereo.solver.tiles import OF_THE_PROGRAM
from photostereo.surface import Surface, integrate
from photostereo.surface.integration import check_method

#: Modules that a solve needs at some point and that are slow to import.
NEEDED = ("photostereo.runtime.loops", "scipy.special", "scipy.ndimage", "photostereo.report.page")


@dataclass(frozen=True)
class Written:
    """The output of :meth:`Pipeline.write`."""

    folder: Path  #: the folder of the results
    summary: dict[str, Any]  #: the content of ``summary.json``
    warnings: tuple[str, ...] = ()  #: warnings about the solve


class Pipeline(ReadingStages):
    """All stages of one capture, from photographs to results.

    Every stage is an attribute: it is computed on first access, kept, and recomputed only if a setting that it
    depends on changes. A new mask does not read the photographs again, and a new method does not measure
    the noise again.

    ``photographs`` → ``alignment`` → ``lights`` → ``mask`` → ``capture`` → ``diagnosis`` and ``noise``, ``solution`` →
    ``surface`` → :meth:`write`

    Parameters
    ----------
    path : path or Capture
        The folder or file of a capture, or a capture in memory.
    settings : Settings, optional
        How to read, solve and write it.
    control : Control
        Receives progress and can cancel the work, at any stage.
    deal : callable, optional
        Solves the parts of a large capture elsewhere; see :func:`photostereo.solve`.
    **changes
        Single settings by name, as for :meth:`configure`.

    Examples
    --------
    >>> import tempfile
    >>> import photostereo as ps
    >>> from photostereo.capture import write_archive
    >>> from photostereo_lab.scenes import render_scene
    >>> file = write_archive(render_scene("sphere", size=32), tempfile.mkdtemp() + "/sphere.npz")
    >>> pipeline = ps.Pipeline(file, method="ls", report=False)
    >>> pipeline.solution.method, pipeline.mask.shape
    ('ls', (32, 32))
    >>> pipeline.configure(method="pls", p=3).solution.method
    'pls'
    >>> sorted(path.name for path in pipeline.write(tempfile.mkdtemp() + "/out").folder.glob("mesh.*"))
    ['mesh.glb', 'mesh.ply']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Capture,
        settings: Settings | None = None,
        *,
        control: Control = SILENT,
        deal: Deal | None = None,
        **changes: Any,
    ) -> None:
        super().__init__(path, settings or Settings(), control)
        self.deal = deal
        self.warnings: tuple[Finding, ...] = ()  # from the solution
        if changes:
            self.configure(**changes)

    def configure(self, **changes: Any) -> Pipeline:
        """Change settings by name; only the stages that depend on them are recomputed.

        Parameters
        ----------
        **changes
            Fields of :class:`~photostereo.pipeline.settings.Settings` and of its parts: ``mask="auto"``,
            ``method="ls"``, ``surface_method="robust"``, ``report=False``. Other names are parameters of the method.

        Returns
        -------
        Pipeline
            The same object.

        Raises
        ------
        ParameterError
            If neither the settings nor the method has that name, or a value is out of range.
        """
        self.settings = self.settings.changed(**self._with_parameters(changes))
        self.forget_stale()
        return self

    def _with_parameters(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Collect those changes that are parameters of the method under ``parameters``."""
        solving = self.settings.solving
        known = {name: value for name, value in changes.items() if name in FLAT}
        if not {"method", "prior", "parameters"} & changes.keys() and len(known) == len(changes):
            return changes
        method = find_method(known.get("method", solving.method), known.get("prior", solving.prior))
        # Parameters of another method have other meanings.
        kept = solving.parameters if not {"method", "prior"} & changes.keys() else {}
        given = {name: value for name, value in changes.items() if name not in FLAT}
        parameters = {**known.get("parameters", kept), **given}
        method.resolve(parameters)
        return {**known, "parameters": parameters}

    def check(self) -> None:
        """Check the settings before anything is read.

        Raises
        ------
        ParameterError
            For an unknown method, parameter or unit, or a checkpoint file that cannot be used.
        """
        solving = self.settings.solving
        find_method(solving.method, solving.prior).resolve(solving.parameters)
        budget_of(solving.memory)
        if self.settings.surface is not None:
            check_method(self.settings.surface.method)
        check_about(self.settings.output.about)
        read_about(self.path)
        if solving.checkpoint is not None:
            require_checkpoint(Path(solving.checkpoint))

    # Stages.

    @property
    def at_hand(self) -> Capture:
        """The capture in memory if it fits, else on disk."""
        return self.loaded if self._plan.loads or self.is_current("loaded") else self.capture

    @stage(after=("capture",))
    def diagnosis(self) -> Diagnosis:
        """Diagnosis of the capture, from all pixels or, if there are too many, from a sample."""
        capture = self.at_hand
        whole = capture.in_memory and is_diagnosed_whole(capture, self._plan.budget)
        capture = capture if whole else glance(capture, self.control)
        return diagnose(capture, control=self.control)

    @property
    def noise(self) -> NoiseEstimate:
        """The noise of the photographs, from the diagnosis."""
        return self.diagnosis.noise

    @stage(uses=("settings.solving",), after=("capture",))
    def solution(self) -> Reconstruction:
        """Normals and albedo."""
        solving = self.settings.solving
        self.require_memory()
        alike = ("method", "prior", "device", "strengths", "checkpoint", "resume")
        given = {name: getattr(solving, name) for name in alike} | dict(solving.parameters)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            memory, deal = self._plan.solving, self.deal
            result = solve(self.at_hand, memory=memory, deal=deal, control=self.control, **given)
        self.warnings = tuple(w.message.args[0] for w in caught if isinstance(w.message, ConvergenceWarning))
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        result = self._tinted(result)
        load = self.seconds["capture"] + self.seconds.get("loaded", 0.0)
        return replace(result, seconds={**result.seconds, "load": load})

    @stage(uses=("_integration",), after=("solution",))
    def surface(self) -> Surface:
        """Depth, integrated from the normals."""
        method, options = self._integration
        self.control.stage("surface")
        normals, mask = self.solution.normals, self.solution.mask
        options = {"camera": camera_of(self.capture), **options}
        return integrate(normals, mask, method=method, control=self.control, **options)

    @stage(after=("solution", "diagnosis"))
    def expected(self) -> ExpectedError | None:
        """The expected error of the solution, with its reasons."""
        capture, result = self.at_hand, self.solution
        if "spread" not in result.maps and (capture.mask.size > ENOUGH or not capture.in_memory):
            capture = glance(capture, self.control)
        return assess(result, capture, self.diagnosis.findings, self.control)

    def require_memory(self) -> None:
        """Raise a :class:`ParameterError` if solving and writing the capture needs more than the available memory."""
        require_feasible(self._plan, self.capture, self.method, self.settings)

    # Files.

    def write(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
        command: Sequence[str] | None = None,
    ) -> Written:
        """Write arrays, pictures, depth, meshes, page and ``summary.json``: all or nothing.

        Missing stages are computed first; an existing folder is reported before that.

        Parameters
        ----------
        out : the folder to create; by default named after the capture and the method
        force : replace an existing folder of results
        command : the command line, for the summary; by default that of this process

        Raises
        ------
        OutputError
            If the folder exists (and ``force`` is not given), contains anything not written by photostereo, or cannot
            be written.
        """
        with self.writing(out, force=force) as (folder, target):
            written = self.fill(folder, command=command)
        return replace(written, folder=target)

    @contextmanager
    def writing(
        self, out: str | os.PathLike[str] | None = None, *, force: bool = False
    ) -> Iterator[tuple[Path, Path]]:
        """Yield a folder to fill and its final path; it is moved there if the block ends without an exception."""
        share_one_heap()
        self.check()
        if budget_of(self.settings.solving.memory) > OF_THE_PROGRAM:
            import_ahead()
        target = Path(out).expanduser() if out is not None else self.default_folder
        with replacing_directory(target, force=force, keep=self.files_in_use) as folder:
            yield folder, target

    def fill(
        self,
        folder: Path,
        *,
        command: Sequence[str] | None = None,
        further: Callable[[], Mapping[str, Any]] | None = None,
    ) -> Written:
        """Write everything into an empty folder; ``further`` returns more facts for the summary at the end."""
        from photostereo.pipeline.folder import fill_results

        if self.settings.output.material is not None:
            from photostereo.results.tiling import largest_rectangle

            largest_rectangle(self.capture.mask)  # rejects a sample that is too small, up front
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # returned to the caller
            solution = self.solution
        expected = self.expected
        self.control.check()
        made = self._provenance(command)
        summary = fill_results(
            folder,
            self.at_hand,
            solution,
            self.settings,
            integrate=lambda: self.surface,
            made=made,
            further=further,
            expected=expected,
            overlap=self._plan.overlaps,
            control=self.control,
        )
        self.control.finish()
        return Written(folder, summary, self.warnings)

    @property
    def default_folder(self) -> Path:
        """Default folder for results, named after the capture and the method."""
        return Path(f"{folder_name(self.capture.name)}-{self.method.name}")

    @property
    def files_in_use(self) -> list[Path]:
        """The files that this pipeline reads or writes; results must not overwrite them."""
        if self.path is None:
            return []
        solving, reading = self.settings.solving, self.reading
        home = self.path if self.path.is_dir() else self.path.parent
        named = [*map(reading.path_of, NAMED_FILES), solving.resume, solving.parameters.get("dictionary")]
        paths = [Path(name) for name in named if isinstance(name, (str, os.PathLike))]
        used = [self.path, *(file for name in paths for file in (name, home / name) if exists(file))]
        return used if solving.checkpoint is None else [*used, Path(solving.checkpoint)]

    # Helpers.

    def _tinted(self, result: Reconstruction) -> Reconstruction:
        """Add the colors of the photographs to a result whose method used gray values."""
        source = self.capture.photographs
        if result.albedo.ndim == 3 or not isinstance(source, PhotographFiles) or not source.is_color:
            return result
        self.control.stage("colors", len(self.capture))
        with source.held():  # the colors do not depend on the mask
            return with_colors(result, self.capture, source.in_color(True).frames(self.control), self.control)

    @property
    def _integration(self) -> tuple[str, Mapping[str, Any]]:
        choice = self.settings.surface or SurfaceChoice()
        return choice.method, choice.options

    @property
    def _plan(self) -> Plan:
        return plan_solve(self.capture, self.method, self.settings)

    def _provenance(self, command: Sequence[str] | None) -> dict[str, Any] | None:
        if self.path is None:
            return None
        digests = self.opened.photographs.digests if self.alignment is not None else {}
        settings = replace(self.settings, reading=self.reading)
        return provenance(self.capture, self.path, settings, digests, command)


@cache
def import_ahead() -> None:
    """Import the modules in :data:`NEEDED` in a thread while the photographs are read."""

    def work() -> None:
        import_module(NEEDED[0]).nothing()
        for name in NEEDED[1:]:
            import_module(name)

    threading.Thread(target=work).start()
