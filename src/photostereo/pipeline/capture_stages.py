"""The first half of a pipeline: from files to photographs, lights, mask and a capture."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from photostereo.capture import Capture
from photostereo.capture.assemble import build_capture
from photostereo.capture.capture import photographs_of_seed
from photostereo.capture.edits import with_edits
from photostereo.capture.examine import Opened, examine
from photostereo.capture.lighting import Lighting, find_lights
from photostereo.capture.loading import find_source
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source, source_of
from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Float32
from photostereo.core.errors import PhotostereoError
from photostereo.core.findings import Finding
from photostereo.io.memory import memory_limit
from photostereo.io.names import folder_name
from photostereo.lights.lights import Lights
from photostereo.photographs.alignment.alignment import Alignment
from photostereo.photographs.developed import DevelopedFrames
from photostereo.pipeline.budget import require_feasible
from photostereo.pipeline.plan import Plan, Request
from photostereo.pipeline.settings import Settings
from photostereo.pipeline.stage import Staged, stage
from photostereo.solver.auto_method import choose
from photostereo.solver.methods import Method
from photostereo.solver.tiles import Band, choose_bands, raise_not_divisible

#: Options that do not matter until the capture is put together.
_LATER: dict[str, Any] = {
    "mask": None,
    "color": False,
    "moved_lights": (),
    "edits": False,
    "subject": "auto",
}

#: Settings that decide how a capture is solved.
DECIDING = (
    "settings.method",
    "settings.prior",
    "settings.parameters",
    "settings.device",
    "settings.memory",
)
#: Settings that decide how much memory writing takes, and whether the capture is solved in parts.
_WRITING = ("settings.surface", "settings.report", "settings.checkpoint", "settings.resume")


class ReadingStages(Staged):
    """The stages that read a capture from ``path`` or from a source, or take a capture in memory."""

    def __init__(
        self,
        path: str | os.PathLike[str] | Capture | Source,
        settings: Settings,
        control: Control,
    ) -> None:
        super().__init__()
        self.path: Path | None = None
        self._given: Capture | None = None  # complete
        self._given_source: Source | None = None  # to be examined
        if isinstance(path, Capture):
            self._given = path
        elif isinstance(path, Source):
            self._given_source = path
        else:
            self.path = Path(path).expanduser()
        self.settings = settings
        self.control = control
        self._reading: ReadOptions | None = None

    @property
    def reading(self) -> ReadOptions:
        """The reading options: the settings, filled in from the corrections stored beside the capture."""
        if self._reading is None:
            own = self.settings.reading
            self._reading = own if self.path is None else with_edits(self.path, own)
        return self._reading

    @stage(uses=(*DECIDING, "settings.reading.color", "settings.images", "settings.seed"))
    def request(self) -> Request:
        """What the settings alone decide: method, color, memory."""
        return Request.of(self.settings)

    @stage(uses=("_finding",))
    def source(self) -> Source:
        """The photographs of the capture and what lies beside them, before any is decoded."""
        if self._given_source is not None:
            return self._given_source
        if self._given is not None:
            return source_of(self._given, Path(self._given.name), "memory")
        assert self.path is not None
        self.control.stage("photographs")
        with memory_limit(self.request.memory):
            return find_source(self.path, self._finding)

    @stage(after=("source",))
    def opened(self) -> Opened:
        """The photographs, each examined once: without unusable ones, and with camera movement undone."""
        return examine(self.source, self._finding, self.control)

    @property
    def alignment(self) -> Alignment | None:
        """How far the camera moved between photographs, and how much of it was undone; None if unknown or not wanted."""
        if self._given is not None:
            return None
        return self.opened.alignment

    @stage(uses=("_calibrating",), after=("opened",))
    def unmoved(self) -> Lighting:
        """The lights as found, before any are moved."""
        return find_lights(self.opened, self._calibrating, self.control)

    @property
    def lighting(self) -> Lighting:
        """The lights, from a light file or a ball, found in the whole photographs; unknown without either."""
        return self.unmoved.moved(self.opened.source, self.reading)

    @stage(uses=("_scaled", "settings.images", "settings.seed", "_color"))
    def capture(self) -> Capture:
        """Photographs, lights and mask; the photographs stay on disk if the layout allows it."""
        color, may_be_gray = self._color
        capture = self._read(color=color)
        if may_be_gray and capture.is_color and not self._method_for(capture).sees_colors:
            return self._read(
                color=False
            )  # only now is it known that the method does not use colors
        return capture

    def _read(self, *, color: bool) -> Capture:
        images = self.settings.images
        reading = replace(self._scaled, color=color)
        try:
            if self._given is not None:
                capture = self._given
            else:
                capture = build_capture(self.opened, self.lighting, reading, control=self.control)
        except PhotostereoError as problem:
            raise problem.about(self.path or "") from problem
        if images is None:
            return capture
        return capture.take(images, photographs_of_seed(self.settings.seed))

    @property
    def lights(self) -> Lights:
        """The lights: directions and strengths."""
        return self.capture.lights

    @property
    def mask(self) -> BoolArray:
        """(H, W), True on the object."""
        return self.capture.mask

    @stage(uses=("_photographs_key",))
    def stack(self) -> Float32:
        """All photographs in memory; they do not depend on the mask."""
        source = self.capture.photographs
        if isinstance(source, DevelopedFrames) and source.is_color and not source.color:
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

    def load_photographs(self) -> None:
        """Hold all photographs in memory, whatever the memory limit."""
        self.loaded  # noqa: B018  (a stage: computed on access)

    @stage(uses=(*DECIDING, *_WRITING), after=("capture",))
    def plan(self) -> Plan:
        """How the capture is solved and written: method, device, memory, output."""
        return Plan.of(self.capture, self.request, self.settings)

    @stage(uses=(*DECIDING, *_WRITING), after=("capture",))
    def bands(self) -> list[Band] | None:
        """The parts in which the capture is solved; None for all at once.

        Raises
        ------
        ParameterError
            If solving or writing needs more than the available memory.
        """
        plan = self.plan
        require_feasible(plan, self.capture, self.settings)
        if self.settings.solves_at_once:
            return None
        if not plan.method.model.divisible and not plan.loads:
            raise_not_divisible(plan.method)
        return choose_bands(self.capture, plan.method, plan.values, plan.device, plan.memory)

    @property
    def method(self) -> Method:
        """The method that solves this capture; ``auto`` depends on its size."""
        return self.plan.method

    @property
    def why(self) -> Finding | None:
        """Why that method was chosen, for a keyword such as ``auto``."""
        return self.plan.why

    def likely_output(self) -> str | None:
        """The name of the folder of results, as far as it is known before a photograph is decoded.

        None if ``auto`` has to see the mask first. If photographs are left out later, the name may still be another.
        """
        source = self.source
        request = self.request
        if not request.is_open:
            return f"{folder_name(source.name)}-{request.method.name}"
        if self._given is not None or not source.files:
            return None
        frame = source.pictures.head(source.files[0]).frame
        if frame is None:
            return None
        count = len(source.files)
        if self.settings.images is not None:
            count = min(count, self.settings.images)
        names = {choose("auto", pixels, count).name for pixels in (0, frame[0] * frame[1])}
        if len(names) > 1:
            return None
        method, _ = request.method_for(0, count, self.settings.prior)
        return f"{folder_name(source.name)}-{method.name}"

    # What the stages depend on.

    @property
    def _color(self) -> tuple[bool, bool]:
        """Whether to read photographs in color, and whether to go back to gray if the method does not use color."""
        if self._given is not None:
            return False, False
        return self.request.color, self.request.may_be_gray

    @property
    def _finding(self) -> ReadOptions:
        """Options for finding and opening files: whether a ball is marked matters, its position does not."""
        reading = replace(self.reading, pixel_size=None)
        circle = None if reading.circle is None else (0.0, 0.0, 1.0)
        return replace(reading, circle=circle, crop=None, scale=1.0, **_LATER)

    @property
    def _scaled(self) -> ReadOptions:
        """Options for reading the capture: the pixel size matters only for light positions in millimeters."""
        if self.path is None or self.reading.pixel_size is None:
            return self.reading
        table = self.source.lights
        if table is not None and table.millimeters is not None:
            return self.reading
        return replace(self.reading, pixel_size=None)

    @property
    def _calibrating(self) -> ReadOptions:
        """Options for finding lights, before single ones are moved."""
        return replace(self._scaled, **_LATER)

    @property
    def _photographs_key(self) -> Any:
        """Everything that determines the capture except the mask."""
        settings = self.settings
        reading = replace(self._scaled, mask=None, subject="auto", edits=False)
        return reading, settings.images, settings.seed, self._color

    def _method_for(self, capture: Capture) -> Method:
        settings = self.settings
        return self.request.method_for(capture.pixel_count, len(capture), settings.prior)[0]
