"""Tasks of a worker: copy photographs, analyze a capture, solve it, export a result."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.app.findings import findings_of, lights_facts, original
from photostereo.app.places import free_place
from photostereo.app.small_copies import CopiesPipeline, SmallCopies, small_name
from photostereo.capture.edits import read_edits, write_edits
from photostereo.capture.layouts import MASK_STEM
from photostereo.capture.layouts.diligent import write_diligent
from photostereo.capture.layouts.folder import find_alone
from photostereo.capture.loading import find_capture
from photostereo.capture.opening import Found, require_matching
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.core.conventions import BoolArray, encode_normals
from photostereo.core.errors import CaptureError, PhotostereoError, not_a_folder
from photostereo.core.findings import Subject, as_finding, sentences
from photostereo.example import owl
from photostereo.io.atomic import replacing_directory, write_bytes
from photostereo.io.images import decode_image
from photostereo.io.png import encode_png
from photostereo.lights.ball.calibration import calibrate_lights
from photostereo.lights.ball.geometry import Circle
from photostereo.lights.files.table import write_lights
from photostereo.masks.reading import mask_from_values, read_mask
from photostereo.pipeline.pipeline import Pipeline
from photostereo.results import export
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.reconstruction import Reconstruction

if TYPE_CHECKING:
    from photostereo.app.worker import Reporter
    from photostereo.capture import Capture

#: Prefixes of error codes about lights; the photographs can still be shown.
_ABOUT_LIGHTS = ("light", "bad-edits", "no-lights", "photograph-without-light")


@dataclass(eq=False)
class OpenCapture:
    """A capture with its small copies, and cached results of their analysis."""

    folder: Path
    found: Found
    copies: SmallCopies
    pipeline: CopiesPipeline  #: pipeline of the copies; unchanged stages are kept
    whole: Pipeline  #: that of the photographs themselves, as in the terminal
    version: int = 0
    #: Masks that were detected (by their keyword) or read from files.
    masks: dict[Any, BoolArray] = field(default_factory=dict)
    faults: dict[str, str] | None = None  #: photographs that cannot be used
    ambient: Path | None = None  #: the photograph taken with the light off
    known_for: tuple[Any, Any] = (None, None)

    @classmethod
    def at(cls, folder: Path, work: Path) -> OpenCapture:
        found = find_photographs(folder)
        copies = SmallCopies.of(found, work)
        settings: dict[str, Any] = {"color": True, "edits": False, "focal": copies.focal}
        pipeline = CopiesPipeline(copies.capture, method="ls", strengths="given", **settings)
        pipeline.copies = copies
        return cls(folder, found, copies, pipeline, Pipeline(folder))

    def look(self, control: Reporter, *, whole: bool = True) -> None:
        """Send lights, mask and normals of the small copies, each as soon as it is known; then, with ``whole``, lights, mask
        and findings of the photographs themselves, which are those of the terminal."""
        edits = read_edits(self.folder)
        if (edits.lights, edits.circle) != self.known_for:
            self.known_for = (edits.lights, edits.circle)
            self.pipeline.know(None)
        with suppress(
            PhotostereoError
        ):  # the photographs themselves may do; else their error is reported
            self._show(control)
            if self._judge(control):
                self._show(control)
        if whole:
            self._examine(control)

    def _examine(self, control: Reporter) -> None:
        edits, whole = read_edits(self.folder), self.whole
        whole.control = control
        capture = whole.configure().capture  # with the corrections as they are now
        calibration = None if capture.origin is None else capture.origin.calibration
        files = [file.name for file in whole.opened.found.files]
        control.emit("lights", lights=lights_facts(files, capture.lights, calibration))
        self._send_mask(capture, self.copies.shrink_mask(capture.mask), control)
        # Photographs left out or kept by hand keep their faults; those without a copy cannot be used at all.
        faults = {name: (self.faults or {}).get(name) for name in edits.leave_out + edits.keep}
        for fault in whole.opened.found.faults:
            if not fault.used and (self.copies.capture / small_name(fault.file)).exists():
                faults.setdefault(fault.file, fault.reason)
        self.faults = {name: reason for name, reason in faults.items() if reason}
        try:
            diagnosis = whole.examined
        finally:  # a solve that cancels it needs the memory
            whole.forget("loaded", "stack")
        control.emit("findings", findings=findings_of(capture, diagnosis, self.faults))
        calibration = whole.unmoved.calibration or (None if edits.moved_lights else calibration)
        if calibration is not None:
            if calibration is not self.pipeline.known:
                self.pipeline.know(calibration)
            self._glance(self.corrected(control), control)

    def _send_mask(self, capture: Capture, small: BoolArray, control: Reporter) -> None:
        self.version = max(self.version + 1, int(time.time()))
        if (chosen := read_edits(self.folder).mask) in (None, "auto"):
            self.masks[chosen] = small
        write_bytes(
            self.copies.work / "mask.png", encode_png(np.where(small, 255, 0).astype(np.uint8))
        )
        notes = [] if capture.origin is None else map(as_finding, capture.origin.notes)
        about = sentences(note for note in notes if note.subject is Subject.MASK)
        mask = {"version": self.version, "share": float(capture.mask.mean()), "notes": about}
        control.emit("mask", mask=mask)

    def _show(self, control: Reporter) -> None:
        """Send lights, mask and normals of the small copies."""
        pipeline = self.corrected(control)
        lighting = pipeline.lighting
        lights = lighting.lights if lighting.is_complete else pipeline.capture.lights
        files = [original(file.name) for file in pipeline.opened.found.files]
        known = lighting.calibration if pipeline.places is None else pipeline.known
        facts = lights_facts(files, lights, known, self.copies if pipeline.places is None else None)
        control.emit("lights", lights=facts)
        self._send_mask(pipeline.capture, pipeline.capture.mask, control)
        self._glance(pipeline, control)

    def _glance(self, pipeline: Pipeline, control: Reporter) -> None:
        mask = pipeline.capture.mask
        picture = np.dstack(
            [encode_normals(pipeline.solution.normals, mask, bits=8), np.where(mask, 255, 0)]
        )
        write_bytes(
            self.copies.work / "glance.png", encode_png(picture.astype(np.uint8), fast=True)
        )
        self.version += 1
        control.emit("glance", glance={"version": self.version})

    def _judge(self, control: Reporter) -> bool:
        """Check all photographs for faults, once, even those left out; return True if the selection changes."""
        if self.faults is not None:
            return False
        pipeline = Pipeline(self.copies.capture, method="ls", edits=False, control=control)
        found = pipeline.opened.found
        self.faults = {
            original(fault.file): fault.reason for fault in found.faults if not fault.used
        }
        self.ambient = found.ambient if "light-off" in self.faults.values() else None
        return "mismatched" in self.faults.values()

    def corrected(self, control: Reporter) -> CopiesPipeline:
        """Pipeline of the small copies with the current corrections, and the lights of the photographs if they are known."""
        edits = read_edits(self.folder)
        kept = self.ambient is not None and original(self.ambient.name) in edits.keep
        if self.faults is not None:  # do not check photographs again
            unused = {*edits.leave_out, *(set(self.faults) - set(edits.keep))}
            every = tuple(file.name for file in self.found.files)
            edits = replace(edits, leave_out=tuple(sorted(unused)), keep=every)
        lights = ESTIMATE if edits.lights == ESTIMATE else None
        circle = None if edits.circle is None else self.copies.scaled(edits.circle)
        self.pipeline.control = control
        self.pipeline.configure(
            mask=self._mask(edits.mask),
            lights=lights,
            circle=None if lights else circle,
            leave_out=tuple(map(small_name, edits.leave_out)),
            keep=tuple(map(small_name, edits.keep)),
            moved_lights={small_name(name): to for name, to in edits.moved_lights.items()},
            ambient=None if kept else self.ambient,
        )
        return self.pipeline

    def _mask(self, chosen: str | None) -> Any:
        """Return the chosen mask in the size of the copies, or the keyword of a mask to detect."""
        if chosen in ("bright", "full", "auto"):
            return self.masks.get(chosen, chosen)
        file = self.folder / chosen if chosen else self.found.mask_file
        if file is None:
            default = None if self.found.lights is None else self.found.mask_default
            return self.masks.get(None, default)
        version = (file, file.stat().st_mtime_ns if file.exists() else 0)
        if version not in self.masks:
            self.masks[version] = self.copies.shrink_mask(read_mask(file, self.copies.full)[0])
        return self.masks[version]


class Tasks:
    """Tasks of one worker, and its open capture."""

    def __init__(self) -> None:
        self.open: OpenCapture | None = None

    def do_open(self, folder: str, work: str, control: Reporter) -> dict[str, Any]:
        self.open = OpenCapture.at(Path(folder), Path(work))
        found, copies = self.open.found, self.open.copies
        named = {"mask_file": found.mask_file, "ambient": found.ambient, "flat": found.flat}
        facts = {name: None if file is None else file.name for name, file in named.items()}
        facts |= {"name": found.name, "folder": folder}
        facts["light_file"] = None if found.lights is None else found.lights.path.name
        control.emit("found", capture={**facts, "files": [file.name for file in found.files]})
        control.stage("small copies", len(found.files))
        for about in copies.make(found, control):
            control.emit("photograph", photograph=about)
            control.advance()
        return {"full": copies.full[::-1], "small": copies.small[::-1]}

    def _at(self, folder: str, work: str) -> OpenCapture:
        """Return the open capture; another process may have made its copies."""
        self.open = self.open or OpenCapture.at(Path(folder), Path(work))
        return self.open

    def do_look(
        self, folder: str, work: str, control: Reporter, whole: bool = True
    ) -> dict[str, Any]:
        self._at(folder, work).look(control, whole=whole)
        return {"whole": whole}

    def do_circle(
        self, folder: str, work: str, circle: list[float], control: Reporter
    ) -> dict[str, Any]:
        """Return the lights for a circle while it is being dragged; nothing is stored."""
        opened = self._at(folder, work)
        stack = opened.corrected(control).loaded.gray()
        at = Circle(*opened.copies.scaled(circle))
        names = [] if stack.origin is None else list(map(original, stack.origin.files))
        calibration = calibrate_lights(
            stack.images, files=names, circles=[at], focal=opened.copies.focal
        )
        return {"lights": lights_facts(names, calibration.lights, calibration, opened.copies)}

    def do_paint(self, folder: str, work: str, picture: str, control: Reporter) -> dict[str, Any]:
        """Store a mask painted on the small copies as a file beside the photographs."""
        copies, edits = self._at(folder, work).copies, read_edits(folder)
        small, _ = mask_from_values(decode_image(Path(picture)), "The painted mask", copies.small)
        name = edits.mask if edits.mask and edits.mask.startswith(MASK_STEM) else ""
        name = name or free_place(Path(folder), MASK_STEM, ".png").name
        write_bytes(Path(folder) / name, encode_png(copies.enlarge_mask(small)))
        write_edits(folder, replace(edits, mask=name))
        # The file may have the same name as before.
        self._at(folder, work).whole.forget("capture", "loaded", "diagnosis", "examined")
        return {"mask": name}

    def do_preview(
        self, folder: str, work: str, out: str, method: str, control: Reporter
    ) -> dict[str, Any]:
        """Solve the small copies and write a result folder."""
        pipeline = self._at(folder, work).corrected(control)
        # A preview is only viewed, so it needs no meshes.
        pipeline.configure(method=method, strengths="auto", surface=SurfaceChoice(formats=()))
        shutil.rmtree(out, ignore_errors=True)
        try:
            return {
                "out": out,
                "summary": brief(pipeline.write(out, command=["photostereo", "app"]).summary),
            }
        finally:
            pipeline.configure(method="ls", strengths="given")

    def do_solve(
        self,
        folder: str,
        out: str,
        settings: Mapping[str, Any],
        command: list[str],
        control: Reporter,
    ) -> dict[str, Any]:
        """Solve a capture as the command line does."""
        written = Pipeline(folder, control=control, **settings).write(out, command=command)
        return {
            "out": out,
            "summary": brief(written.summary),
            "warnings": sentences(written.warnings),
        }

    def do_export(
        self, folder: str, work: str, result: str, out: str, formats: list[str], control: Reporter
    ) -> dict[str, Any]:
        with replacing_directory(Path(out), force=True) as place:
            facts = export.export_result(
                place, Reconstruction.load(Path(result)), formats, control=control
            )
        return {"files": facts["files"]}

    def do_save_lights(
        self, folder: str, work: str, target: str, control: Reporter
    ) -> dict[str, Any]:
        """Estimate the lights from the full-size photographs and write a light file."""
        whole = self._at(folder, work).whole
        whole.control = control
        origin = whole.configure().capture.origin
        if origin is None or origin.calibration is None:
            raise CaptureError("The lights are already in a file.", code="output-exists")
        write_lights(origin.calibration, Path(target))
        edits = read_edits(folder)
        if edits.mask is None:  # with a light file, the default object would be the whole frame
            write_edits(folder, replace(edits, mask="auto"))
        return {"file": Path(target).name}

    def do_compile(self, stamp: str, control: Reporter) -> dict[str, Any]:
        """Solve a tiny capture, so that the first real solve does not wait for compilation."""
        getattr(os, "nice", int)(10)
        with tempfile.TemporaryDirectory() as home:
            place = self.do_example(f"{home}/figure", control, step=6)["folder"]
            for method in ("ls", "fast", "best"):
                Pipeline(place, method=method, mask="auto", control=control).write(
                    f"{home}/{method}"
                )
        Path(stamp).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(Path(stamp), b"")
        return {}

    def do_example(self, folder: str, control: Reporter, step: int = 1) -> dict[str, Any]:
        """Write the example capture, the owl of the demo, if it does not exist."""
        if not (Path(folder) / "filenames.txt").is_file():
            control.stage("example")
            write_diligent(owl(25.0, step=step), Path(folder))
        return {"folder": folder}


def find_photographs(folder: Path) -> Found:
    """Find the photographs of a folder, including those left out; without the light file if there is a problem with it."""
    try:
        chosen = read_edits(folder).lights
        lights = None if chosen in (None, ESTIMATE) else folder / chosen
        found = find_capture(folder, ReadOptions(lights=lights))
        if isinstance(found, Found):
            if found.lights is not None:
                require_matching(found)
            return found
        raise not_a_folder(folder)
    except PhotostereoError as error:
        if not error.code.startswith(_ABOUT_LIGHTS):
            raise
        return find_alone(folder, ReadOptions())


def brief(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a summary that the page shows."""
    return {name: summary.get(name) for name in ("expected_error", "seconds")}
