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

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.capture.assemble import put_together
from photostereo.capture.capture import photographs_of_seed
from photostereo.capture.edits import with_edits
from photostereo.capture.lighting import Lighting, find_lights
from photostereo.capture.loading import find_capture, read_lazily
from photostereo.capture.opening import Found, Opened, open_capture
from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.core.errors import ConvergenceWarning, PhotostereoError
from photostereo.core.findings import Finding
from photostereo.diagnosis.diagnose import Diagnosis, diagnose
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.diagnosis.noise import NoiseEstimate
from photostereo.io.atomic import replacing_directory
from photostereo.io.memory import memory_limit, share_one_heap
from photostereo.io.names import folder_name
from photostereo.io.safe import exists
from photostereo.lights.lights import Lights
from photostereo.photographs.alignment.alignment import Alignment
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
from photostereo.pipeline.settings import FLAT, Settings
from photostereo.pipeline.stage import Staged, comparable, stage
from photostereo.report.about import check_about, read_about
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.finish import with_colors
from photostereo.solver.methods import Method, find_method, method_for
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
#: Options that do not matter until the capture is put together.
_LATER: dict[str, Any] = {"mask": None, "color": False, "moved_lights": ()}


@dataclass(frozen=True)
class Written:
    """The output of :meth:`Pipeline.write`."""

    folder: Path  #: the folder of the results
    summary: dict[str, Any]  #: the content of ``summary.json``
    warnings: tuple[str, ...] = ()  #: warnings about the solve


class Pipeline(Staged):
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
    >>> from photostereo.example import owl
    >>> file = write_archive(owl(25.0, step=8), tempfile.mkdtemp() + "/owl.npz")
    >>> pipeline = ps.Pipeline(file, method="ls", report=False)
    >>> pipeline.solution.method, pipeline.mask.shape
    ('ls', (50, 50))
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
        super().__init__()
        self.path: Path | None = None
        self._given: Any = path  # a capture in memory
        if isinstance(path, (str, os.PathLike)):
            self.path, self._given = Path(path).expanduser(), None
        self.settings, self.control, self.deal = settings or Settings(), control, deal
        self.warnings: tuple[Finding, ...] = ()  # from the solution
        self._reading: ReadOptions | None = None
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
        solving = self.settings.solving
        known = {name: value for name, value in changes.items() if name in FLAT}
        given = {name: value for name, value in changes.items() if name not in FLAT}
        if given or {"method", "prior", "parameters"} & known.keys():
            method = find_method(known.get("method", solving.method), known.get("prior", solving.prior))
            # Parameters of another method have other meanings.
            kept = {} if {"method", "prior"} & known.keys() else solving.parameters
            known["parameters"] = {**known.get("parameters", kept), **given}
            method.resolve(known["parameters"])
        self.settings = self.settings.changed(**known)
        self._reading = None
        self.forget_stale()
        return self

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

    # Reading.

    @property
    def reading(self) -> ReadOptions:
        """The reading options: the settings, filled in from the corrections stored beside the capture."""
        if self._reading is None:
            own = self.settings.reading
            self._reading = own if self.path is None else with_edits(self.path, own)
        return self._reading

    @stage(uses=("_finding",))
    def found(self) -> Found | Capture:
        """The files of the capture; the capture itself if its layout can only read everything at once."""
        assert self.path is not None
        self.control.stage("photographs")
        with memory_limit(budget_of(self.settings.solving.memory)):
            return find_capture(self.path, self._finding)

    @stage(after=("found",))
    def opened(self) -> Opened:
        """The photographs, each examined once: without unusable ones, and with camera movement undone."""
        found: Any = self.found
        return open_capture(found, self._finding, self.control)

    @property
    def alignment(self) -> Alignment | None:
        """How far the camera moved between photographs, and how much of it was undone; None if unknown."""
        return self.opened.alignment if isinstance(self.found, Found) else None

    @stage(uses=("_calibrating",), after=("opened",))
    def unmoved(self) -> Lighting:
        """The lights as found, before any are moved."""
        return find_lights(self.opened, self._calibrating, self.control)

    @property
    def lighting(self) -> Lighting:
        """The lights, from a light file or a ball, found in the whole photographs; unknown without either."""
        return self.unmoved.moved(self.opened.found, self.reading)

    @stage(uses=("_scaled", "settings.images", "settings.seed", "_color"))
    def capture(self) -> Capture:
        """Photographs, lights and mask; the photographs stay on disk if the layout allows it."""
        color, may_be_gray = self._color
        capture = self._read(color=color)
        if may_be_gray and capture.is_color and not self._method_for(capture)[0].sees_colors:
            return self._read(color=False)  # only now is it known that the method does not use colors
        return capture

    def _read(self, *, color: bool) -> Capture:
        images = self.settings.images
        capture: Capture = self._given
        if self.path is not None:
            reading = replace(self._scaled, color=color)
            try:
                if isinstance(self.found, Found):
                    capture = put_together(self.opened, self.lighting, reading, control=self.control)
                elif comparable(self._finding) == comparable(reading):  # an archive is already complete
                    capture = self.found
                else:
                    with memory_limit(budget_of(self.settings.solving.memory)):
                        capture = read_lazily(self.path, reading, self.control)
            except PhotostereoError as problem:
                raise problem.about(self.path) from problem
        return capture if images is None else capture.take(images, photographs_of_seed(self.settings.seed))

    @property
    def lights(self) -> Lights:
        """The lights: directions and strengths."""
        return self.capture.lights

    @property
    def mask(self) -> BoolArray:
        """(H, W), True on the object."""
        return self.capture.mask

    @stage(uses=("_photographs_key",))
    def stack(self) -> NDArray[np.float32]:
        """All photographs in memory; they do not depend on the mask."""
        source = self.capture.photographs
        if isinstance(source, PhotographFiles) and source.is_color and not source.color:
            with source.held():  # for the colors of the albedo
                return source.all(self.control)
        return source.all(self.control)

    @stage(after=("capture",))
    def loaded(self) -> Capture:
        """The capture with its photographs in memory."""
        capture = self.capture
        if capture.in_memory:
            return capture
        # With another mask, ``auto`` may select another method, which may differ in its use of color.
        fits = self.stack.shape == capture.photographs.shape
        return capture.loaded(self.control, self.stack if fits else None)

    @property
    def at_hand(self) -> Capture:
        """The capture in memory if it fits, else on disk."""
        return self.loaded if self._plan.loads or self.is_current("loaded") else self.capture

    @property
    def method(self) -> Method:
        """The method that solves this capture; ``auto`` depends on its size."""
        return self._method_for(self.capture)[0]

    @property
    def why(self) -> str:
        """Why that method was chosen, for a keyword such as ``auto``."""
        return self._method_for(self.capture)[1]

    # Results.

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
        source = self.capture.photographs
        if result.albedo.ndim == 2 and isinstance(source, PhotographFiles) and source.is_color:
            self.control.stage("colors", len(self.capture))
            with source.held():  # the colors do not depend on the mask
                colored = replace(source, color=True).frames(self.control)
                result = with_colors(result, self.capture, colored, self.control)
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
        from photostereo.pipeline.folder import fill_results, provenance

        if self.settings.output.material is not None:
            from photostereo.results.tiling import largest_rectangle

            largest_rectangle(self.capture.mask)  # rejects a sample that is too small, up front
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # returned to the caller
            solution = self.solution
        expected, made = self.expected, None
        self.control.check()
        if self.path is not None:
            digests = self.opened.photographs.digests if self.alignment is not None else {}
            settings = replace(self.settings, reading=self.reading)
            made = provenance(self.capture, self.path, settings, digests, command)
        summary = fill_results(
            folder,
            self.at_hand,
            solution,
            self.settings,
            integrated=lambda: self.surface,
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

    # What the stages depend on.

    @property
    def _color(self) -> tuple[bool, bool]:
        """Whether to read photographs in color, and whether to go back to gray if the method does not use color."""
        if self.path is None:
            return False, False
        asked, solving = self.settings.reading.color, self.settings.solving
        sees = find_method(solving.method, solving.prior).sees_colors
        return asked or sees, solving.method == "auto" and not asked

    @property
    def _finding(self) -> ReadOptions:
        """Options for finding and opening files: whether a ball is marked matters, its position does not.

        A single file (an archive) is read whole.
        """
        reading = replace(self.reading, pixel_size=None)
        if self.path is not None and self.path.is_file():
            return replace(reading, color=self._color[0])
        circle = None if reading.circle is None else (0.0, 0.0, 1.0)
        return replace(reading, circle=circle, crop=None, scale=1.0, **_LATER)

    @property
    def _scaled(self) -> ReadOptions:
        """Options for reading the capture: the pixel size matters only for light positions in millimeters."""
        if self.path is None or self.reading.pixel_size is None:
            return self.reading
        counts = getattr(getattr(self.found, "lights", None), "millimeters", None) is not None
        return self.reading if counts else replace(self.reading, pixel_size=None)

    @property
    def _calibrating(self) -> ReadOptions:
        """Options for finding lights, before single ones are moved."""
        return replace(self._scaled, **_LATER)

    @property
    def _photographs_key(self) -> Any:
        """Everything that determines the capture except the mask."""
        return replace(self._scaled, mask=None), self.settings.images, self.settings.seed, self._color

    @property
    def _integration(self) -> tuple[str, Mapping[str, Any]]:
        choice = self.settings.surface or SurfaceChoice()
        return choice.method, choice.options

    @property
    def _plan(self) -> Plan:
        return plan_solve(self.capture, self.method, self.settings)

    def _method_for(self, capture: Capture) -> tuple[Method, str]:
        return method_for(capture, self.settings.solving.method, self.settings.solving.prior)


@cache
def import_ahead() -> None:
    """Import the modules in :data:`NEEDED` in a thread while the photographs are read."""

    def work() -> None:
        import_module(NEEDED[0]).nothing()
        for name in NEEDED[1:]:
            import_module(name)

    threading.Thread(target=work).start()
