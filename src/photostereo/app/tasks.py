"""What a worker can do: copy photographs, look at a capture, solve it, export a result."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.app.findings import differences, findings_of, lights_facts, original
from photostereo.app.small_copies import SmallCopies, make_copies
from photostereo.capture.edits import MASK_STEM, read_edits, write_edits
from photostereo.capture.layouts.folder import find_alone
from photostereo.capture.lighting import lights_of_ball
from photostereo.capture.loading import find_capture
from photostereo.capture.object_mask import ABOUT_MASK
from photostereo.capture.opening import Found, require_matching
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.core.conventions import encode_normals
from photostereo.core.errors import CaptureError, PhotostereoError
from photostereo.core.findings import as_finding
from photostereo.io.atomic import replacing_directory, write_bytes, write_text
from photostereo.io.images import decode_image
from photostereo.io.png import encode_png
from photostereo.lights.ball.calibration import calibrate_lights
from photostereo.lights.ball.circle import Circle
from photostereo.lights.files.table import ball_line
from photostereo.lights.files.writing import lights_table, write_lights
from photostereo.masks.reading import mask_from_values, read_mask
from photostereo.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from photostereo.app.worker import Reporter

#: Codes of errors about lights: the photographs can be shown all the same.
_ABOUT_LIGHTS = ("light", "bad-edits", "no-lights", "photograph-without-light")

#: Estimated lights of the small copies.
_ESTIMATED = "estimated.csv"


class Tasks:
    """The tasks of one worker, and what it keeps between them: the open capture and its small pipeline."""

    def __init__(self) -> None:
        self.folder = Path()
        self.found: Found | None = None
        self.copies: SmallCopies | None = None
        self.pipeline: Any = None
        self.version = 0
        #: What was found in the small copies and is not searched for again: the ball, the mask, photographs with faults
        #: and displaced ones, and the one that was taken with the light off.
        self.circle: tuple[float, float, float] | None = None
        self.found_masks: dict[str | None, str] = {}
        self.faults: dict[str, str] | None = None
        self.moved: frozenset[str] = frozenset()
        self.ambient: Path | None = None
        self.estimated: dict[str, str] = {}  # lines of a light file
        self.estimated_for: tuple[Any, Any] = (None, None)
        self.mask_notes: list[str] = []

    def do_open(self, folder: str, work: str, control: Reporter) -> dict[str, Any]:
        found, problem = self._find(folder)
        named = {"mask_file": found.mask_file, "ambient": found.ambient, "flat": found.flat}
        facts = {name: None if file is None else file.name for name, file in named.items()}
        facts |= {"name": found.name, "folder": str(self.folder), "problem": problem}
        facts["light_file"] = None if found.lights is None else found.lights.path.name
        control.emit("found", capture={**facts, "files": [file.name for file in found.files]})
        control.stage("small copies", len(found.files))
        for copies, about in make_copies(found, Path(work), control):
            self.copies = copies
            control.emit("photograph", photograph=about)
            control.advance()
        assert self.copies is not None
        return {"full": self.copies.scale.full[::-1], "small": self.copies.scale.small[::-1]}

    def _find(self, folder: str) -> tuple[Found, str]:
        self.folder = Path(folder)
        found, problem = find_photographs(self.folder)
        self.found, self.pipeline = found, None
        self.circle, self.found_masks, self.faults, self.ambient, self.estimated = None, {}, None, None, {}
        return found, problem

    def _at(self, folder: str, work: str) -> SmallCopies:
        """The copies that were made; another process may have made them."""
        if self.copies is None or self.found is None:
            found, _ = self._find(folder)
            self.copies = SmallCopies.of(found, Path(work))
        return self.copies

    def do_look(self, folder: str, work: str, control: Reporter) -> dict[str, Any]:
        """Lights, mask, findings and a glance at the normals, each sent as soon as it is known.

        Estimating lights takes seconds: a correction is shown with those that are known, then with new ones.
        """
        self._at(folder, work)
        edits = read_edits(self.folder)
        if (edits.lights, edits.circle) != self.estimated_for:
            self.estimated_for, self.estimated = (edits.lights, edits.circle), {}
        if self.estimated:
            self._show(self._small_pipeline(control, guess=True), control)
        pipeline = self._small_pipeline(control)
        self._show(pipeline, control)
        if self._judge(control):
            return self.do_look(folder, work, control)
        return {"findings": findings_of(pipeline, self)}

    def _show(self, pipeline: Any, control: Reporter) -> None:
        assert self.copies is not None
        work, lighting = self.copies.work, pipeline.lighting
        if lighting.is_complete:
            control.emit("lights", lights=lights_facts(self, lighting.lights, lighting.calibration))
        capture = pipeline.capture
        self.version = max(self.version + 1, int(time.time()))
        mask = np.where(capture.mask, 255, 0).astype(np.uint8)
        write_bytes(work / "mask.png", encode_png(mask))
        notes = list(capture.origin.notes) if capture.origin else []
        about = [note for note in notes if as_finding(note).code in ABOUT_MASK]
        if read_edits(self.folder).mask in (None, "auto"):  # said when it was found
            about = self.mask_notes = about or self.mask_notes
        share = float(capture.mask.mean())
        control.emit("mask", mask={"version": self.version, "share": share, "notes": about})
        if not lighting.is_complete:
            control.emit("lights", lights=lights_facts(self, capture.lights, None))
            self._keep_estimate(capture)
        self._keep(lighting.calibration, mask)
        normals = pipeline.solution.normals
        picture = np.dstack([encode_normals(normals, capture.mask, bits=8), mask])
        write_bytes(work / "glance.png", encode_png(picture, fast=True))
        control.emit("glance", glance={"version": self.version})

    def _keep_estimate(self, capture: Any) -> None:
        assert self.copies is not None
        if capture.origin.calibration is not None and not read_edits(self.folder).moved_lights:
            head, *rows = lights_table(capture.origin.calibration).splitlines()[1:]
            self.estimated |= {row.split(",")[0]: row for row in rows}
            nowhere = ball_line(Circle(-9, -9, 1))  # so that no ball is searched for, which takes a second
            lines = [nowhere, head, *self.estimated.values(), ""]
            write_text(self.copies.capture / _ESTIMATED, "\n".join(lines))

    def _keep(self, calibration: Any, mask: Any) -> None:
        """What need not be searched for again when something else is corrected."""
        assert self.copies is not None
        balls = calibration.balls if calibration is not None and calibration.in_frame else []
        if self.circle is None and len(balls) == 1:
            at = balls[0].circle
            self.circle = (at.x, at.y, at.radius)
        chosen = read_edits(self.folder).mask
        if chosen in (None, "auto") and chosen not in self.found_masks:
            self.found_masks[chosen] = f"{MASK_STEM}-found-{chosen}.png"
            write_bytes(self.copies.capture / self.found_masks[chosen], encode_png(mask))

    def _judge(self, control: Reporter) -> bool:
        """Look once for faults of all photographs, whoever left some out; True if others are used from now on."""
        if self.faults is not None:
            return False
        assert self.copies is not None
        pipeline = Pipeline(self.copies.capture, method="ls", edits=False, control=control)
        opened, alignment = pipeline.opened, pipeline.alignment
        files = [original(file.name) for file in opened.found.files]
        marks = () if alignment is None else alignment.uncertain | alignment.corrected.any(axis=1)
        self.moved = frozenset(name for name, mark in zip(files, marks, strict=False) if mark)
        self.faults = {original(fault.file): fault.reason for fault in opened.found.faults if not fault.used}
        self.ambient = opened.found.ambient if "light-off" in self.faults.values() else None
        return "mismatched" in self.faults.values()

    def do_circle(self, folder: str, work: str, circle: list[float], control: Reporter) -> dict[str, Any]:
        """The lights that follow from a circle, as it is being dragged; nothing is kept."""
        copies = self._at(folder, work)
        pipeline = self._small_pipeline(control)
        stack = pipeline.loaded.gray()
        at = Circle(*copies.scale.circle(circle, up=False))
        names = [] if stack.origin is None else list(stack.origin.files)
        calibration = calibrate_lights(stack.images, files=names, circles=[at], focal=copies.focal)
        lighting = lights_of_ball(calibration)
        return {"lights": lights_facts(self, lighting.lights, calibration)}

    def do_paint(self, folder: str, work: str, picture: str, control: Reporter) -> dict[str, Any]:
        """Keep a mask that was painted on the small copies: a file of its own beside the photographs."""
        copies = self._at(folder, work)
        small, _ = mask_from_values(decode_image(Path(picture)), "The painted mask", copies.scale.small)
        edits = read_edits(self.folder)
        name = edits.mask if edits.mask and edits.mask.startswith(MASK_STEM) else free_name(self.folder)
        write_bytes(self.folder / name, encode_png(copies.enlarge_mask(small)))
        write_edits(self.folder, replace(edits, mask=name))
        return {"mask": name}

    def do_preview(self, folder: str, work: str, out: str, method: str, control: Reporter) -> dict[str, Any]:
        """Solve the small copies and write a result folder."""
        from photostereo.results.choice import SurfaceChoice

        self._at(folder, work)
        pipeline = self._small_pipeline(control)
        # To look at, not to take along: no meshes.
        pipeline.configure(method=method, strengths="auto", surface=SurfaceChoice(formats=()))
        shutil.rmtree(out, ignore_errors=True)
        try:
            return {"out": out, "summary": brief(pipeline.write(out, command=["photostereo", "app"]).summary)}
        finally:
            pipeline.configure(method="ls", strengths="given")

    def do_solve(
        self,
        folder: str,
        out: str,
        settings: Mapping[str, Any],
        command: list[str],
        shown: Mapping[str, Any],
        control: Reporter,
    ) -> dict[str, Any]:
        """Solve a capture as the command line does; what the page showed otherwise (``shown``) is said."""
        pipeline = Pipeline(folder, control=control, **settings)
        control.emit("said", said=differences(pipeline.capture, shown))
        written = pipeline.write(out, command=command)
        return {"out": out, "summary": brief(written.summary), "warnings": list(written.warnings)}

    def do_export(
        self, folder: str, work: str, result: str, out: str, formats: list[str], control: Reporter
    ) -> dict[str, Any]:
        from photostereo.results.export import export_result
        from photostereo.solver.reconstruction import Reconstruction

        with replacing_directory(Path(out), force=True) as place:
            facts = export_result(place, Reconstruction.load(Path(result)), formats, control=control)
        return {"files": facts["files"]}

    def do_save_lights(self, folder: str, work: str, target: str, control: Reporter) -> dict[str, Any]:
        """Find the lights in the photographs themselves and write them as a light file."""
        origin = Pipeline(folder, method="ls", control=control).capture.origin
        if origin is None or origin.calibration is None:
            raise CaptureError("The lights are already in a file.", code="output-exists")
        write_lights(origin.calibration, Path(target))
        edits = read_edits(folder)
        if edits.mask is None:  # beside a light file the whole frame would be the object
            write_edits(folder, replace(edits, mask="auto"))
        return {"file": Path(target).name}

    def do_compile(self, stamp: str, control: Reporter) -> dict[str, Any]:
        """Solve something tiny, so that a new user's first solve need not wait for compilers."""
        getattr(os, "nice", int)(10)
        with tempfile.TemporaryDirectory() as home:
            place = self.do_example(f"{home}/figure", control, size=64)["folder"]
            for method in ("ls", "fast", "best"):
                Pipeline(place, method=method, mask="auto", control=control).write(f"{home}/{method}")
        Path(stamp).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(Path(stamp), b"")
        return {}

    def do_example(self, folder: str, control: Reporter, size: int = 400) -> dict[str, Any]:
        """Photograph the figure of the demo."""
        from photostereo.capture.corruptions import add_poisson
        from photostereo.capture.layouts.diligent import write_diligent
        from photostereo.scenes import dome_lights, render_scene

        if not (Path(folder) / "filenames.txt").is_file():
            control.stage("example")
            lights = dome_lights(20)
            clean = render_scene("figure", size=size, lights=lights, reflectance="oren-nayar", color=True)
            control.check()
            write_diligent(add_poisson(clean, 25.0, rng=0), Path(folder))
        return {"folder": folder}

    def _small_pipeline(self, control: Reporter, *, guess: bool = False) -> Any:
        """The pipeline of the small copies with the present corrections; stages that did not change are kept."""
        assert self.copies is not None and self.found is not None
        edits = read_edits(self.folder)
        kept = self.ambient is not None and original(self.ambient.name) in edits.keep
        if self.faults is not None:  # no photograph is judged again
            unused = {*edits.leave_out, *(set(self.faults) - set(edits.keep))}
            every = tuple(file.name for file in self.found.files)
            edits = replace(edits, leave_out=tuple(sorted(unused)), keep=every)
        if guess:
            edits = replace(edits, lights=_ESTIMATED)
        self.copies.write_edits(edits, self._small_mask(edits.mask), self.circle)
        if self.pipeline is None:
            self.pipeline = Pipeline(
                self.copies.capture,
                method="ls",
                color=True,
                align="off",
                focal=self.copies.focal,
                strengths="given",
            )
        self.pipeline.control = control
        return self.pipeline.configure(ambient=None if kept else self.ambient)

    def _small_mask(self, chosen: str | None) -> str | None:
        """The name of the chosen mask among the copies; a word stays what it is."""
        assert self.copies is not None and self.found is not None
        if chosen in ("bright", "full"):
            return chosen
        if chosen == "auto":
            return self.found_masks.get(chosen, chosen)
        file = self.folder / chosen if chosen else self.found.mask_file
        if file is None:
            default = None if self.found.lights is None else self.found.mask_default
            return self.found_masks.get(None, default)
        stamp = file.stat().st_mtime_ns if file.exists() else 0
        name = f"{MASK_STEM}-{stamp}.png"
        if not (self.copies.capture / name).exists():
            self.copies.shrink_mask(read_mask(file, self.copies.scale.full)[0], name)
        return name


def find_photographs(folder: Path) -> tuple[Found, str]:
    """The photographs of a folder, those that are left out included; and what is wrong with the light file."""
    try:
        chosen = read_edits(folder).lights
        found = find_capture(
            folder, ReadOptions(lights=None if chosen in (None, ESTIMATE) else folder / chosen)
        )
        if isinstance(found, Found):
            if found.lights is not None and len(found.lights.vectors) != len(found.files):
                require_matching(found, len(found.lights.vectors))
            return found, ""
        raise CaptureError("The app works on folders of photographs.", code="not-a-folder", file=folder)
    except PhotostereoError as error:
        if not error.code.startswith(_ABOUT_LIGHTS):
            raise
        return find_alone(folder, ReadOptions()), error.rendered("app")


def free_name(folder: Path) -> str:
    """A name for a painted mask that nothing in the folder has."""
    names = (f"{MASK_STEM}{'' if n == 1 else f'-{n}'}.png" for n in range(1, 10_000))
    return next(name for name in names if not (folder / name).exists())


def brief(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a summary."""
    return {name: summary.get(name) for name in ("expected_error", "seconds")}
