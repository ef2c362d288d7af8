"""A capture in one NumPy archive (``.npz``), read and written.

    images (d, H, W) or (d, H, W, 3), lights (d, 3); optional: mask (H, W), intensities (d,) or (d, 3), name,
    and truth (H, W, 3), truth_depth (H, W), truth_albedo (H, W) or (H, W, 3)

Integers are divided by their full scale, floating-point intensities are taken as they are.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.assemble import build, in_folder, require_truth_size
from photostereo.capture.capture import Capture, Origin
from photostereo.capture.options import ReadOptions, settle_mask
from photostereo.conventions import gray_from_rgb, linear_from_srgb
from photostereo.errors import CaptureError
from photostereo.files.atomic import replacing_file
from photostereo.lights.files import read_lights

LAYOUT = "npz"
EXPECTS = "NumPy: an .npz file with the arrays images (d, H, W) or (d, H, W, 3) and lights (d, 3)"

_TRUTHS = ("truth", "truth_depth", "truth_albedo")


def recognises(path: Path) -> bool:
    """A file named ``.npz``."""
    return path.is_file() and path.suffix.lower() == ".npz"


def read(path: Path, options: ReadOptions) -> Capture:
    """Read an archive."""
    content = _arrays(path)
    chosen = options.light_file()
    if "images" not in content or ("lights" not in content and chosen is None):
        known = ", ".join(sorted(content)) or "nothing"
        raise CaptureError(
            f"{path} holds {known}, but a capture needs the arrays images and lights. Save it with "
            "numpy.savez(path, images=..., lights=..., mask=...)."
        )
    stored = content.pop("images")
    if (
        stored.ndim not in (3, 4)
        or (stored.ndim == 4 and stored.shape[3] != 3)
        or stored.dtype.kind not in "uf"
    ):
        raise CaptureError(
            f"The images in {path} have the shape {stored.shape} and the type {stored.dtype}; expected (d, "
            "H, W) or (d, H, W, 3), unsigned integers or floating point."
        )
    lights, strengths = content.get("lights"), content.get("intensities")
    if chosen is not None:
        table = read_lights(in_folder(path.parent, chosen), count=len(stored))
        lights = table.vectors
        strengths = strengths if table.intensities is None else table.intensities
    bits = stored.dtype.itemsize * 8
    images = _linear(stored, strengths, options, path)
    del stored
    name = str(content["name"]) if "name" in content else path.stem
    notes: tuple[str, ...] = ()
    if options.mask is None and "mask" in content:
        mask = content["mask"].astype(bool)
    else:
        mask, notes = settle_mask(options, images, None, name=name)
    truths = {label: content[label] for label in _TRUTHS if label in content}
    for truth in truths.values():
        require_truth_size(truth, path, (images.shape[1], images.shape[2]))
    origin = Origin(path=path, layout=LAYOUT, bit_depth=bits, notes=notes)
    return build(path, images=images, lights=lights, mask=mask, name=name, origin=origin, **truths)


def write_archive(capture: Capture, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a capture to an ``.npz`` file, exactly; complete or not at all.

    Examples
    --------
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
    arrays = {label: getattr(capture, label) for label in ("images", "lights", "mask", *_TRUTHS)}
    present = {label: array for label, array in arrays.items() if array is not None}
    with replacing_file(target, force=force) as partial:
        np.savez(partial, name=np.array(capture.name), **present)
    return target


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CaptureError(
            f"{path} cannot be read as a NumPy archive ({error}): it is truncated, damaged or holds Python "
            "objects. Save it again with numpy.savez."
        ) from error


def _linear(
    stored: NDArray[Any], intensities: NDArray[Any] | None, options: ReadOptions, path: Path
) -> NDArray[np.float32]:
    if (
        stored.dtype == np.float32
        and intensities is None
        and not options.srgb
        and (stored.ndim == 3 or options.color)
    ):
        return stored
    count = len(stored)
    strengths = (
        np.ones((count, 1)) if intensities is None else np.asarray(intensities, np.float64).reshape(count, -1)
    )
    if strengths.shape[1] not in (1, 3) or not (np.isfinite(strengths) & (strengths > 0)).all():
        raise CaptureError(
            f"The intensities in {path} must be positive numbers, one or three per photograph. Correct the "
            "array."
        )
    top = 1.0 if stored.dtype.kind == "f" else float(np.iinfo(stored.dtype).max)
    keep_color = stored.ndim == 4 and options.color
    images = np.empty(stored.shape if keep_color else stored.shape[:3], dtype=np.float32)
    for target, image, strength in zip(images, stored, strengths, strict=True):
        values = image.astype(np.float32) / np.float32(top)
        if options.srgb:
            values = linear_from_srgb(values)
        if image.ndim == 3:
            values = values / strength.astype(np.float32)
            target[:] = values if keep_color else gray_from_rgb(values)
        else:
            gray = strength if len(strength) == 1 else gray_from_rgb(strength)
            target[:] = values / np.float32(np.squeeze(gray))
    return images
