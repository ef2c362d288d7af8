"""From a list of photographs and a table of lights to a Capture: the part that all folder layouts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.capture import Capture, Origin
from photostereo.capture.options import ReadOptions
from photostereo.capture.settled_mask import settle_mask
from photostereo.core.errors import CaptureError
from photostereo.io.camera import Heads
from photostereo.io.safe import exists
from photostereo.lights.ball.circle import Circle
from photostereo.lights.files.table import require_strengths
from photostereo.lights.near import NEAR_DEGREES, as_if_distant, turn_over_frame
from photostereo.masks.ground import MOST_FRAMES
from photostereo.photographs.brackets import find_brackets, shortest_of
from photostereo.photographs.files import PhotographFiles
from photostereo.photographs.stack import bit_depth, notes_on


@dataclass(frozen=True, eq=False)
class Ingredients:
    """What a layout found in a folder, before any photograph is decoded.

    Attributes
    ----------
    path : the capture's folder or file
    layout : the name of the format
    name : the name of the capture
    files : the photographs, in the order of the lights
    lights : (d, 3) directions, of any length
    light_file : where they came from, for messages
    intensities : (d,) or (d, 3) strengths, or None
    mask_file : the mask picture, or None
    mask_default : ``"full"``, ``"auto"`` or ``"bright"``, where there is no mask picture
    gray_limit : clip gray intensities from above here, or None
    truths : for each truth of :class:`Capture` that is known, the file it came from and its values
    expected_bits : the bit depth that belongs to the layout, or 0; less than that is noted
    ambient, flat : photographs with the lamps off, and of an even surface, or None
    brackets : where several exposures of a light are there, all of them for the one among ``files``
    notes : what the layout noticed
    positions : (d, 3) of near lamps in pixels from the middle of the frame, or None
    in_widths : the positions are in widths of the object from its middle instead
    balls : (column, row, radius) of balls in the photographs, which are not the object
    heads : what the files say beside their pixels, each looked at once
    """

    path: Path
    layout: str
    name: str
    files: Sequence[Path]
    lights: NDArray[Any]
    light_file: Path
    intensities: NDArray[Any] | None = None
    mask_file: Path | None = None
    mask_default: str = "full"
    gray_limit: float | None = None
    truths: Mapping[str, tuple[Path, NDArray[Any]]] = field(default_factory=dict)
    expected_bits: int = 0
    ambient: Path | None = None
    flat: Path | None = None
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    positions: NDArray[Any] | None = None
    in_widths: bool = False
    balls: tuple[tuple[float, float, float], ...] = ()
    heads: Heads = field(default_factory=Heads)


def assemble(found: Ingredients, options: ReadOptions) -> Capture:
    """Decode the photographs and put the capture together."""
    found = with_brackets(found)
    source = open_photographs(found, options)
    images = source.all()
    parts = _parts(found, options, source, lambda: images)
    if found.positions is not None:
        whole = options.in_our_axes(found.positions)
        if found.in_widths:
            positions, distances = _from_widths(whole, parts["mask"], found, options)
        else:
            positions = options.framing.positions(whole, source.full_frame)
            # Strengths are those at the middle of the photographs, not of the part that is used.
            distances = options.framing.scale * np.linalg.norm(whole, axis=1)
        images, note = correct_near_lamps(images, parts["mask"], positions, distances)
        parts["origin"] = replace(parts["origin"], notes=(*parts["origin"].notes, *note))
        if note:
            parts["lights"] = positions
    return build(found.path, images=images, **parts)


def _from_widths(
    widths: NDArray[Any], mask: NDArray[np.bool_], found: Ingredients, options: ReadOptions
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Positions in pixels from the middle of the frame, and distances from the object, of lamps in object widths."""
    if options.crop is not None:
        raise CaptureError(
            f"{found.light_file} places the lamps in widths of the object, and a part of the frame may not hold the "
            "whole of it. Leave out --crop, or give the positions in pixels (position_x, position_y, position_z)."
        )
    cols, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    if not len(cols):
        raise CaptureError(f"The mask of {found.path} is empty, so the object has no width. Correct it.")
    width = float(cols[-1] - cols[0] + 1)
    middle = np.array(
        [
            0.5 * (cols[0] + cols[-1] + 1 - mask.shape[1]),
            0.5 * (mask.shape[0] - rows[0] - rows[-1] - 1),
            0.0,
        ]
    )
    lamps = width * np.asarray(widths, dtype=np.float64)
    return lamps + middle, np.asarray(np.linalg.norm(lamps, axis=1))


def correct_near_lamps(
    images: NDArray[np.float32],
    mask: NDArray[np.bool_],
    positions: NDArray[Any],
    distances: NDArray[Any] | None = None,
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Photographs as distant lamps would have given them, and a note; as they are where the lamps are far.

    ``distances`` are those at which the lamps' strengths hold; the distances from the middle where missing.
    """
    turn = turn_over_frame(positions, (int(images.shape[1]), int(images.shape[2])))
    if turn <= NEAR_DEGREES:
        return images, ()
    note = (
        f"the lamps are near (their direction turns by {turn:.0f}° over the frame): the photographs were corrected to "
        "those of distant lamps"
    )
    corrected = np.asarray(as_if_distant(images, mask, positions)[0], dtype=np.float32)
    if distances is not None:
        nearer = (distances / np.linalg.norm(positions, axis=1)) ** 2
        corrected /= nearer.astype(np.float32).reshape(-1, *(1,) * (images.ndim - 1))
    return corrected, (note,)


def assemble_lazily(found: Ingredients, options: ReadOptions) -> Capture:
    """Put a capture together whose photographs stay on disk; the first of them is decoded."""
    if found.positions is not None:  # the correction of near lamps wants the whole frame
        return assemble(found, options)
    found = with_brackets(found)
    source = open_photographs(found, options)
    parts = _parts(found, options, source, source.frames)
    return build(found.path, images=source, **parts)


def open_photographs(found: Ingredients, options: ReadOptions) -> PhotographFiles:
    """The photographs of a layout, not decoded yet but for the first."""
    require_matching(found.files, len(found.lights), found.path, found.light_file)
    if found.intensities is not None:
        require_strengths(found.intensities, found.light_file)
    return PhotographFiles(
        found.files,
        intensities=found.intensities,
        color=options.color,
        srgb=options.srgb,
        gray_limit=found.gray_limit,
        framing=options.framing,
        ambient=options.path_of("ambient") or found.ambient,
        flat=options.path_of("flat") or found.flat,
        brackets=found.brackets,
        heads=found.heads,
        workers=options.workers,
    )


def with_brackets(found: Ingredients) -> Ingredients:
    """One photograph for each light where several exposures of it are there."""
    if found.brackets:
        return found
    shots = [found.heads[file] for file in found.files]
    groups = find_brackets(found.files, shots, found.lights)
    if groups is None:
        return found
    files, brackets = shortest_of(groups, found.files, shots)
    each = len(found.lights) == len(found.files)
    firsts = [group[0] for group in groups]
    strengths = found.intensities
    return replace(
        found,
        files=files,
        brackets=brackets,
        lights=found.lights[firsts] if each else found.lights,
        intensities=strengths[firsts]
        if strengths is not None and len(strengths) == len(found.files)
        else strengths,
    )


def _parts(
    found: Ingredients,
    options: ReadOptions,
    source: PhotographFiles,
    frames: Callable[[], Iterable[NDArray[Any]]],
) -> dict[str, Any]:
    """Lights, mask, truths, name and origin."""
    for file, truth in found.truths.values():
        require_truth_size(truth, file, source.full_frame)
    truths = {label: options.framing.truth(label, truth) for label, (_, truth) in found.truths.items()}
    balls = np.zeros(source.full_frame, dtype=bool)
    for ball in found.balls:
        balls |= Circle(*ball).with_margin(source.full_frame)
    balls = options.framing.mask(balls)
    mask, mask_notes = settle_mask(
        options,
        source.full_frame,
        frames,
        found.mask_file,
        name=found.name,
        otherwise="auto" if found.balls else found.mask_default,
        telling=lambda: source.sample(MOST_FRAMES, color=True).frames(),
        without=balls if found.balls else None,
    )
    if (mask & ~balls).any():
        mask = mask & ~balls
    ambient = options.path_of("ambient") or found.ambient
    corrected = [] if ambient is None else [f"the ambient light in {ambient.name} is subtracted"]
    flat = options.path_of("flat") or found.flat
    corrected += [] if flat is None else [f"the photographs are divided by {flat.name}"]
    notes = [*found.notes, *corrected, *options.axes_notes(), *notes_on(source), *mask_notes]
    lights = options.in_our_axes(found.lights)
    behind = int((lights[:, 2] <= 0).sum())
    if behind:
        notes.append(
            f"{behind} of {len(lights)} lights in {found.light_file.name} come from behind the object "
            "(z is not positive): directions point from the object to the light, z towards the camera"
        )
    if bit_depth(source) < found.expected_bits:
        notes.append(
            f"the photographs are {bit_depth(source)}-bit where {found.expected_bits} bits are usual: dark "
            "values are coarse. Use the originals if there are any"
        )
    if "truth" in truths and truths["truth"].ndim == 3:  # of another shape it is refused below
        unknown = int((~truths["truth"][mask].any(axis=1)).sum())
        if unknown:
            notes.append(f"the true normal is unknown (zero) at {unknown} mask pixels")
    origin = Origin(
        path=found.path,
        layout=found.layout,
        bit_depth=bit_depth(source),
        files=tuple(file.name for file in found.files),
        notes=tuple(dict.fromkeys(notes)),  # a capture written by us brings its notes along
        axes=options.axes_given(),
        straightened=any(source.curved),
    )
    return {"lights": lights, "mask": mask, "name": found.name, "origin": origin, **truths}


def build(path: Path, **parts: Any) -> Capture:
    """A Capture, with the place it was read from in the message if its parts do not fit."""
    try:
        return Capture(**parts)
    except CaptureError as error:
        raise CaptureError(f"{error} (Read from {path}.)") from error


def require_matching(files: Sequence[Path], lights: int, path: Path, light_file: Path) -> None:
    """At least three photographs, and one light for each; an error that names the files otherwise."""
    if len(files) < 3:
        raise CaptureError(
            f"{path} has {len(files)} photograph(s), but photometric stereo needs at least three under "
            "different lights (ten or more for good results). Add photographs and their lights."
        )
    if len(files) != lights:
        few = "fewer" if lights < len(files) else "more"
        raise CaptureError(
            f"{light_file} gives {lights} lights, {few} than the {len(files)} photographs in {path} (from "
            f"{files[0].name} to {files[-1].name}). Each photograph needs exactly one light, in the same "
            "order: complete the light file, or move pictures that are not photographs of the object out "
            "of the folder. Several exposures of one light are merged where EXIF tells their times."
        )


def require_truth_size(truth: NDArray[Any], path: Path, frame: tuple[int, int]) -> None:
    """The truth has the size of the photographs; an error that names its file otherwise."""
    if truth.shape[:2] != tuple(frame):
        raise CaptureError(
            f"The truth in {path} measures {' × '.join(map(str, truth.shape[:2]))} pixels (rows × columns) "
            f"but the photographs {frame[0]} × {frame[1]}. Crop or scale it in the same way as the "
            "photographs, or remove it."
        )


def in_folder(folder: Path, name: Path) -> Path:
    """A file that the user named: as it stands if it exists, else relative to the capture's folder."""
    return name if exists(name) or not exists(folder / name) else folder / name


def finite_or_zero(truth: NDArray[Any]) -> NDArray[np.float32]:
    """Truth as float32, zero (unknown) where it is NaN or infinite."""
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.asarray(truth, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
