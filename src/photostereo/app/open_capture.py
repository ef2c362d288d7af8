"""A capture that is open in a worker: its small copies, and what is known of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.app.findings import findings_of, lights_facts, original
from photostereo.app.small_copies import CopiesPipeline, SmallCopies, small_name
from photostereo.capture import Capture
from photostereo.capture.edits import Edits, read_edits
from photostereo.capture.layouts.folder import find_alone
from photostereo.capture.loading import find_source
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.capture.source import Source
from photostereo.core.conventions import BoolArray, encode_normals
from photostereo.core.errors import PhotostereoError
from photostereo.core.findings import Subject, as_finding, sentences
from photostereo.io.atomic import write_bytes
from photostereo.io.png import encode_png
from photostereo.lights.ball.calibration import calibrate_lights
from photostereo.lights.ball.geometry import Circle
from photostereo.masks.reading import read_mask
from photostereo.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from photostereo.app.worker import Reporter

#: Prefixes of error codes about lights; the photographs can still be shown.
ABOUT_LIGHTS = ("light", "bad-edits", "no-lights", "photograph-without-light")
#: Masks that are determined from the photographs, or need none.
MASK_KEYWORDS = ("bright", "full", "auto")


@dataclass(eq=False)
class OpenCapture:
    """A capture with its small copies, and cached results of their analysis."""

    folder: Path
    found: Source
    copies: SmallCopies
    pipeline: CopiesPipeline  #: pipeline of the copies; unchanged stages are kept
    whole: Pipeline  #: that of the photographs themselves, as in the terminal
    version: int = 0  #: of the pictures of mask and normals
    #: Masks that were detected (by their keyword) or read from files (by path and time).
    masks: dict[Any, BoolArray] = field(default_factory=dict)
    faults: dict[str, str] | None = None  #: photographs that cannot be used, and why
    ambient: Path | None = None  #: the photograph taken with the light off
    choice_of_lights: tuple[Any, Any] = (None, None)  #: the corrections for which lights were found

    @classmethod
    def at(cls, folder: Path, work: Path) -> OpenCapture:
        """Find the photographs of a folder; the copies are for the folder ``work``."""
        found = find_photographs(folder)
        copies = SmallCopies.of(found, work)
        pipeline = CopiesPipeline(
            copies.capture,
            method="ls",
            strengths="given",
            color=True,
            edits=False,
            focal=copies.focal,
        )
        pipeline.copies = copies
        return cls(folder, found, copies, pipeline, Pipeline(folder))

    def describe(self) -> dict[str, Any]:
        """Return what the page shows of the folder."""
        found = self.found
        return {
            "name": found.name,
            "folder": str(self.folder),
            "files": [file.name for file in found.files],
            "light_file": None if found.lights is None else found.lights.path.name,
            "mask_file": _name_of(found.mask_file),
            "ambient": _name_of(found.ambient),
            "flat": _name_of(found.flat),
        }

    def look(self, control: Reporter, *, whole: bool = True) -> None:
        """Send lights, mask and normals of the small copies, each as soon as it is known.

        Parameters
        ----------
        control : Reporter
            Receives them.
        whole : bool
            Then send lights, mask and findings of the photographs themselves, which are those of the terminal.
        """
        edits = read_edits(self.folder)
        if (edits.lights, edits.circle) != self.choice_of_lights:
            self.choice_of_lights = (edits.lights, edits.circle)
            self.pipeline.know(None)
        # If the copies do not work, the photographs themselves may; else their error is reported.
        with suppress(PhotostereoError):
            self._show(control)
            if self._find_faults(control):
                self._show(control)
        if whole:
            self._examine(control)

    def _examine(self, control: Reporter) -> None:
        """Send what the terminal says about the photographs, with the corrections as they are now."""
        edits = read_edits(self.folder)
        whole = self.whole
        whole.control = control
        capture = whole.configure().capture
        calibration = None if capture.origin is None else capture.origin.calibration
        files = [file.name for file in whole.opened.source.files]
        control.emit("lights", lights=lights_facts(files, capture.lights, calibration))
        self._send_mask(capture, self.copies.shrink_mask(capture.mask), control)
        self.faults = self._all_faults(edits)
        try:
            diagnosis = whole.examined
        finally:  # a solve that cancels it needs the memory
            whole.forget("loaded", "stack")
        control.emit("findings", findings=findings_of(capture, diagnosis, self.faults))
        calibration = whole.unmoved.calibration or (None if edits.moved_lights else calibration)
        if calibration is not None:
            if calibration is not self.pipeline.known:
                self.pipeline.know(calibration)
            self._send_glance(self.corrected(control), control)

    def _all_faults(self, edits: Edits) -> dict[str, str]:
        """Return the faults of the photographs that have a copy; the others cannot be used at all.

        Photographs left out or kept by hand keep the faults that they had before.
        """
        faults = {}
        earlier = self.faults or {}
        for name in edits.leave_out + edits.keep:
            if name in earlier:
                faults[name] = earlier[name]
        for fault in self.whole.opened.source.faults:
            if not fault.used and (self.copies.capture / small_name(fault.file)).exists():
                faults.setdefault(fault.file, fault.reason)
        return faults

    def _show(self, control: Reporter) -> None:
        """Send lights, mask and normals of the small copies."""
        pipeline = self.corrected(control)
        lighting = pipeline.lighting
        lights = lighting.lights if lighting.is_complete else pipeline.capture.lights
        files = [original(file.name) for file in pipeline.opened.source.files]
        if pipeline.places is None:
            facts = lights_facts(files, lights, lighting.calibration, self.copies)
        else:  # the lights of the photographs themselves
            facts = lights_facts(files, lights, pipeline.known)
        control.emit("lights", lights=facts)
        self._send_mask(pipeline.capture, pipeline.capture.mask, control)
        self._send_glance(pipeline, control)

    def _send_mask(self, capture: Capture, small: BoolArray, control: Reporter) -> None:
        self.version = max(self.version + 1, int(time.time()))
        choice = read_edits(self.folder).mask
        if choice in (None, "auto"):
            self.masks[choice] = small
        picture = np.where(small, 255, 0).astype(np.uint8)
        write_bytes(self.copies.work / "mask.png", encode_png(picture))
        notes = [] if capture.origin is None else map(as_finding, capture.origin.notes)
        about = sentences(note for note in notes if note.subject is Subject.MASK)
        mask = {"version": self.version, "share": float(capture.mask.mean()), "notes": about}
        control.emit("mask", mask=mask)

    def _send_glance(self, pipeline: Pipeline, control: Reporter) -> None:
        mask = pipeline.capture.mask
        colors = encode_normals(pipeline.solution.normals, mask, bits=8)
        picture = np.dstack([colors, np.where(mask, 255, 0)]).astype(np.uint8)
        write_bytes(self.copies.work / "glance.png", encode_png(picture, fast=True))
        self.version += 1
        control.emit("glance", glance={"version": self.version})

    def _find_faults(self, control: Reporter) -> bool:
        """Check all photographs for faults, once, even those left out; return True if the selection changes."""
        if self.faults is not None:
            return False
        pipeline = Pipeline(self.copies.capture, method="ls", edits=False, control=control)
        found = pipeline.opened.source
        self.faults = {
            original(fault.file): fault.reason for fault in found.faults if not fault.used
        }
        if "light-off" in self.faults.values():
            self.ambient = found.ambient
        return "mismatched" in self.faults.values()

    def corrected(self, control: Reporter) -> CopiesPipeline:
        """Return the pipeline of the copies with the current corrections, and the lights of the photographs if known."""
        edits = read_edits(self.folder)
        ambient = self.ambient
        if ambient is not None and original(ambient.name) in edits.keep:
            ambient = None
        if self.faults is not None:  # do not check photographs again
            unused = {*edits.leave_out, *(set(self.faults) - set(edits.keep))}
            every = tuple(file.name for file in self.found.files)
            edits = replace(edits, leave_out=tuple(sorted(unused)), keep=every)
        is_estimated = edits.lights == ESTIMATE
        circle = None
        if edits.circle is not None and not is_estimated:
            circle = self.copies.scaled(edits.circle)
        self.pipeline.control = control
        self.pipeline.configure(
            mask=self._mask(edits.mask),
            lights=ESTIMATE if is_estimated else None,
            circle=circle,
            leave_out=tuple(map(small_name, edits.leave_out)),
            keep=tuple(map(small_name, edits.keep)),
            moved_lights={small_name(name): to for name, to in edits.moved_lights.items()},
            ambient=ambient,
        )
        return self.pipeline

    def _mask(self, choice: str | None) -> Any:
        """Return the chosen mask in the size of the copies, or the keyword of a mask to detect."""
        if choice in MASK_KEYWORDS:
            return self.masks.get(choice, choice)
        file = self.folder / choice if choice else self.found.mask_file
        if file is None:
            default = None if self.found.lights is None else self.found.mask_default
            return self.masks.get(None, default)
        version = (file, file.stat().st_mtime_ns if file.exists() else 0)
        if version not in self.masks:
            self.masks[version] = self.copies.shrink_mask(read_mask(file, self.copies.full)[0])
        return self.masks[version]

    def lights_for(self, circle: tuple[float, float, float], control: Reporter) -> dict[str, Any]:
        """Return the lights for a circle around a ball, in pixels of the photographs; nothing is stored."""
        stack = self.corrected(control).loaded.gray()
        names = [] if stack.origin is None else list(map(original, stack.origin.files))
        calibration = calibrate_lights(
            stack.images,
            files=names,
            circles=[Circle(*self.copies.scaled(circle))],
            focal=self.copies.focal,
        )
        calibration = replace(calibration, in_frame=True)
        return lights_facts(names, calibration.lights, calibration, self.copies)


def _name_of(file: Path | None) -> str | None:
    return None if file is None else file.name


def find_photographs(folder: Path) -> Source:
    """Find the photographs of a folder, including those left out.

    If there is a problem with the light file, they are found without it.
    """
    try:
        choice = read_edits(folder).lights
        lights = None if choice in (None, ESTIMATE) else folder / choice
        found = find_source(folder, ReadOptions(lights=lights))
        if found.lights is not None:
            found.require_matching()
        return found
    except PhotostereoError as error:
        if not error.code.startswith(ABOUT_LIGHTS):
            raise
        return find_alone(folder, ReadOptions())


def brief(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a summary that the page shows."""
    return {name: summary.get(name) for name in ("expected_error", "seconds")}
