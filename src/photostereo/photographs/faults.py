"""Find faulty photographs in a series: unreadable, duplicate, dark, taken with the light off, or blurred.

They are compared with the others in reduced pictures, because dark and blurred are relative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32, Float64, FloatArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.photographs.alignment.alignment import LONGEST
from photostereo.photographs.alignment.tiles import cut_tiles, tile_means
from photostereo.photographs.frames import Frames
from photostereo.photographs.framing import coarse, resized
from photostereo.runtime.threads import in_turn, processors

#: At least this many photographs are kept: if a fault would leave fewer, the photograph is used anyway.
FEWEST_LEFT = 6
#: Dark photographs have less than this share of the typical brightness. Lights near the horizon leave 0.1 and more of it.
DARK = 0.05
#: With the light off a photograph has at most this share of the typical brightness ...
LIGHT_OFF = 0.5
#: ... and nowhere, but for this share of the pixels, is it brighter than in any other photograph. A lit photograph is
#: brighter than some other in 10 % of the pixels and more: in their shadows.
NOT_BRIGHTER = 0.01
#: Brighter means by more than this share of the typical brightness; noise is less.
BRIGHTER_BY = 0.02
#: A dark photograph is as bright as its light explains if it has at least this share of that brightness. Cast shadows of a
#: raking light leave more; light of the room that was given a direction by mistake has 0.2 to 0.4 of it.
PLAUSIBLE = 0.5
#: It has the pattern of its light if this leaves at most this share of what the pattern of room light leaves of it.
FOLLOWS = 0.7
#: Room light is what shadows show: in at least this share of the pixels another photograph is nearly as dark.
IN_SHADOW = 0.01
#: Nearly as dark: the dark photograph has at least this share of the other's brightness. On a shallow relief under a light
#: at 25° above it, it has up to 0.8.
SHADED = 0.85
#: Pixels along the longer side of the pictures in which brightness is compared: averaging removes noise.
COARSE = 120
#: Detail lies between the first two of these blurs, in pixels; structure coarser than the third survives blur.
BLURS = (0.7, 2.0, 4.0)
#: Pixels along a tile.
TILE = 24
#: Tiles that are examined at most: those with the most detail.
TILES = 150
#: The fewest tiles whose median means something.
FEWEST_TILES = 4
#: Photographs in each of two groups that predict one.
PREDICTING = 12
#: Pictures of a tile that a group is reduced to: three for a matte surface.
BASIS = 3
#: A prediction counts if the correlation of the two groups is at least this.
ALIKE = 0.5
#: A photograph with less than this share of the typical energy of detail is examined.
LITTLE = 0.4
#: It is blurred if it has less than this share of the energy that is predicted for it. The 884 sharp photographs of 60
#: rendered captures have 0.65 at least, one that is blurred by 4 pixels 0.09 at most, by 2.5 pixels 0.34.
ENERGY = 0.3
#: It also has less than this share of the predicted detail itself: sharp ones 0.53 at least, blurred ones 0.14 and 0.4.
SHARE = 0.4
#: If more than this share seem blurred, detail depends on the light, and none counts as blurred.
MOST_BLURRED = 0.35

#: Why a photograph is left out, by the code of its fault; a part of a sentence.
WHY = {
    "damaged-image": "it is damaged or truncated",
    "unreadable-file": "it cannot be read",
    "size-mismatch": "its size differs from that of the others",
    "mode-mismatch": "it is gray and the others are in color, or vice versa",
    "photograph-not-finite": "it has values that are NaN, infinite or beyond 1e15",
    "duplicate": "it is a copy of {other}",
    "dark": "it is almost black",
    "light-off": "it was taken with the light off",
    "blurred": "it is blurred",
    "mismatched": "it does not match the others: another object, or one that moved",
    "excluded": "it was excluded",
}
#: The same in a word or two, for a mark on a photograph.
LABELS = {
    "duplicate": "duplicate",
    "dark": "almost black",
    "light-off": "light off",
    "blurred": "blurred",
    "mismatched": "does not match",
    "size-mismatch": "another size",
}


@dataclass(frozen=True)
class Fault:
    """A fault of one photograph."""

    file: str  #: name of the photograph
    reason: str  #: its code
    other: str = ""  #: another photograph that the words mention
    used: bool = False  #: whether the photograph is used anyway, because too few would be left
    wanted: bool = False  #: whether it is used because the user requested it

    @property
    def why(self) -> str:
        """The reason in words."""
        return WHY.get(self.reason, "it cannot be used").format(other=self.other)

    @property
    def finding(self) -> Finding:
        """The fault as a note."""
        if not self.used:
            return Finding("left-out", file=self.file, reason=self.reason, why=self.why)
        if self.wanted:
            because = "as requested"
        else:
            because = f"because fewer than {FEWEST_LEFT} would be left"
        return Finding(
            "used-all-the-same", file=self.file, reason=self.reason, why=self.why, because=because
        )

    def as_error(self, path: Path) -> CaptureError:
        """The fault as an error, for use if no photograph may be left out."""
        words = f"{path} cannot be used: {self.why}. Replace it, or leave it out together with its light."
        return CaptureError(words, code=self.reason, file=path, remedy="leave-out")

    def as_dict(self) -> dict[str, Any]:
        """For ``summary.json``."""
        return {"file": self.file, "reason": self.reason, "why": self.why}


def survey(
    source: Frames, control: Control = SILENT
) -> tuple[Float32, float, dict[int, CaptureError]]:
    """Reduced pictures of those photographs that can be read, their scale, and the errors of the others by number."""
    scale = min(1.0, LONGEST / max(source.shape[1:3]))
    control.stage("photographs", source.shape[0])
    pictures = []
    errors = {}
    for number, frame in enumerate(source.frames_or_errors(control)):
        if isinstance(frame, CaptureError):
            errors[number] = frame
        else:
            pictures.append(reduced(frame, scale))
        control.advance()
    return np.stack(pictures) if pictures else np.empty((0, 1, 1), np.float32), scale, errors


def reduced(frame: Float32, scale: float) -> Float32:
    """The square root of a photograph in gray, so that bright parts do not dominate, at a lower resolution."""
    gray = gray_from_rgb(frame) if frame.ndim == 3 else frame
    return np.sqrt(np.maximum(resized(gray, scale), 0))


def find_duplicates(files: Sequence[Path], digests: Mapping[Path, str]) -> dict[int, int]:
    """Map each photograph that is a copy to its original, the one of equal bytes with the shortest name."""
    known = [number for number, file in enumerate(files) if file in digests]
    shortest_last = sorted(known, key=lambda k: (-len(files[k].name), -k))
    first = {digests[files[number]]: number for number in shortest_last}
    return {k: original for k in known if (original := first[digests[files[k]]]) != k}


def find_dark(pictures: Float32) -> dict[int, str]:
    """Photographs (d, H, W), as roots of intensities, that are ``"dark"`` or were taken with the ``"light-off"``.

    Room light is in every photograph, and the light only adds to it. So with the light off, no pixel is brighter than
    in any other photograph.
    """
    bright = np.stack([coarse(picture * picture, COARSE) for picture in pictures])
    level = bright.mean(axis=(1, 2), dtype=np.float64)
    typical = float(np.median(level))
    if typical <= 0:
        return {}
    found = {}
    ordered = np.sort(bright, axis=0)[:2]
    for number in np.flatnonzero(level < LIGHT_OFF * typical):
        own = bright[number]
        least = np.where(own <= ordered[0], ordered[1], ordered[0])  # of the others
        if float((own > least + BRIGHTER_BY * typical).mean()) < NOT_BRIGHTER:
            found[int(number)] = "light-off"
        elif level[number] < DARK * typical:
            found[int(number)] = "dark"
    return found


def judge_dark(
    pictures: Float32, number: int, reason: str, directions: FloatArray | None = None
) -> str:
    """Judge a photograph that :func:`find_dark` names: it may be lit after all, by a weak or a raking light.

    Parameters
    ----------
    pictures : (d, H, W) array
        Roots of intensities.
    number : int
        The photograph in question.
    reason : str
        The reason that :func:`find_dark` gives.
    directions : (d, 3) array, optional
        Directions to the lights as the user states them, NaN where they are unknown.

    Returns
    -------
    str
        ``"dark"``, ``"light-off"``, or an empty string for a photograph that is lit: its brightness or its pattern is what
        a matte surface shows under the stated light. Without a stated light, room light must be proved by shadows: those
        of the other photographs are no darker.
    """
    bright = np.stack([coarse(picture * picture, COARSE) for picture in pictures])
    bright = bright.reshape(len(bright), -1).astype(np.float64)
    own = bright[number]
    others = np.arange(len(bright)) != number
    typical = float(np.median(bright.mean(axis=1)))
    if directions is None or not np.isfinite(directions[number]).all():
        visible = own > BRIGHTER_BY * typical
        shaded = visible & (own >= SHADED * bright[others].min(axis=0))
        is_lit = reason == "light-off" and float(shaded.mean()) < IN_SHADOW
    else:
        others &= np.isfinite(directions).all(axis=1)
        units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        surface = np.linalg.lstsq(units[others], bright[others], rcond=None)[0]
        predicted = np.maximum(units[number] @ surface, 0.0)
        if own.sum() >= PLAUSIBLE * predicted.sum():
            return ""
        by_room = _misfit(own, bright[others].mean(axis=0))
        is_lit = _misfit(own, predicted) <= FOLLOWS * by_room
        # What is nearly black may be a light at the horizon; as light of the room it would not matter.
        is_lit |= own.mean() < DARK * typical
    if not is_lit:
        return reason
    if own.mean() < DARK * typical:
        return "dark"
    return ""


def _misfit(values: Float64, pattern: Float64) -> float:
    """Squared distance of values from the closest multiple of a pattern."""
    factor = (values @ pattern) / max(float(pattern @ pattern), 1e-30)
    return float(((values - factor * pattern) ** 2).sum())


def find_blurred(pictures: Float32) -> list[int]:
    """Photographs (d, H, W) with much less fine detail than the others predict.

    In a small tile each photograph is nearly a combination of a few others. The one that fits its coarse structure predicts
    its detail under its own light: light from the front shows less relief, but that is not blur. Two groups of the
    others predict it, so that their noise is not mistaken for detail.
    """
    side = min(TILE, max(pictures.shape[1:]) // 8)
    if side < 4 or len(pictures) < FEWEST_LEFT:
        return []

    def bands(number: int) -> tuple[Float32, Float32, float]:
        """Fine detail and coarse structure of a picture, and the energy of the detail relative to the picture's."""
        picture = pictures[number]
        first, second, coarsest = (cv2.GaussianBlur(picture, (0, 0), blur) for blur in BLURS)
        detail = first - second
        return detail, coarsest, np.vdot(detail, detail) / max(np.vdot(picture, picture), 1e-30)

    fine, smooth, energy = zip(*in_turn(bands, len(pictures), processors()), strict=True)
    suspects = np.flatnonzero(np.array(energy) < LITTLE * np.median(energy))
    if not suspects.size:
        return []
    squares = np.array([tile_means(f * f, side) for f in fine], np.float64)
    detailed = np.argsort(-np.median(squares, axis=0), kind="stable")[:TILES]
    details, rest = (
        np.stack([cut_tiles(part, side, detailed) for part in stack], axis=1).astype(np.float64)
        for stack in (fine, smooth)
    )
    blurred = [int(number) for number in suspects if _is_blurred(details, rest, int(number))]
    if len(blurred) > MOST_BLURRED * len(pictures):
        return []
    return blurred


def _is_blurred(fine: Float64, rest: Float64, number: int) -> bool:
    """Whether one photograph lacks the detail that its coarse structure and the others predict, from tiles (T, d, n)."""
    others = np.delete(np.arange(fine.shape[1]), number)
    predicted = []
    for group in (others[::2], others[1::2]):
        group = group[:: -(-len(group) // PREDICTING)]
        known = rest[:, group]
        values, vectors = np.linalg.eigh(known @ known.transpose(0, 2, 1))
        values = values[:, None, -BASIS:]
        vectors = vectors[..., -BASIS:]
        inverse = (
            vectors / np.maximum(values, 1e-6 * values[..., -1:] + 1e-30)
        ) @ vectors.transpose(0, 2, 1)
        shares = inverse @ (known @ rest[:, number, :, None])
        predicted.append((fine[:, group] * shares).sum(axis=1))
    (one, other) = predicted
    own = fine[:, number]
    common = (one * other).sum(axis=1)
    alike = common > ALIKE * np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1)) + 1e-12
    if alike.sum() < FEWEST_TILES:
        return False
    surest = np.argsort(-common * alike)[: max(FEWEST_TILES, int(alike.sum()) // 2)]
    energy = (own[surest] ** 2).sum(axis=1) / common[surest]
    share = (own[surest] * (one + other)[surest]).sum(axis=1) / (2 * common[surest])
    return bool(np.median(energy) < ENERGY and np.median(share) < SHARE)
