"""``Pipeline``: one capture on its way from photographs to results."""

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

#: What a solve needs sooner or later and takes long to import.
NEEDED = ("photostereo.runtime.loops", "scipy.special", "scipy.ndimage", "photostereo.report.page")


@dataclass(frozen=True)
class Written:
    """What :meth:`Pipeline.write` has written."""

    folder: Path  #: the folder of the results
    summary: dict[str, Any]  #: what ``summary.json`` holds
    warnings: tuple[str, ...] = ()  #: what the user should know about the solve


class Pipeline(ReadingStages):
    """One capture on its way from photographs to results.

    Every stage is an attribute: it is computed when it is first asked for, kept, and computed again only if a setting
    that it depends on has changed. Another mask does not read the photographs again, another method does not measure
    the noise again.

    ``photographs`` → ``alignment`` → ``lights`` → ``mask`` → ``capture`` → ``diagnosis`` and ``noise``, ``solution`` →
    ``surface`` → :meth:`write`

    Parameters
    ----------
    path : path or Capture
        The folder or file of a capture, or a capture in memory.
    settings : Settings, optional
        How it is read, solved and written.
    control : Control
        Receives progress and can cancel the work, at any stage.
    deal : callable, optional
        Where the parts of a large capture are solved; see :func:`photostereo.solve`.
    **changes
        Single settings by name, as for :meth:`configure`.

    Examples
    --------
    >>> import tempfile
    >>> import photostereo as ps
    >>> from photostereo.capture import write_archive
    >>> file = write_archive(ps.render_scene("sphere", size=32), tempfile.mkdtemp() + "/sphere.npz")
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
        self.warnings: tuple[Finding, ...] = ()  # of the solution
        if changes:
            self.configure(**changes)

    def configure(self, **changes: Any) -> Pipeline:
        """Change settings by name; only the stages that depend on them are computed again.

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
            If neither the settings nor the method have something of that name, or a value is out of range.
        """
        self.settings = self.settings.changed(**self._with_parameters(changes))
        self.forget_stale()
        return self

    def _with_parameters(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The changes, those that are parameters of the method gathered under ``parameters``."""
        solving = self.settings.solving
        known = {name: value for name, value in changes.items() if name in FLAT}
        if not {"method", "prior", "parameters"} & changes.keys() and len(known) == len(changes):
            return changes
        method = find_method(known.get("method", solving.method), known.get("prior", solving.prior))
        # Those of another method mean something else.
        kept = solving.parameters if not {"method", "prior"} & changes.keys() else {}
        given = {name: value for name, value in changes.items() if name not in FLAT}
        parameters = {**known.get("parameters", kept), **given}
        method.resolve(parameters)
        return {**known, "parameters": parameters}

    def check(self) -> None:
        """Raise what is wrong with the settings, before anything is read.

        Raises
        ------
        ParameterError
            For an unknown method, parameter or unit, or a file that cannot be the state of a solve.
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

    # The stages.

    @property
    def at_hand(self) -> Capture:
        """The capture in memory if it fits, else on disk."""
        return self.loaded if self._plan.loads or self.is_current("loaded") else self.capture

    @stage(after=("capture",))
    def diagnosis(self) -> Diagnosis:
        """What is good and bad about the capture, from all pixels or, if they are too many, from a part of them."""
        capture = self.at_hand
        whole = capture.in_memory and is_diagnosed_whole(capture, self._plan.budget)
        capture = capture if whole else glance(capture, self.control)
        return diagnose(capture, control=self.control)

    @property
    def noise(self) -> NoiseEstimate:
        """The noise of the photographs, as the diagnosis has it."""
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
        """Raise a :class:`ParameterError` if the capture cannot be solved and written within the memory."""
        require_feasible(self._plan, self.capture, self.method, self.settings)

    # Files.

    def write(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
        command: Sequence[str] | None = None,
    ) -> Written:
        """Write arrays, pictures, depth, meshes, page and ``summary.json``: complete or not at all.

        Stages that are missing are computed first; a folder that is in the way is reported before that.

        Parameters
        ----------
        out : the folder to make; by default the names of the capture and the method
        force : replace an existing folder of results
        command : the words that started it, for the summary; by default those of this process

        Raises
        ------
        OutputError
            If the folder exists (and ``force`` is not given), holds anything that photostereo did not write, or cannot
            be written.
        """
        with self.writing(out, force=force) as (folder, target):
            written = self.fill(folder, command=command)
        return replace(written, folder=target)

    @contextmanager
    def writing(
        self, out: str | os.PathLike[str] | None = None, *, force: bool = False
    ) -> Iterator[tuple[Path, Path]]:
        """A folder to fill, and the one that it becomes when the block ends without an exception."""
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
        """Write everything into an empty folder; ``further`` gives more facts for the summary at the end."""
        from photostereo.pipeline.folder import fill_results

        if self.settings.output.material is not None:
            from photostereo.results.tiling import largest_rectangle

            largest_rectangle(self.capture.mask)  # a sample that is too small is refused before the work
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # they are returned
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
        """Where results go if nobody says: the names of the capture and the method."""
        return Path(f"{folder_name(self.capture.name)}-{self.method.name}")

    @property
    def files_in_use(self) -> list[Path]:
        """The files that this work reads or writes on the way: results may not take their place."""
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
        """A result in the colors of the photographs, though the method looked at gray values."""
        source = self.capture.photographs
        if result.albedo.ndim == 3 or not isinstance(source, PhotographFiles) or not source.is_color:
            return result
        self.control.stage("colors", len(self.capture))
        with source.held():  # another mask has the same colors
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
    """Import what is :data:`NEEDED` in a thread of its own, while the photographs are read."""

    def work() -> None:
        import_module(NEEDED[0]).nothing()
        for name in NEEDED[1:]:
            import_module(name)

    threading.Thread(target=work).start()
