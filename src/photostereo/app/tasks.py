"""What a worker does: a method for every kind of task in :mod:`.protocol`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo.app import protocol
from photostereo.app.open_capture import OpenCapture, brief
from photostereo.app.user_folders import free_place
from photostereo.capture.edits import read_edits, write_edits
from photostereo.capture.layouts import MASK_STEM
from photostereo.capture.layouts.diligent import write_diligent
from photostereo.capture.loading import find_source, read_lazily
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.core.findings import sentences
from photostereo.example import owl
from photostereo.io.atomic import replacing_directory, write_bytes
from photostereo.io.images import decode_image
from photostereo.io.png import encode_png
from photostereo.lights.files.table import write_lights
from photostereo.masks.reading import mask_from_values
from photostereo.pipeline.pipeline import Pipeline
from photostereo.results import export
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.reconstruction import Reconstruction

if TYPE_CHECKING:
    from photostereo.app.worker import Reporter

#: What a task returns: values for JSON.
Result = dict[str, Any]
#: Methods that the app offers first; their kernels are compiled ahead.
COMMON_METHODS = ("ls", "fast", "best")
#: Only every sixth pixel of the example is needed for compiling.
COMPILED_STEP = 6


class Tasks:
    """Tasks of one worker, and its open capture."""

    def __init__(self) -> None:
        self.open: OpenCapture | None = None

    def run(self, task: protocol.Task, control: Reporter) -> Result:
        """Carry out a task and return its result."""
        return HANDLERS[type(task)](self, task, control)

    def open_folder(self, task: protocol.OpenFolder, control: Reporter) -> Result:
        self.open = OpenCapture.at(Path(task.folder), Path(task.work))
        found = self.open.found
        copies = self.open.copies
        control.emit("found", capture=self.open.describe())
        control.stage("small copies", len(found.files))
        for about in copies.make(found, control):
            control.emit("photograph", photograph=about)
            control.advance()
        return {"full": copies.full[::-1], "small": copies.small[::-1]}

    def _at(self, folder: str, work: str) -> OpenCapture:
        """Return the open capture; another process may have made its copies."""
        if self.open is None:
            self.open = OpenCapture.at(Path(folder), Path(work))
        return self.open

    def look(self, task: protocol.Look, control: Reporter) -> Result:
        self._at(task.folder, task.work).look(control, whole=task.whole)
        return {"whole": task.whole}

    def try_circle(self, task: protocol.TryCircle, control: Reporter) -> Result:
        return {"lights": self._at(task.folder, task.work).lights_for(task.circle, control)}

    def paint_mask(self, task: protocol.PaintMask, control: Reporter) -> Result:
        """Store a painted mask as a file beside the photographs, in their size."""
        folder = Path(task.folder)
        opened = self._at(task.folder, task.work)
        painting = decode_image(Path(task.picture))
        small, _ = mask_from_values(painting, "The painted mask", opened.copies.small)
        edits = read_edits(folder)
        if edits.mask and edits.mask.startswith(MASK_STEM):
            name = edits.mask
        else:
            name = free_place(folder, MASK_STEM, ".png").name
        write_bytes(folder / name, encode_png(opened.copies.enlarge_mask(small)))
        write_edits(folder, replace(edits, mask=name))
        # The file may have the same name as before.
        opened.whole.forget("capture", "loaded", "diagnosis", "examined")
        return {"mask": name}

    def save_lights(self, task: protocol.SaveLights, control: Reporter) -> Result:
        """Estimate the lights from the full-size photographs and write a light file."""
        whole = self._at(task.folder, task.work).whole
        whole.control = control
        origin = whole.configure().capture.origin
        if origin is None or origin.calibration is None:
            raise CaptureError("The lights are already in a file.", code="output-exists")
        write_lights(origin.calibration, Path(task.target))
        edits = read_edits(task.folder)
        if edits.mask is None:  # with a light file, the default object would be the whole frame
            write_edits(task.folder, replace(edits, mask="auto"))
        return {"file": Path(task.target).name}

    def preview(self, task: protocol.Preview, control: Reporter) -> Result:
        """Solve the small copies and write a result folder, without meshes: it is only viewed."""
        pipeline = self._at(task.folder, task.work).corrected(control)
        surface = SurfaceChoice(formats=())
        pipeline.configure(method=task.method, strengths="auto", surface=surface)
        shutil.rmtree(task.out, ignore_errors=True)
        try:
            written = pipeline.write(task.out, command=["photostereo", "app"])
        finally:
            pipeline.configure(method="ls", strengths="given")
        return {"out": task.out, "summary": brief(written.summary)}

    def solve(self, task: protocol.Solve, control: Reporter) -> Result:
        """Solve a capture as the command line does."""
        pipeline = Pipeline(task.folder, control=control, **task.settings)
        written = pipeline.write(task.out, command=task.command)
        return {
            "out": task.out,
            "summary": brief(written.summary),
            "warnings": sentences(written.warnings),
        }

    def export(self, task: protocol.Export, control: Reporter) -> Result:
        reconstruction = Reconstruction.load(Path(task.result))
        with replacing_directory(Path(task.out), force=True) as place:
            written = export.export_result(place, reconstruction, task.formats, control=control)
        return {"files": written["files"]}

    def write_example(
        self, task: protocol.WriteExample, control: Reporter, step: int = 1
    ) -> Result:
        """Write the owl of the demo; of its photographs only every ``step``-th pixel."""
        if not (Path(task.folder) / "filenames.txt").is_file():
            control.stage("example")
            write_diligent(owl(25.0, step=step), Path(task.folder))
        return {"folder": task.folder}

    def import_capture(self, task: protocol.ImportCapture, control: Reporter) -> Result:
        """Write the photographs, lights and mask of any capture as a folder that the app can open."""
        control.stage("reading")
        source = Path(task.source)
        found = find_source(source, ReadOptions())
        if found.photographs is not None:  # pictures that are no files
            options = ReadOptions(color=True, align="off", keep=tuple(found.names))
            capture = read_lazily(source, options, control).loaded(control)
            Path(task.folder).parent.mkdir(parents=True, exist_ok=True)
            write_diligent(capture, Path(task.folder))
            return {"folder": task.folder}
        return {"folder": str(source if source.is_dir() else source.parent)}

    def compile_kernels(self, task: protocol.CompileKernels, control: Reporter) -> Result:
        """Solve a tiny capture with the common methods, at a low priority."""
        if hasattr(os, "nice"):
            os.nice(10)
        with tempfile.TemporaryDirectory() as home:
            example = protocol.WriteExample(f"{home}/figure")
            self.write_example(example, control, step=COMPILED_STEP)
            for method in COMMON_METHODS:
                pipeline = Pipeline(example.folder, method=method, mask="auto", control=control)
                pipeline.write(f"{home}/{method}")
        Path(task.stamp).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(Path(task.stamp), b"")
        return {}


#: The method for every kind of task.
HANDLERS: Mapping[type[protocol.Task], Callable[[Tasks, Any, Reporter], Result]] = {
    protocol.OpenFolder: Tasks.open_folder,
    protocol.Look: Tasks.look,
    protocol.TryCircle: Tasks.try_circle,
    protocol.PaintMask: Tasks.paint_mask,
    protocol.SaveLights: Tasks.save_lights,
    protocol.Preview: Tasks.preview,
    protocol.Solve: Tasks.solve,
    protocol.Export: Tasks.export,
    protocol.WriteExample: Tasks.write_example,
    protocol.ImportCapture: Tasks.import_capture,
    protocol.CompileKernels: Tasks.compile_kernels,
}
