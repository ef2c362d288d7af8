"""Small copies of the photographs: pictures for the page, and a small capture that shows every correction at once.

The small capture is an ordinary folder, linear and divided by the exposures, which the ordinary pipeline reads and
solves within a second. Final results never come from it: a solve reads the photographs themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture.lighting import Lighting, find_lights
from photostereo.capture.source import Source
from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Float32
from photostereo.core.errors import PhotostereoError
from photostereo.io.atomic import write_bytes, write_text
from photostereo.io.camera import common_orientation, exposures, focal_in_pixels
from photostereo.io.names import folder_name
from photostereo.io.png import encode_picture
from photostereo.io.safe import read_bytes
from photostereo.lights.ball.calibration import Calibration
from photostereo.lights.ball.geometry import Circle
from photostereo.lights.files.table import LightTable, ball_line
from photostereo.photographs.develop import full_scale, linear_part, upright
from photostereo.photographs.protocol import Pictures
from photostereo.pipeline.pipeline import Pipeline
from photostereo.pipeline.stage import stage
from photostereo.report.pictures import scaled_size, to_srgb

#: Maximum pixels of a small photograph, and
MOST_PIXELS = 400_000
#: of all together, so that a correction shows within a second.
ALL_PIXELS = 16_000_000
#: Longest side of a thumbnail, in pixels.
THUMBNAIL = 320
#: Threads for decoding, the slowest part; memory grows with their number.
_THREADS = 2
_REDUCED = {
    8: cv2.IMREAD_REDUCED_COLOR_8,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    2: cv2.IMREAD_REDUCED_COLOR_2,
}
#: Linear photographs are brightened for display until their bright parts reach this value,
_WHITE = 0.85
#: by at most this factor, beyond which noise is all that shows.
_BRIGHTEN = 12.0


@dataclass(frozen=True)
class SmallCopies:
    """The small copies of a capture."""

    work: Path  #: a temporary folder: ``thumbs/`` and ``views/`` for the page, ``small/`` for the pipeline
    name: str  #: name of the capture
    #: full, small: height and width of the photographs and of the copies
    full: tuple[int, int]
    small: tuple[int, int]
    focal: float | None = None  #: focal length in pixels of the copies, if it is known

    @classmethod
    def of(cls, found: Source, work: Path) -> SmallCopies:
        """Set up the copies of these photographs."""
        shots = found.shots
        frames = Counter(shot.frame for shot in shots if shot.frame is not None)
        frame: Any = (
            frames.most_common(1)[0][0] if frames else found.pictures.read(found.files[0]).shape[:2]
        )
        if common_orientation(shots) > 4:
            frame = frame[::-1]
        focal = focal_in_pixels(shots, frame)
        most = min(MOST_PIXELS, ALL_PIXELS / len(shots))
        factor = min(1.0, (most / (frame[0] * frame[1])) ** 0.5)
        small = (max(8, round(frame[0] * factor)), max(8, round(frame[1] * factor)))
        focal = None if focal is None else focal * small[1] / frame[1]
        return cls(work, folder_name(found.name), frame, small, focal)

    @property
    def factor(self) -> float:
        return self.small[1] / self.full[1]

    def scaled(self, circle: Sequence[float], *, up: bool = False) -> tuple[float, float, float]:
        """Convert a circle (column, row, radius) to the small copies or, with ``up``, to the photographs."""
        s = 1 / self.factor if up else self.factor
        x, y, radius = circle
        return ((x + 0.5) * s - 0.5, (y + 0.5) * s - 0.5, radius * s)

    @property
    def capture(self) -> Path:
        """The folder that the pipeline reads."""
        return self.work / "small" / self.name

    def shrink_mask(self, mask: NDArray[Any]) -> BoolArray:
        small = cv2.resize(mask.astype(np.float32), self.small[::-1], interpolation=cv2.INTER_AREA)
        return np.asarray(small >= 0.5)

    def enlarge_mask(self, mask: NDArray[Any]) -> NDArray[np.uint8]:
        """Scale a mask of the copies to the photographs, with smooth outlines."""
        large = cv2.resize(mask.astype(np.float32), self.full[::-1], interpolation=cv2.INTER_CUBIC)
        return np.where(large >= 0.5, 255, 0).astype(np.uint8)

    def make(self, found: Source, control: Control) -> Iterator[dict[str, Any]]:
        """Copy the photographs; yield facts about each, or an ``error`` if it cannot be decoded."""
        shots = found.shots
        exposed, _ = exposures(shots)
        turn = common_orientation(shots)
        usual = self.full[::-1] if turn > 4 else self.full
        weights = np.ones(len(shots)) if exposed is None else min(exposed) / np.asarray(exposed)
        for folder in (self.work / "thumbs", self.work / "views", self.capture):
            folder.mkdir(parents=True, exist_ok=True)
        for label, file in (("ambient", found.ambient), ("flat", found.flat)):
            if file is not None:
                whole = upright(_decoded(found.pictures, file, self.factor), turn)
                write_bytes(
                    self.capture / f"{label}.ppm", _sixteen_bits(_shrunk(whole, self.small))
                )
        gain: list[float] = []  # for display; that of the first photograph, for all

        def copy(number: int) -> dict[str, Any]:
            file = found.files[number]
            shot = shots[number]
            about: dict[str, Any] = {"number": number, "name": file.name}
            try:
                control.check()
                linear = upright(_decoded(found.pictures, file, self.factor), turn)
                clipped = float((np.atleast_3d(linear).max(axis=-1) > 0.99).mean())
                linear = _shrunk(linear, self.small)
            except PhotostereoError as problem:
                return about | {"error": problem.rendered("app")}
            if not gain:
                gain.append(1.0 if shot.srgb else _display_gain(linear))
            _write_pictures(self.work, number, linear * np.float32(gain[0]))
            if shot.frame in (None, usual):
                small = _sixteen_bits(linear * np.float32(weights[number]))
                write_bytes(self.capture / small_name(file.name), small)
            else:
                about["unfit"] = "another size"
            height, width = shot.frame or self.full
            return about | {"size": [width, height], "clipped": clipped}

        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(copy, range(len(shots)))
        self._write_lights(found)

    def _write_lights(self, found: Source) -> None:
        """Write the light file of the copies, with scaled positions."""
        table = found.lights
        if table is None:
            return
        columns = self._light_columns(table)
        lines = [ball_line(Circle(*self.scaled(ball))) for ball in table.balls]
        lines.append(",".join(["file", *(name for column in columns for name in column.names)]))
        for number, file in enumerate(found.files):
            name = small_name(file.name)
            if not (self.capture / name).exists():
                continue
            cells = [name.replace(",", "_")]
            for column in columns:
                cells += column.cells(number)
            lines.append(",".join(cells))
        write_text(self.capture / "lights.csv", "\n".join(lines) + "\n")

    def _light_columns(self, table: LightTable) -> list[_Columns]:
        columns = [_Columns(["x", "y", "z"], table.vectors, table.open_directions)]
        strengths = table.intensities
        if strengths is not None:
            names = ["intensity"] if strengths.ndim == 1 else ["r", "g", "b"]
            values = strengths.reshape(len(strengths), -1)
            columns.append(_Columns(names, values, table.open_strengths))
        if table.positions is not None:
            kind = table.unit
            factor = 1.0
            if table.unit == "pixels":
                kind = "position"
                factor = self.factor
            elif table.unit == "mm" and table.pixel_size is not None:
                kind = "position"
                factor = self.factor / table.pixel_size  # a pixel of the copies covers more
            names = [f"{kind}_{axis}" for axis in "xyz"]
            columns.append(_Columns(names, factor * table.positions))
        return columns


@dataclass(frozen=True)
class _Columns:
    """Columns of a light file that belong together."""

    names: list[str]
    values: NDArray[Any]
    left_open: BoolArray | None = None  #: rows without values

    def cells(self, number: int) -> list[str]:
        """Return the cells of a row."""
        if self.left_open is not None and self.left_open[number]:
            return [""] * len(self.names)
        return [repr(value) for value in self.values[number].tolist()]


class CopiesPipeline(Pipeline):
    """Pipeline of small copies, with the lights of the photographs, which are more accurate, once they are known."""

    copies: SmallCopies
    known: Calibration | None = None  #: those lights

    def know(self, calibration: Calibration | None) -> None:
        self.known = calibration
        self.forget(*(self._kept.keys() - {"source", "opened"}))

    @property
    def places(self) -> list[int] | None:
        """Which of the known lights belong to the copies in use; None unless all of them are known."""
        names = [] if self.known is None else list(map(small_name, self.known.files))
        files = [file.name for file in self.opened.source.files]
        return [names.index(name) for name in files] if set(files) <= set(names) else None

    @stage(uses=("_calibrating",), after=("opened",))
    def unmoved(self) -> Lighting:
        """The known lights, else those found in the copies."""
        calibration = self.known
        places = self.places
        if calibration is None or places is None:
            return find_lights(self.opened, self._calibrating, self.control)
        lights = calibration.lights.take(places)
        if lights.positions is not None:
            lights = lights.changed(positions=lights.positions * self.copies.factor)
        balls = None
        if calibration.in_frame:
            balls = self.copies.shrink_mask(calibration.balls_mask())
        files = tuple(file.name for file in self.opened.source.files)
        return Lighting(lights, replace(calibration, files=files, lights=lights), balls)


def small_name(name: str) -> str:
    """Return the name of the small copy of a photograph, in a format that is fast to read."""
    return f"{name}.ppm"


def _display_gain(linear: Float32) -> float:
    """Return the factor that makes a dark photograph visible."""
    bright = max(float(np.percentile(linear, 99.5)), 1e-6)
    return min(max(1.0, _WHITE / bright), _BRIGHTEN)


def _decoded(pictures: Pictures, file: Path, share: float) -> Float32:
    """Decode a photograph to linear values, no larger than needed."""
    shot = pictures.head(file)
    factor = next((n for n in _REDUCED if n * share <= 1.0), 1)
    if file.suffix.lower() in (".jpg", ".jpeg") and file.is_file() and factor > 1:
        data = np.frombuffer(read_bytes(file, "image"), np.uint8)
        stored = cv2.imdecode(data, _REDUCED[factor] | cv2.IMREAD_IGNORE_ORIENTATION)
        if stored is not None:
            return linear_part(stored[..., ::-1], srgb=shot.srgb)
    whole: NDArray[Any] = pictures.read(file)
    if factor > 1:  # average first: linearizing the full size would take longer
        rows, cols = whole.shape[0] // factor, whole.shape[1] // factor
        whole = cv2.resize(whole, (cols, rows), interpolation=cv2.INTER_AREA)
    if whole.dtype.kind == "f":
        whole = np.nan_to_num(whole) / max(1.0, float(np.nanmax(whole)))
    return linear_part(whole, srgb=shot.srgb and full_scale(whole) > 1)


def _shrunk(linear: Float32, size: tuple[int, int]) -> Float32:
    return np.asarray(
        cv2.resize(np.ascontiguousarray(linear), size[::-1], interpolation=cv2.INTER_AREA)
    )


def _sixteen_bits(linear: Float32) -> bytes:
    """Encode as 16-bit PGM or PPM."""
    values = np.rint(np.clip(linear, 0, 1) * 65535).astype(">u2")
    kind = b"P5" if values.ndim == 2 else b"P6"
    return kind + f" {values.shape[1]} {values.shape[0]} 65535\n".encode() + values.tobytes()


def _write_pictures(work: Path, number: int, linear: Float32) -> None:
    view = to_srgb(np.clip(linear, 0, 1))
    height, width = view.shape[:2]
    rows, cols = scaled_size(height, width, min(1.0, THUMBNAIL / max(height, width)))
    thumb = cv2.resize(view, (cols, rows), interpolation=cv2.INTER_AREA)
    for folder, picture, quality in (("thumbs", thumb, 80), ("views", view, 88)):
        write_bytes(
            work / folder / f"{number}.jpg", encode_picture(picture, "jpeg", quality=quality)
        )
