"""Read and write a capture in one NumPy archive (``.npz``).

    images (d, H, W) or (d, H, W, 3), lights (d, 3); optional: mask (H, W), intensities (d,) or (d, 3), name,
    and truth (H, W, 3), truth_depth (H, W), truth_albedo (H, W) or (H, W, 3)

Integers are divided by their full scale; floating-point intensities are used unchanged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.assemble import build, framed_truths
from photostereo.capture.capture import Capture, Origin, require_count
from photostereo.capture.object_mask import choose_mask
from photostereo.capture.opening import finite_or_zero, in_folder
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import CaptureError
from photostereo.io.atomic import replacing_file
from photostereo.io.safe import read_npz
from photostereo.io.spool import SpooledStack
from photostereo.lights.files.reading import read_lights
from photostereo.lights.files.table import require_strengths
from photostereo.lights.lights import Lights
from photostereo.photographs.develop import develop_into
from photostereo.photographs.faults import not_finite
from photostereo.photographs.source import Photographs, PhotographsInMemory, bad_values

LAYOUT = "npz"
EXPECTS = "NumPy: an .npz file with the arrays images (d, H, W) or (d, H, W, 3) and lights (d, 3)"

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
            raise CaptureError(code="archive-text", file=path, name=label)
    chosen = options.path_of("lights")
    if "images" not in content or ("lights" not in content and chosen is None):
        known = ", ".join(sorted(content)) or "nothing"
        raise CaptureError(code="archive-arrays", file=path, found=sorted(content), known=known)
    stored = content.pop("images")
    if (
        len(stored.shape) not in (3, 4)
        or (len(stored.shape) == 4 and stored.shape[3] != 3)
        or stored.dtype.kind not in "uf"
        or math.prod(stored.shape) == 0
    ):
        raise CaptureError(code="archive-images", file=path, shape=stored.shape, dtype=stored.dtype)
    count, height, width = stored.shape[:3]
    require_count(count, str(path), path)
    lights, strengths = content.get("lights"), content.get("intensities")
    if chosen is not None:
        table = read_lights(in_folder(path.parent, chosen), count=count)
        lights = table.vectors
        strengths = strengths if table.intensities is None else table.intensities
    bits, full, framing = stored.dtype.itemsize * 8, (height, width), options.framing
    given = content.get("name")
    name = path.stem if given is None or given.ndim != 0 else str(given)[:NAME_LETTERS]
    images: Photographs = ArchivePhotographs(stored, _strengths(strengths, count, path), options, path)
    if not isinstance(stored, SpooledStack):
        images = PhotographsInMemory(images.all())
    del stored
    mask, notes = choose_mask(images, full, options, content.get("mask", "full"), str(path))
    if "truth" in content:
        content["truth"] = finite_or_zero(content["truth"])
    truths = framed_truths(
        {label: (path, content[label]) for label in _TRUTHS if label in content}, framing, full
    )
    notes = (*notes, *options.axes_notes())
    origin = Origin(path, LAYOUT, bit_depth=bits, notes=notes, axes=options.axes_given())
    lit: Any = options.in_our_axes(np.asarray(lights))
    if chosen is None and "positions" in content:
        near: dict[str, Any] = {label: content.get(label) for label in _NEAR}
        lit = Lights(lit, **near).framed(framing, full)
    return build(path, images=images, lights=lit, mask=mask, name=name, origin=origin, **truths)


def write_archive(capture: Capture, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a capture to an ``.npz`` file, exactly and atomically.

    >>> import tempfile
    >>> from photostereo.capture import load
    >>> lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])
    >>> capture = Capture(images=np.ones((3, 4, 5)), lights=lights, name="wall")
    >>> load(write_archive(capture, tempfile.mkdtemp() + "/wall.npz")).digest == capture.digest
    True
    """
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


def _strengths(given: NDArray[Any] | None, count: int, path: Path) -> NDArray[np.float64]:
    """(d, 3)."""
    strengths = np.ones(count) if given is None else np.asarray(given, np.float64)
    if strengths.shape not in ((count,), (count, 1), (count, 3)):
        raise CaptureError(
            f"The intensities in {path} have shape {strengths.shape}, but there are {count} photographs; "
            "expected one strength or three per photograph. Correct the array.",
            code="lights-count",
            file=path,
        )
    require_strengths(strengths, path)
    return np.broadcast_to(strengths.reshape(count, -1), (count, 3))


class ArchivePhotographs(Photographs):
    """The photographs of an archive as saved, in memory or in a temporary file; developed on access."""

    place: Path

    def __init__(
        self,
        stored: NDArray[Any] | SpooledStack,
        strengths: NDArray[np.float64],
        options: ReadOptions,
        path: Path,
    ) -> None:
        self._stored, self._strengths, self._options, self.place = stored, strengths, options, path

    @property
    def shape(self) -> tuple[int, ...]:
        count, height, width, *channels = self._stored.shape
        framing, color = self._options.framing, self._options.color
        return count, *framing.frame((height, width)), *(channels if color else ())

    def take(self, chosen: Sequence[int]) -> ArchivePhotographs:
        part = self._stored.take(chosen, axis=0)
        return ArchivePhotographs(part, self._strengths[chosen], self._options, self.place)

    def frames(self, control: Control = SILENT) -> Iterator[NDArray[np.float32]]:  # nothing is decoded ahead
        return (self.rows(0, self.shape[1], slice(number, number + 1))[0] for number in range(self.shape[0]))

    def develop(self, number: int, target: NDArray[np.float32], rows: slice = slice(None)) -> None:
        framing = self._options.framing
        stored = self._stored[number, slice(None) if framing.changes else rows]
        whole = np.empty((*stored.shape[:2], *target.shape[2:]), np.float32) if framing.changes else target
        with np.errstate(over="ignore"):  # overflow becomes infinite and is reported
            develop_into(whole, stored, self._strengths[number], bool(self._options.srgb), None)
        if framing.changes:
            target[:] = framing.picture(whole)[rows]
        if bad := bad_values(target):
            raise not_finite(self.place, bad)
