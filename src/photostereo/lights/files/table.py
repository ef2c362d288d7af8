"""The content of a light file, its checks, and ``lights.csv``: a calibration as a readable table that can be read back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float64
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.atomic import replacing_file, write_text
from photostereo.io.images import is_image
from photostereo.io.json_text import json_text
from photostereo.lights.ball.geometry import Circle
from photostereo.lights.geometry import require_directions, row_lengths

if TYPE_CHECKING:
    from photostereo.lights.ball.calibration import Calibration

#: Range of plausible light strengths in any unit: quotients must fit into single precision.
STRENGTHS = (1e-20, 1e20)
#: Vectors longer than this are not unnormalized directions, but may be positions in millimeters: real
#: lights are several hundred away.
LEAST_MM = 2.0
#: Range of the distance of the nearest light over the longer side of the frame. A closer light would be in the picture; a
#: farther one would count as distant, without a measured position. A wrong unit is wrong by a factor of ten or more.
NEAREST, FARTHEST = 0.2, 300.0
_BALL = "# ball in the frame (column row radius):"


@dataclass(frozen=True, eq=False)
class LightTable:
    """The content of a light file."""

    path: Path  #: the file
    vectors: Float64  #: (d, 3) directions as written, not normalized, none of them zero
    intensities: Float64 | None = None  #: (d,) or (d, 3) strengths, or None
    files: tuple[str, ...] | None = None  #: base names of the photographs, one per light, or None
    #: (d, 3) positions of near lights, from the middle of the frame or, in widths, of the object; None if not given
    positions: Float64 | None = None
    unit: str = "pixels"  #: of the positions: ``"pixels"``, ``"widths"`` of the object, or ``"mm"``
    pixel_size: float | None = None  #: millimeters per pixel, if given in the file
    #: (d,) distances at which the strengths hold, in the unit of the positions; None for those of the positions
    distances: Float64 | None = None
    #: (column, row, radius) of balls in the photographs that the lights were found from
    balls: tuple[tuple[float, float, float], ...] = ()
    #: open_directions, open_strengths: (d,) those missing in the file: their cells are empty, or the
    #: photograph is not named; ``vectors`` and ``intensities`` then hold a placeholder. None if none is missing
    open_directions: BoolArray | None = None
    open_strengths: BoolArray | None = None
    #: (d,) expected errors of estimated directions in degrees, NaN for others; None if there are none
    errors: Float64 | None = None
    notes: tuple[Finding, ...] = ()  #: notes for the user

    def __post_init__(self) -> None:
        """Check that every vector has a direction, every strength is positive, and every position is above the table."""
        require_directions(self.vectors, file=self.path, names=self.files)
        if self.intensities is not None:
            require_strengths(self.intensities, self.path)
        places = np.ones((1, 3)) if self.positions is None else self.positions
        if not (np.isfinite(places).all() and (places[:, 2] > 0).all()):
            raise CaptureError(
                f"In {self.path} a light has no position above the table (its z is not positive, "
                "or not a number). Correct that line, or remove the columns of the positions.",
                code="light-position",
                file=self.path,
            )

    @property
    def is_complete(self) -> bool:
        """Whether no direction or strength is missing."""
        return self.open_directions is None and self.open_strengths is None

    @property
    def lengths(self) -> Float64:
        """Norm of each vector as written; in some layouts it is the strength of the light."""
        return row_lengths(self.vectors)

    @property
    def millimeters(self) -> NDArray[Any] | None:
        """Return positions in millimeters, or vectors long enough to be positions; None if there are neither."""
        if self.unit == "mm":
            return self.positions
        is_strength = self.intensities is not None and np.array_equal(
            self.intensities, self.lengths
        )
        are_long = self.positions is None and not is_strength and self.lengths.min() > LEAST_MM
        return self.vectors if are_long else None

    def placed(self, pixel_size: float | None, frame: tuple[int, int]) -> LightTable:
        """Return this table with positions converted from millimeters to pixels of ``pixel_size`` millimeters.

        If that is known, vectors much longer than 1 also count as such positions. The strengths are then those of the
        lights themselves: equal ones are not equally bright at the object if their distances differ.
        """
        in_mm = self.millimeters
        if in_mm is None or (pixel_size is None and self.unit != "mm"):
            return self
        if pixel_size is None:
            raise CaptureError(
                f"{self.path} gives the positions of lights in millimeters, but the size of a "
                "pixel is not known.",
                code="lights-need-scale",
                remedy="pixel-size",
                file=self.path,
            )
        positions = in_mm / pixel_size
        nearest = float(row_lengths(positions).min())
        if not NEAREST < nearest / max(frame) < FARTHEST:
            distance = pixel_size * nearest
            width = pixel_size * max(frame)
            raise CaptureError(
                f"The nearest light in {self.path} is {distance:.3g} mm from the middle of the "
                f"frame, which shows {width:.3g} mm. Check the unit of the positions and the size "
                "of a pixel.",
                code="light-units",
                remedy="pixel-size",
                file=self.path,
                distance=distance,
                frame=width,
            )
        typical = np.full(len(positions), np.median(row_lengths(positions)))
        return replace(self, positions=positions, unit="pixels", distances=typical)

    def length_note(self) -> tuple[Finding, ...]:
        """Return a note for the user if the vectors are not unit and their lengths are not used."""
        low = self.lengths.min()
        high = self.lengths.max()
        if high - 1 < 0.01 and 1 - low < 0.01:
            return ()
        return (
            Finding(
                "light-lengths-unused", file=self.path.name, least=float(low), most=float(high)
            ),
        )

    def in_order_of(self, photographs: Sequence[Path]) -> LightTable:
        """Return the lights in the order of the photographs, if the file names them (see :meth:`naming`)."""
        if self.files is None:
            return self
        place = {name.casefold(): index for index, name in enumerate(self.files)}
        return self.take([place[photograph.name.casefold()] for photograph in photographs])

    def naming(self, photographs: Sequence[Path]) -> LightTable:
        """Return this table with open lights added for photographs that it does not name; the names must be unique.

        Names may lack the extension of the photographs, or have another one. They are dropped if the table names the
        same number of photographs, but none of these: it belongs to another capture of the same setup.
        """
        if self.files is None:
            return self
        files = whole_names(self.files, photographs)
        if files != self.files:
            return replace(self, files=files).naming(photographs)
        named = [name.casefold() for name in self.files]
        present = {photograph.name.casefold() for photograph in photographs}
        missing = [
            photograph.name for photograph in photographs if photograph.name.casefold() not in named
        ]
        if len(missing) == len(photographs) == len(self.files):
            note = Finding("lights-of-others", file=self.path.name)
            return replace(self, files=None, notes=(*self.notes, note))
        for name, key in zip(self.files, named, strict=True):
            if key not in present:
                raise CaptureError(
                    f"{self.path} names {name}, which is not among the photographs. Correct the "
                    "name, or restore the photograph.",
                    code="light-without-photograph",
                    file=self.path,
                    name=name,
                )
            if named.count(key) > 1:
                raise CaptureError(
                    f"{self.path} names {name} twice. Each photograph has exactly one light: "
                    "correct the file.",
                    code="light-repeated",
                    file=self.path,
                    name=name,
                )
        if not missing:
            return self

        def grown(values: NDArray[Any], value: Any) -> NDArray[Any]:
            return np.concatenate(
                [values, np.broadcast_to(value, (len(missing), *values.shape[1:]))]
            )

        none = np.zeros(len(self.vectors), bool)
        strengths = self.intensities
        return replace(
            self,
            vectors=grown(self.vectors, (0.0, 0.0, 1.0)),
            intensities=None if strengths is None else grown(strengths, strengths.mean(axis=0)),
            files=(*self.files, *missing),
            positions=None,
            open_directions=grown(
                none if self.open_directions is None else self.open_directions, True
            ),
            open_strengths=grown(
                none if self.open_strengths is None else self.open_strengths, True
            ),
            errors=None if self.errors is None else grown(self.errors, np.nan),
        )

    def take(self, order: Sequence[int]) -> LightTable:
        """Return some of the lights, in this order."""
        chosen = list(order)
        arrays = {
            name: values for name, values in vars(self).items() if isinstance(values, np.ndarray)
        }
        rows = len(self.vectors)
        each: dict[str, Any] = {
            name: array[chosen] for name, array in arrays.items() if len(array) == rows
        }
        files = None if self.files is None else tuple(self.files[number] for number in chosen)
        return replace(self, files=files, **each)


def whole_names(names: Sequence[str], photographs: Sequence[Path]) -> tuple[str, ...]:
    """Return the names with the extensions of the photographs that they mean; others unchanged.

    A name means the photograph of that name, else the only one that is called so without its extension, else the only
    one that differs in nothing but the extension.

    >>> whole_names(["a", "b.tif", "c.png"], [Path("a.jpg"), Path("b.jpg"), Path("b.2.jpg")])
    ('a.jpg', 'b.jpg', 'c.png')
    """
    present = {photograph.name.casefold() for photograph in photographs}
    stems = [photograph.stem.casefold() for photograph in photographs]
    whole = {
        stem: photograph.name
        for stem, photograph in zip(stems, photographs, strict=True)
        if stems.count(stem) == 1
    }

    def meant(name: str) -> str:
        key = name.casefold()
        if key in present:
            return name
        stem = PurePath(key).stem if is_image(Path(key)) else key
        return whole.get(key, whole.get(stem, name))

    files = tuple(meant(name) for name in names)
    # Two names for one photograph: the extensions say something else.
    return files if len(set(files)) == len(set(names)) else tuple(names)


def require_strengths(values: NDArray[Any], path: Path) -> None:
    """Check that every strength is positive and within single precision; raises ``"light-strength"``."""
    low, high = STRENGTHS
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise CaptureError(
            f"In {path} the strength of light {row + 1} is not a positive number (from {low:g} to "
            f"{high:g}). Correct that line, or leave out the photograph together with its light.",
            code="light-strength",
            file=path,
            light=row + 1,
            low=low,
            high=high,
        )


def ball_line(circle: Circle) -> str:
    """Return the comment line for one ball."""
    return f"{_BALL} {circle.x:.2f} {circle.y:.2f} {circle.radius:.2f}"


def balls_in(text: str) -> tuple[tuple[float, float, float], ...]:
    """Return column, row and radius of the balls in a light file; modified lines are ignored."""
    found = []
    for line in text.splitlines():
        words = line.strip().removeprefix(_BALL).split() if line.strip().startswith(_BALL) else []
        with suppress(ValueError):
            x, y, radius = map(float, words)
            if np.isfinite([x, y, radius]).all() and radius > 0:
                found.append((x, y, radius))
    return tuple(found)


def lights_table(calibration: Calibration) -> str:
    """Return the text of ``lights.csv``.

    Balls in the photographs themselves are listed above the table, so that they are removed from the object's mask when
    the file is read back.
    """
    lights = calibration.lights
    columns = ["file", "x", "y", "z", "intensity", "residual_degrees", "found_from"]
    if lights.positions is not None:
        columns += ["position_x", "position_y", "position_z"]
    circles = [ball.circle for ball in calibration.balls] if calibration.in_frame else []
    lines = [f"# strengths: {lights.strengths_source}", *map(ball_line, circles), ",".join(columns)]
    for number, name in enumerate(calibration.files):
        error = lights.expected_error[number]
        cells = [
            name.replace(",", "_"),
            *(f"{value:.6f}" for value in lights.directions[number]),
            f"{lights.strengths[number]:.5f}",
            f"{error:.2f}" if np.isfinite(error) else "",
            lights.source[number].replace(",", " "),
            *(
                ()
                if lights.positions is None
                else (f"{value:.1f}" for value in lights.positions[number])
            ),
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def write_lights(calibration: Calibration, path: Path, *, force: bool = False) -> None:
    """Write ``lights.csv``, or a list of files with direction and intensity if the name ends in ``.json``, atomically."""
    if path.suffix.lower() == ".json":
        lights = calibration.lights
        rows = zip(calibration.files, lights.directions, lights.strengths, strict=True)
        text = json_text(
            [
                {"file": name, "direction": direction.tolist(), "intensity": float(strength)}
                for name, direction, strength in rows
            ]
        )
    else:
        text = lights_table(calibration)
    with replacing_file(path, force=force) as partial:
        write_text(partial, text)
