"""Captures without a light file: the lamps are found from a ball, in the photographs or in a series of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.assemble import build, correct_near_lamps
from photostereo.capture.ball_series import find_ball_series, is_ball_series, pair_photographs
from photostereo.capture.capture import Capture, Origin
from photostereo.capture.layouts.folder import ambient_and_flat, photographs_and_mask
from photostereo.capture.options import ReadOptions
from photostereo.capture.settled_mask import settle_mask
from photostereo.core.conventions import BoolArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.io.camera import Heads, focal_in_pixels
from photostereo.lights.ball.calibration import Calibration, calibrate_lamps, merge_calibrations
from photostereo.lights.ball.circle import Circle, mask_circle
from photostereo.masks.ground import MOST_FRAMES
from photostereo.masks.reading import read_mask
from photostereo.photographs.brackets import find_brackets, shortest_of
from photostereo.photographs.files import PhotographFiles
from photostereo.photographs.stack import Stack, decoded, read_stack

LAYOUT = "photographs with a ball"


@dataclass(frozen=True, eq=False)
class Unlit:
    """Photographs whose lamps are not known yet."""

    path: Path
    files: list[Path]
    mask_file: Path | None
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    heads: Heads = field(default_factory=Heads)


def photographs_of(path: Path) -> Unlit:
    """The photographs in a folder, or in its ``Objects/``."""
    inside = path / "Objects"
    place = inside if inside.is_dir() and not photographs_and_mask(path)[0] else path
    files, mask = photographs_and_mask(place)
    heads = Heads()
    shots = [heads[file] for file in files]
    groups = find_brackets(files, shots)
    if groups is None:
        return Unlit(path, files, mask, heads=heads)
    chosen, brackets = shortest_of(groups, files, shots)
    return Unlit(path, chosen, mask, brackets, heads)


def calibrate(
    path: str | os.PathLike[str],
    *,
    ball: str | os.PathLike[str] | None = None,
    circle: Sequence[float] | None = None,
    focal: float | None = None,
    card: Sequence[int] | None = None,
    srgb: bool | None = None,
    workers: int | None = None,
) -> Calibration:
    """Find the lamps of a folder of photographs from a ball.

    Parameters
    ----------
    path : path
        A folder of photographs, each under one light.
    ball : path, optional
        A folder of photographs of the ball under the same lights. By default a folder such as ``chrome/`` or
        ``LightProbe-1/`` in or beside ``path`` is used, then the photographs themselves.
    circle : sequence of 3 float, optional
        Center (x, y) and radius of the ball in pixels; by default it is found.
    focal : float, optional
        Focal length in pixels, for the perspective of a ball away from the center.
    card : sequence of 4 int, optional
        Left, top, right and bottom of a gray card that faces the camera.
    srgb : bool, optional
        Undo the sRGB curve of the photographs; by default for JPEG files and those tagged as sRGB.
    workers : int, optional
        Decoding threads.

    Returns
    -------
    Calibration
        Directions, strengths, how sure they are, warnings and a picture to check them by.

    Raises
    ------
    CaptureError
        If there is no ball, or no highlight on it; the message says what to do.

    Examples
    --------
    >>> import tempfile
    >>> from photostereo.io.sixteen_bit import write_png
    >>> from photostereo.scenes import dome_lights
    >>> from photostereo.scenes.balls import shoot_table
    >>> from photostereo.scenes.studio import Ball
    >>> ball, lamps = Ball("black", 45, 45, 32), dome_lights(4, max_angle=45)
    >>> shoot = shoot_table([ball], size=(90, 90), scene=None, lights=lamps)
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number, image in enumerate(shoot.images):
    ...     write_png(folder / f"{number}.png", np.rint(image * 65535).astype(np.uint16))
    >>> found = calibrate(folder).directions
    >>> bool((found * lamps).sum(axis=1).min() > np.cos(np.radians(2)))
    True
    """
    return find_lamps(
        path, ReadOptions(ball=ball, circle=circle, focal=focal, card=card, srgb=srgb, workers=workers)
    )


def find_lamps(path: str | os.PathLike[str], options: ReadOptions) -> Calibration:
    """As :func:`calibrate`, with the options in one piece."""
    place = Path(path).expanduser()
    if not place.is_dir():
        raise CaptureError(f"{place} is not a folder. Give the folder that holds the photographs.")
    unlit = photographs_of(place)
    _require_photographs(unlit)
    stack = decoded(_open(unlit, options))
    found = _find_lamps(unlit, stack, options)
    # What the camera wrote down and does not fit is said here too.
    return replace(found, warnings=(*stack.camera_notes, *found.warnings))


def read(path: Path, options: ReadOptions) -> Capture:
    """A capture from photographs and a ball."""
    unlit = photographs_of(path)
    _require_photographs(unlit)
    stack = decoded(_open(unlit, options))
    calibration = _find_lamps(unlit, stack, options)
    images = stack.images
    for image, strength in zip(images, calibration.strengths, strict=True):
        image /= np.float32(strength)
    frame = (int(images.shape[1]), int(images.shape[2]))
    balls = calibration.balls_mask() if calibration.in_frame else np.zeros(frame, dtype=bool)
    mask, mask_notes = _mask(options, images, unlit, balls)
    notes = [*stack.notes, *mask_notes, _how(calibration), *calibration.warnings]
    lights = calibration.directions
    if calibration.positions is not None and calibration.in_frame:
        images, note = correct_near_lamps(images, mask, calibration.positions)
        notes += note
    # The ball is looked for in the whole photographs; what is used of them is cut out afterwards.
    if options.framing.changes:
        images = np.stack([options.framing.picture(image) for image in images])
        mask = options.framing.mask(mask)
    return build(
        path,
        images=images,
        lights=lights,
        mask=mask,
        name=path.resolve().name,
        origin=Origin(
            path=path,
            layout=LAYOUT,
            bit_depth=stack.bit_depth,
            files=tuple(file.name for file in unlit.files),
            notes=tuple(notes),
            calibration=calibration,
            straightened=stack.straightened,
        ),
    )


def _require_photographs(unlit: Unlit) -> None:
    if len(unlit.files) < 3:
        raise CaptureError(
            f"{unlit.path} has {len(unlit.files)} photograph(s), but photometric stereo needs at least three under "
            "different lights (ten or more for good results). Add photographs."
        )


def _open(unlit: Unlit, options: ReadOptions) -> PhotographFiles:
    ambient, flat = ambient_and_flat(unlit.files[0].parent)
    return PhotographFiles(
        unlit.files,
        color=options.color,
        srgb=options.srgb,
        ambient=options.path_of("ambient") or ambient,
        flat=options.path_of("flat") or flat,
        brackets=unlit.brackets,
        heads=unlit.heads,
        workers=options.workers,
    )


def _gray(images: NDArray[Any]) -> NDArray[Any]:
    return images if images.ndim == 3 else np.stack([gray_from_rgb(image) for image in images])


def _find_lamps(unlit: Unlit, stack: Stack, options: ReadOptions) -> Calibration:
    names = [file.name for file in unlit.files]
    scene = _gray(stack.images)
    mask = None
    if unlit.mask_file is not None:
        mask = read_mask(unlit.mask_file, (int(scene.shape[1]), int(scene.shape[2])))[0]
    common: dict[str, Any] = {"files": names, "card": options.card}
    circles: tuple[Circle, ...] = ()
    if options.circle is not None:
        x, y, radius = options.circle
        circles = (Circle(float(x), float(y), float(radius)),)
    folder = options.path_of("ball")
    if folder is not None:
        if not folder.is_dir():
            raise CaptureError(f"The folder of the ball, {folder}, does not exist. Check its name.")
        return _from_series(folder, unlit, scene, mask, circles, options, common)
    own = unlit.files[0].parent
    series = find_ball_series(unlit.path, unlit.files)
    if is_ball_series(own):  # the ball itself was photographed
        series = [own, *series]
    found = []
    for folder in series:
        try:
            found.append(_from_series(folder, unlit, scene, mask, circles, options, common))
        except CaptureError:
            continue  # a folder that is merely called so
    if found:
        return merge_calibrations(found)
    focal = options.focal or _focal(unlit.files, unlit.heads, scene)
    return replace(calibrate_lamps(scene, mask=mask, circles=circles, focal=focal, **common), in_frame=True)


def _focal(files: Sequence[Path], heads: Heads, images: NDArray[Any]) -> float | None:
    """The focal length in pixels that the camera wrote down."""
    return focal_in_pixels([heads[file] for file in files], (int(images.shape[1]), int(images.shape[2])))


def _from_series(
    folder: Path,
    unlit: Unlit,
    scene: NDArray[Any],
    mask: BoolArray | None,
    circles: tuple[Circle, ...],
    options: ReadOptions,
    common: dict[str, Any],
) -> Calibration:
    pictures, mask_file = photographs_and_mask(folder)
    files = pair_photographs(unlit.files, pictures, folder)
    # Whatever the object's photographs are: a JPEG has the curve in it.
    curved = True if files[0].suffix.lower() in (".jpg", ".jpeg") else options.srgb
    images = read_stack(files, srgb=curved, heads=unlit.heads, workers=options.workers).images
    if not circles and mask_file is not None:
        # A mask beside the ball is the photographer's own word on where it is.
        drawn = mask_circle(read_mask(mask_file, (int(images.shape[1]), int(images.shape[2])))[0])
        circles = () if drawn is None else (drawn,)
    try:
        own = folder.resolve() == unlit.files[0].resolve().parent
        return calibrate_lamps(
            images,
            scene=None if own else scene,
            mask=None if own else mask,
            circles=circles,
            focal=options.focal or _focal(files, unlit.heads, images),
            **common,
        )
    except CaptureError as error:
        raise CaptureError(f"{error} (In the photographs of {folder}.)") from error


def _mask(
    options: ReadOptions, images: NDArray[Any], unlit: Unlit, balls: BoolArray
) -> tuple[BoolArray, tuple[str, ...]]:
    """The object's mask without the balls."""
    gray = _gray(images)
    frame = (int(gray.shape[1]), int(gray.shape[2]))
    mask, notes = settle_mask(
        replace(options, crop=None, scale=1.0),
        frame,
        lambda: gray,
        unlit.mask_file,
        name=unlit.path.name,
        otherwise="auto",
        telling=lambda: _open(unlit, options).sample(MOST_FRAMES, color=True).frames(),
        without=balls,
    )
    mask = mask & ~balls
    if not mask.any():
        raise CaptureError(
            f"In {unlit.path} nothing is left for the object beside the ball. If the ball itself is the object, give a "
            "light file (--lights)."
        )
    return mask, notes


def _how(calibration: Calibration) -> str:
    sources = ", ".join(dict.fromkeys(calibration.found_from))
    worst = float(np.max(calibration.residual))
    return (
        f"no light file: the lamps were found from a {sources} (good to about {worst:.1f}°), their strengths: "
        f"{calibration.strengths_from}"
    )
