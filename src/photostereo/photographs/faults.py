"""What is wrong with single photographs of a series: unreadable, a duplicate, dark, taken with the light off, blurred.

They are compared with the others in reduced pictures (:mod:`photostereo.photographs.survey`), because nothing is dark or
blurred in itself. What they must have in common is checked when they are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError

Pictures = NDArray[np.float32]

#: Fewer photographs than this are not left alone: if a fault would leave less, the photograph is used all the same.
FEWEST_LEFT = 6
#: Dark photographs have less than this share of the typical brightness. Lights near the horizon leave 0.1 and more of it.
DARK = 0.05
#: With the light off a photograph has at most this share of the typical brightness ...
LIGHT_OFF = 0.5
#: ... and nowhere (but for this share of the pixels) is it brighter than in any other photograph, by more than this share
#: of the typical brightness. A lit photograph is brighter than some other in 10 % of the pixels and more: in their shadows.
NOT_BRIGHTER, BRIGHTER_BY = 0.01, 0.02
#: Pixels along the longer side of the pictures in which brightness is compared: averaging takes the noise away.
COARSE = 120
#: Blur beside which detail is measured, in pixels, finest first; and the pixels along a tile.
BLURS, TILE = (1.0, 2.0, 4.0, 8.0, 16.0), 24
#: Tiles with the most detail that count, and the tiles whose finest detail is taken as noise.
DETAILED, SMOOTHEST = 0.3, 0.1
#: Logarithms of fine and medium over coarse detail, relative to the other photographs, below which one is blurred. Rendered
#: and real photographs that are sharp have at least -1.9 and -0.95, a blur of 4 pixels gives less than -2.4 and -1.1.
BLURRED = (-2.4, -1.0)
#: Share of the tiles that must be blurred: shadows take the detail of some. On 24 rendered captures a blur of 4 pixels is
#: found in 19, 13 and 9 with 0.5, 0.65 and 0.7, of 6 pixels in 24, 24 and 23; two sharp spheres of 40 captures need 0.65.
MOST_TILES = 0.65
#: If more than this share seem blurred, detail depends on the light.
MOST_BLURRED = 0.35

#: The reasons in words, by code.
WORDS = {
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


@dataclass(frozen=True)
class Fault:
    """What is wrong with one photograph."""

    file: str  #: name of the photograph
    reason: str  #: a key of :data:`WORDS`
    other: str = ""  #: another photograph that the words mention
    used: bool = False  #: whether the photograph is used all the same, because too few would be left
    wanted: bool = False  #: whether it is used because the user said so

    @property
    def why(self) -> str:
        """The reason in words."""
        return WORDS.get(self.reason, "it cannot be used").format(other=self.other)

    def __str__(self) -> str:
        """One line.

        >>> print(Fault("b.jpg", "duplicate", "a.jpg"))
        b.jpg is left out: it is a copy of a.jpg
        """
        if self.used:
            reason = (
                "as asked" if self.wanted else f"because fewer than {FEWEST_LEFT} photographs would be left"
            )
            return f"{self.file} is used although {self.why}, {reason}"
        return f"{self.file} is left out: {self.why}"

    def as_error(self, path: Path) -> CaptureError:
        """For those who want no photograph to be left out."""
        return CaptureError(
            f"{path} cannot be used: {self.why}. Replace it, or leave it out together with its light.",
            code=self.reason,
            file=path,
            remedy="leave-out",
        )

    def as_dict(self) -> dict[str, Any]:
        """For ``summary.json``."""
        return {"file": self.file, "reason": self.reason, "why": self.why}


def find_duplicates(files: Sequence[Path], digests: Mapping[Path, str]) -> dict[int, int]:
    """Photographs whose bytes are those of an earlier one, and which.

    >>> a, b, c = Path("a"), Path("b"), Path("c")
    >>> find_duplicates([a, b, c], {a: "1", b: "2", c: "1"})
    {2: 0}
    """
    first: dict[str, int] = {}
    found = {}
    for number, file in enumerate(files):
        digest = digests.get(file)
        if digest is not None and first.setdefault(digest, number) != number:
            found[number] = first[digest]
    return found


def find_dark(pictures: Pictures) -> dict[int, str]:
    """Photographs (d, H, W), as roots of linear intensities, that are ``"dark"`` or were taken with the
    ``"light-off"``.

    What the room lights is in every photograph; what the light adds is nowhere negative. So with the light off no
    pixel is brighter than in any other photograph.
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


def find_blurred(pictures: Pictures) -> list[int]:
    """Photographs (d, H, W) that show much less fine detail, compared with their coarse detail, than the others do."""
    side = min(TILE, max(pictures.shape[1:]) // 8)
    if side < 4 or len(pictures) < FEWEST_LEFT:
        return []
    impulse = np.zeros((8 * int(BLURS[-1]) + 1,) * 2, np.float32)
    impulse[impulse.shape[0] // 2, impulse.shape[1] // 2] = 1
    gain = np.array([np.sum(band * band) for band in _bands(impulse)])[:, None]  # of white noise
    energy = np.stack([[_tile_means(band * band, side) for band in _bands(picture)] for picture in pictures])
    noise = np.quantile(energy[:, 0], SMOOTHEST, axis=1)[:, None, None] / gain[0] * gain
    signal = np.maximum(energy - noise, 0.3 * noise + 1e-9)
    scores = []
    for band in (1, 2):
        order = np.argsort(-np.median(signal[:, band], axis=0))
        chosen = order[: max(6, int(DETAILED * len(order)))]
        share = np.log(signal[:, band, chosen] / signal[:, 3, chosen])
        scores.append(np.quantile(share - np.median(share, axis=0), MOST_TILES, axis=1))
    blurred = np.flatnonzero((scores[0] < BLURRED[0]) & (scores[1] < BLURRED[1]))
    return [] if len(blurred) > MOST_BLURRED * len(pictures) else blurred.tolist()


def _bands(picture: Pictures) -> list[Pictures]:
    """The picture's detail, from the finest to the coarsest; what is coarse is blurred at a quarter of the size."""
    smooth = [cv2.GaussianBlur(picture, (0, 0), blur) for blur in BLURS[:3]]
    size, reached = picture.shape[::-1], BLURS[2]
    small = cv2.resize(smooth[2], None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    for blur in BLURS[3:]:
        blurred = cv2.GaussianBlur(small, (0, 0), (blur**2 - reached**2) ** 0.5 / 4)
        smooth.append(cv2.resize(blurred, size, interpolation=cv2.INTER_LINEAR))
    return [picture - smooth[0], smooth[0] - smooth[1], smooth[1] - smooth[2], smooth[3] - smooth[4]]


def _tile_means(values: Pictures, side: int) -> NDArray[np.float64]:
    rows, columns = values.shape[0] // side, values.shape[1] // side
    whole = values[: rows * side, : columns * side]
    return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA), np.float64).ravel()


def coarse(picture: Pictures, longest: int) -> Pictures:
    """A picture whose longer side has at most this many pixels."""
    factor = longest / max(picture.shape)
    if factor >= 1:
        return picture
    return np.asarray(cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA))


def require_alike(frame: tuple[int, ...], path: Path, expected: tuple[int, int], first: Path) -> None:
    """Raise if a photograph has another height and width than the first."""
    if frame != expected:
        raise CaptureError(
            f"{path} is {frame[1]} × {frame[0]} pixels (width × height) but {first.name} is {expected[1]} × "
            f"{expected[0]}. All photographs must be taken from the same position and have the same size: export them "
            "again without cropping or rotating.",
            code="size-mismatch",
            file=path,
            found=frame,
            expected=expected,
        )


def mode_mismatch(path: Path, first: Path, *, first_is_color: bool) -> CaptureError:
    """A gray photograph among those in color, or the other way round."""
    own, usual = ("gray", "RGB") if first_is_color else ("RGB", "gray")
    return CaptureError(
        f"{path} is {own} but {first.name} is {usual}. Export all photographs in the same mode.",
        code="mode-mismatch",
        file=path,
    )


def companion_mismatch(path: Path, first: Path) -> CaptureError:
    """An ambient or flat photograph that does not belong to the others."""
    return CaptureError(
        f"{path} does not have the size or the color mode of {first.name}. Take it with the same camera settings as "
        "the photographs, or move it out of the folder.",
        code="companion-mismatch",
        file=path,
    )


def not_finite(path: Path, count: int) -> CaptureError:
    """A photograph with values that are no intensities."""
    return CaptureError(
        f"{path} has {count} values that are NaN, infinite or beyond 1e15. Export it again without undefined pixels, or "
        "leave it out together with its light.",
        code="photograph-not-finite",
        file=path,
        found=count,
    )
