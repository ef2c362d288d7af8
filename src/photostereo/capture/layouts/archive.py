"""Read and write a capture in one NumPy archive (``.npz``); ``docs/photographs.md`` names its arrays.

Integers are divided by their full scale; floating-point intensities are used unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.assemble import build, choose_mask, framed_truths
from photostereo.capture.capture import Capture, Origin, require_count
from photostereo.capture.layouts import finite_or_zero, in_folder
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32, Float64
from photostereo.core.errors import CaptureError
from photostereo.io.atomic import replacing_file
from photostereo.io.safe import read_npz
from photostereo.io.spool import SpooledStack
from photostereo.lights.files.reading import read_lights
from photostereo.lights.files.table import require_strengths
from photostereo.lights.lights import Lights, wrong_count
from photostereo.photographs.develop import develop_into
from photostereo.photographs.frames import Frames, FramesInMemory, require_finite

LAYOUT = "npz"

#: Largest number of characters to keep of a capture's name.
NAME_LETTERS = 200

_TRUTHS = ("truth", "truth_depth", "truth_albedo")
#: Fields of near lights besides directions.
_NEAR = ("positions", "distances", "camera")


def recognizes(path: Path) -> bool:
    """A file named ``.npz``."""
    return path.is_file() and path.suffix.lower() == ".npz"


def read(path: Path, options: ReadOptions) -> Capture:
    """Read an archive."""
    content = read_npz(path, "capture", remedy="Save it again with numpy.savez.", stack="images")
    for label, array in content.items():
        if label != "name" and array.dtype.kind == "U":
            raise CaptureError(
                f"{label} in {path} is text; expected numbers. Save it again with numpy.savez.",
                code="archive-text",
                file=path,
                name=label,
            )
    chosen = options.path_of("lights")
    if "images" not in content or ("lights" not in content and chosen is None):
        known = ", ".join(sorted(content)) or "nothing"
        raise CaptureError(
            f"{path} holds {known}, but a capture needs the arrays images and lights. Save it "
            "with numpy.savez(path, images=..., lights=..., mask=...).",
            code="archive-arrays",
            file=path,
            found=sorted(content),
            known=known,
        )
    stored = content.pop("images")
    shape = stored.shape
    dtype = stored.dtype
    if (
        len(shape) not in (3, 4)
        or shape[3:] not in ((), (3,))
        or dtype.kind not in "uf"
        or 0 in shape
    ):
        raise CaptureError(
            f"The images in {path} have the shape {shape} and the type {dtype}; expected (d, H, "
            "W) or (d, H, W, 3), unsigned integers or floating point.",
            code="archive-images",
            file=path,
            shape=shape,
            dtype=dtype,
        )
    count = shape[0]
    full = (shape[1], shape[2])
    framing = options.framing
    require_count(count, str(path), path)
    lights = content.get("lights")
    strengths = content.get("intensities")
    if chosen is not None:
        table = read_lights(in_folder(path.parent, chosen), count=count)
        lights = table.vectors
        strengths = strengths if table.intensities is None else table.intensities
    given = content.get("name")
    name = path.stem if given is None or given.ndim != 0 else str(given)[:NAME_LETTERS]
    divisors = np.ones(count) if strengths is None else np.asarray(strengths, np.float64)
    if divisors.shape not in ((count,), (count, 1), (count, 3)):
        raise wrong_count(path, count, divisors.size, path)
    require_strengths(divisors, path)
    of_each = np.broadcast_to(divisors.reshape(count, -1), (count, 3))
    images: Frames = ArchivePhotographs(stored, of_each, options, path)
    if not isinstance(stored, SpooledStack):
        images = FramesInMemory(images.all())
    del stored
    mask, notes = choose_mask(images, full, options, content.get("mask", "full"), str(path))
    if "truth" in content:
        content["truth"] = finite_or_zero(content["truth"])
    truths = {label: (path, content[label]) for label in _TRUTHS if label in content}
    origin = Origin(
        path,
        LAYOUT,
        bit_depth=dtype.itemsize * 8,
        notes=(*notes, *options.axes_notes()),
        axes=options.axes_given(),
    )
    lit: Any = options.in_our_axes(np.asarray(lights))
    if chosen is None and "positions" in content:
        near: dict[str, Any] = {label: content.get(label) for label in _NEAR}
        lit = Lights(lit, **near).framed(framing, full)
    parts = framed_truths(truths, framing, full)
    return build(path, images=images, lights=lit, mask=mask, name=name, origin=origin, **parts)


def write_archive(capture: Capture, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a capture to an ``.npz`` file, exactly and atomically."""
    target = Path(path)
    if target.suffix.lower() != ".npz":
        target = target.with_name(target.name + ".npz")
    lights = capture.lights
    arrays = {label: getattr(capture, label) for label in ("images", "mask", *_TRUTHS)}
    arrays |= {label: getattr(lights, label) for label in _NEAR}
    arrays["lights"] = lights.directions if lights.known else None
    present = {label: array for label, array in arrays.items() if array is not None}
    with replacing_file(target, force=force) as partial:
        np.savez(partial, name=np.array(capture.name), **present)
    return target


@dataclass(frozen=True, eq=False)
class ArchivePhotographs(Frames):
    """The photographs of an archive as saved, in memory or in a temporary file; developed on access."""

    stored: NDArray[Any] | SpooledStack
    strengths: Float64
    options: ReadOptions
    place: Path

    @property
    def shape(self) -> tuple[int, ...]:
        count, height, width, *channels = self.stored.shape
        frame = self.options.framing.frame((height, width))
        return count, *frame, *(channels if self.options.color else ())

    def take(self, chosen: Sequence[int]) -> ArchivePhotographs:
        return replace(
            self, stored=self.stored.take(chosen, axis=0), strengths=self.strengths[chosen]
        )

    def frames(self, control: Control = SILENT) -> Iterator[Float32]:  # nothing is decoded ahead
        return (
            self.rows(0, self.shape[1], slice(number, number + 1))[0]
            for number in range(self.shape[0])
        )

    def develop(self, number: int, target: Float32, rows: slice = slice(None)) -> None:
        framing = self.options.framing
        stored = self.stored[number, slice(None) if framing.changes else rows]
        if framing.changes:
            whole = np.empty((*stored.shape[:2], *target.shape[2:]), np.float32)
        else:
            whole = target
        with np.errstate(over="ignore"):  # overflow becomes infinite and is reported
            develop_into(whole, stored, self.strengths[number], bool(self.options.srgb), None)
        if framing.changes:
            target[:] = framing.picture(whole)[rows]
        require_finite(target, self.place)
