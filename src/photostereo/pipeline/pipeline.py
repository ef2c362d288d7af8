"""``Pipeline``: all stages of one capture, from photographs to results."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os.path import exists
from pathlib import Path
from typing import Any, NoReturn

from photostereo.capture import Capture
from photostereo.capture.options import NAMED_FILES
from photostereo.capture.source import Source
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ConvergenceWarning, ParameterError, require_known
from photostereo.core.findings import Finding
from photostereo.diagnosis.diagnose import Diagnosis, diagnose
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.diagnosis.noise import NoiseEstimate
from photostereo.io.atomic import replacing_directory, require_free
from photostereo.io.memory import share_one_heap
from photostereo.photographs.developed import DevelopedFrames
from photostereo.pipeline import budget
from photostereo.pipeline.capture_stages import DECIDING, ReadingStages
from photostereo.pipeline.parts import make_part
from photostereo.pipeline.settings import FLAT, Settings
from photostereo.pipeline.stage import stage
from photostereo.report.about import check_about, read_about
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.estimate_error import assess
from photostereo.solver.finish import with_colors
from photostereo.solver.methods import find_method
from photostereo.solver.near import camera_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import Deal, SolvePlan, solve_planned
from photostereo.solver.state import require_checkpoint
from photostereo.surface import Surface, integrate
from photostereo.surface.integration import check_method


@dataclass(frozen=True)
class Written:
    """The output of :meth:`Pipeline.write`."""

    folder: Path  #: the folder of the results
    summary: dict[str, Any]  #: the content of ``summary.json``
    warnings: tuple[Finding, ...] = ()  #: warnings about the solve


class Pipeline(ReadingStages):
    """All stages of one capture, from photographs to results.

    Every stage is an attribute: it is computed on first access, kept, and recomputed only if a setting that it
    depends on changes. A new mask does not read the photographs again, and a new method does not measure
    the noise again.

    ``source`` → ``opened`` and ``alignment`` → ``lighting`` → ``capture`` with ``lights`` and ``mask`` → ``diagnosis`` and
    ``noise``, ``solution`` → ``surface``, ``expected`` → :meth:`write`

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
    >>> from photostereo.example import owl
    >>> file = write_archive(owl(25.0, step=8), tempfile.mkdtemp() + "/owl.npz")
    >>> pipeline = ps.Pipeline(file, method="ls", report=False)
    >>> pipeline.solution.method, pipeline.mask.shape
    ('ls', (50, 50))
    >>> pipeline.configure(method="pls", parameters={"p": 3}).solution.method
    'pls'
    >>> sorted(path.name for path in pipeline.write(tempfile.mkdtemp() + "/out").folder.glob("mesh.*"))
    ['mesh.glb', 'mesh.ply']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Capture | Source,
        settings: Settings | None = None,
        *,
        control: Control = SILENT,
        deal: Deal | None = None,
        **changes: Any,
    ) -> None:
        super().__init__(path, settings or Settings(), control)
        self.deal = deal
        if changes:
            self.configure(**changes)

    def configure(self, **changes: Any) -> Pipeline:
        """Change settings by name; only the stages that depend on them are recomputed.

        Parameters
        ----------
        **changes
            Fields of :class:`~photostereo.pipeline.settings.Settings` and of its parts: ``mask="auto"``,
            ``method="ls"``, ``parameters={"max_iter": 5}``, ``surface_method="robust"``, ``report=False``.
            A change of method or prior without ``parameters`` resets the parameters.

        Returns
        -------
        Pipeline
            The same object.

        Raises
        ------
        ParameterError
            If there is no such setting or parameter, or a value is out of range.
        """
        if {"method", "prior"} & changes.keys():
            # Parameters of another method have other meanings.
            changes.setdefault("parameters", {})
        unknown = [name for name in changes if name not in FLAT]
        if unknown:
            _refuse_setting(unknown[0], changes, self.settings)
        before = self.settings
        self.settings = before.changed(**changes)
        try:
            self.request  # noqa: B018  (a stage, which checks method and parameters)
        except ParameterError:
            self.settings = before
            raise
        self._reading = None
        self.forget_stale()
        return self

    def check(self) -> None:
        """Raise a :class:`ParameterError` for an unknown method, parameter or unit, or a checkpoint that cannot be used."""
        settings = self.settings
        self.request  # noqa: B018  (a stage, which checks method, parameters and memory)
        if settings.surface is not None:
            check_method(settings.surface.method)
        check_about(settings.about)
        read_about(self.path)
        if settings.checkpoint is not None:
            require_checkpoint(Path(settings.checkpoint))

    @property
    def at_hand(self) -> Capture:
        """The capture in memory if it fits, else on disk."""
        if self.plan.loads or self.is_current("loaded"):
            return self.loaded
        return self.capture

    def _handed_over(self) -> Capture:
        """Return the capture in memory if it fits, and keep no reference to its photographs."""
        at_hand = self.at_hand
        self.forget("loaded", "stack")
        return at_hand

    @stage(after=("capture",))
    def examined(self) -> Diagnosis:
        """The diagnosis that ``info`` and the app show, with little memory: of a large capture, from every n-th pixel."""
        if budget.is_diagnosed_whole(self.capture, budget.EXAMINED):
            return self.diagnosis
        return diagnose(budget.glance(self.capture, self.control), control=self.control)

    # Results.

    @stage(after=("capture",))
    def diagnosis(self) -> Diagnosis:
        """Diagnosis of the capture, from all pixels or, if there are too many, from a sample."""
        capture = self.at_hand
        if not capture.in_memory or not budget.is_diagnosed_whole(capture, self.plan.budget):
            capture = budget.glance(capture, self.control)
        return diagnose(capture, control=self.control)

    @property
    def noise(self) -> NoiseEstimate:
        """The noise of the photographs, from the diagnosis."""
        return self.diagnosis.noise

    @stage(
        uses=(*DECIDING, "settings.strengths", "settings.checkpoint", "settings.resume"),
        after=("capture",),
    )
    def solution(self) -> Reconstruction:
        """Normals and albedo."""
        bands = self.bands
        plan = self.plan
        settings = self.settings
        result = solve_planned(
            self.at_hand,
            SolvePlan(plan.method, plan.values, plan.device, bands, settings.strengths, plan.why),
            control=self.control,
            resume=None if settings.resume is None else Path(settings.resume),
            checkpoint=None if settings.checkpoint is None else Path(settings.checkpoint),
            deal=self.deal,
        )
        source = self.capture.photographs
        if result.albedo.ndim == 2 and isinstance(source, DevelopedFrames) and source.is_color:
            self.control.stage("colors", len(self.capture))
            with source.held():  # the colors do not depend on the mask
                colored = replace(source, color=True).frames(self.control)
                result = with_colors(result, self.capture, colored, self.control)
        load = self.seconds["capture"] + self.seconds.get("loaded", 0.0)
        return replace(result, seconds={**result.seconds, "load": load})

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Warnings about the solution: whether a model without a prior did not converge."""
        if self.method.has_prior or self.solution.status != "iterations":
            return ()
        return (Finding("model-not-converged", iterations=self.solution.iterations),)

    @stage(uses=("_integration",), after=("solution",))
    def surface(self) -> Surface:
        """Depth, integrated from the normals."""
        method, options = self._integration
        self.control.stage("surface")
        normals = self.solution.normals
        mask = self.solution.mask
        options = {"camera": camera_of(self.capture), **options}
        return integrate(normals, mask, method=method, control=self.control, **options)

    @stage(after=("solution", "diagnosis"))
    def assessment(self) -> tuple[ExpectedError | None, tuple[Finding, ...]]:
        """The expected error of the solution, and the failure if it cannot be estimated."""
        failures: list[Finding] = []
        expected = make_part("expected error", self._assessed, failures)
        return expected, tuple(failures)

    @property
    def expected(self) -> ExpectedError | None:
        """The expected error of the solution, with its reasons; None if it cannot be estimated."""
        return self.assessment[0]

    def _assessed(self) -> ExpectedError | None:
        capture = self.at_hand
        result = self.solution
        if "spread" not in result.maps and (
            capture.mask.size > budget.ENOUGH or not capture.in_memory
        ):
            capture = budget.glance(capture, self.control)
        return assess(result, capture, self.diagnosis.findings, self.control)

    def require_memory(self) -> None:
        """Raise a :class:`ParameterError` if solving and writing the capture needs more than the available memory."""
        self.bands  # noqa: B018  (a stage: computed on access)

    # Files.

    def write(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
        command: Sequence[str] | None = None,
    ) -> Written:
        """Write arrays, pictures, depth, meshes, page and ``summary.json``: all or nothing.

        Missing stages are computed first. An existing folder is reported before that; only if ``method`` is ``"auto"`` and
        there is no ``out``, and the capture is very large, its name is not known before the photographs are read.
        Photographs in memory are released; a stage that needs them again reads them again.

        Parameters
        ----------
        out : path, optional
            The folder to create; by default named after the capture and the method.
        force : bool
            Replace an existing folder of results.
        command : sequence of str, optional
            The command line, for the summary; by default that of this process.

        Raises
        ------
        OutputError
            If the folder exists (and ``force`` is not given), contains anything not written by photostereo, or cannot
            be written.
        """
        with self.writing(out, force=force) as (folder, target):
            written = self.fill(folder, command=command, release=True)
        return replace(written, folder=target)

    @contextmanager
    def writing(
        self, out: str | os.PathLike[str] | None = None, *, force: bool = False
    ) -> Iterator[tuple[Path, Path]]:
        """Yield a folder to fill and its final path; it is moved there if the block ends without an exception."""
        share_one_heap()
        self.check()
        target = self._default_target(force) if out is None else Path(out).expanduser()
        with replacing_directory(target, force=force, keep=self.files_in_use) as folder:
            yield folder, target

    def _default_target(self, force: bool) -> Path:
        """Return the folder named after the capture and the method; report early that it exists."""
        likely = self.likely_output()
        if likely is not None:
            require_free(likely, force=force)
        return Path(self.plan.output)

    def fill(
        self,
        folder: Path,
        *,
        command: Sequence[str] | None = None,
        further: Callable[[], Mapping[str, Any]] | None = None,
        release: bool = False,
        began: float | None = None,
    ) -> Written:
        """Write everything into an empty folder.

        Once the capture is solved, the result is written whatever else fails: see
        :class:`~photostereo.pipeline.write_results.ResultWriter`.

        Parameters
        ----------
        folder : path
            The folder.
        command : sequence of str, optional
            The command line, for the summary; by default that of this process.
        further : callable, optional
            Returns more facts for the summary, at the end.
        release : bool
            Do not keep the photographs in memory.
        began : float, optional
            When the work began, a value of :func:`time.perf_counter`; by default now.
        """
        from photostereo.pipeline.write_results import ResultWriter

        since = time.perf_counter() if began is None else began
        if self.settings.material is not None:
            from photostereo.results.tiling import largest_rectangle

            largest_rectangle(self.capture.mask)  # rejects a sample that is too small, up front
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # returned to the caller
            solution = self.solution
        expected, unassessed = self.assessment
        failures = [*unassessed]
        made = make_part("provenance", lambda: self._provenance(command), failures)
        self.control.check()
        releases = release and not self.capture.in_memory
        writer = ResultWriter(
            folder,
            solution,
            self.settings,
            lambda: self.surface,
            capture=self._handed_over() if releases else self.at_hand,
            on_disk=self.capture if releases else None,
            expected=expected,
            overlaps=self.plan.overlaps,
            control=self.control,
            failures=failures,
        )
        summary = writer.write(made=made, further=further, since=since)
        return Written(folder, summary, (*self.warnings, *failures))

    def _provenance(self, command: Sequence[str] | None) -> dict[str, Any] | None:
        """How to repeat the result; None for a capture in memory."""
        from photostereo.pipeline.write_results import provenance

        if self.path is None:
            return None
        source = self.opened.source
        digests = {file: source.pictures.digest(file) for file in source.files}
        settings = replace(self.settings, reading=self.reading)
        return provenance(self.capture, self.path, settings, digests, command)

    @property
    def files_in_use(self) -> list[Path]:
        """The files that this pipeline reads or writes; results must not overwrite them."""
        if self.path is None:
            return []
        settings = self.settings
        reading = self.reading
        home = self.path if self.path.is_dir() else self.path.parent
        named = [
            *map(reading.path_of, NAMED_FILES),
            settings.resume,
            *settings.parameters.values(),  # one may name a file, of weights or of atoms
        ]
        paths = [Path(name) for name in named if isinstance(name, (str, os.PathLike))]
        used = [
            self.path,
            *(file for name in paths for file in (name, home / name) if exists(file)),
        ]
        if settings.checkpoint is None:
            return used
        return [*used, Path(settings.checkpoint)]

    @property
    def _integration(self) -> tuple[str, Mapping[str, Any]]:
        choice = self.settings.surface or SurfaceChoice()
        return choice.method, choice.options


def _refuse_setting(name: str, changes: Mapping[str, Any], settings: Settings) -> NoReturn:
    """Raise a :class:`ParameterError` for a name that is no setting; it may be a parameter of the method."""
    method = find_method(
        changes.get("method", settings.method), changes.get("prior", settings.prior)
    )
    if any(parameter.name == name for parameter in method.parameters):
        raise ParameterError(
            f"{name} is a parameter of the method {method.name}, not a setting: "
            f'write parameters={{"{name}": {changes[name]!r}}}.',
            code="parameter-not-a-setting",
            name=name,
        )
    require_known(name, FLAT, "setting")
    raise AssertionError(name)
