"""The lights of a capture: directions, strengths, their accuracy, and their sources.

A distant light has the same direction everywhere. A near light at the position P lights the point X along
(P - X) / |P - X| and with a strength that falls off as 1 / |P - X|². :meth:`Lights.over` returns both at pixels, for
either kind; models are built from it.

Coordinates are those of the package: x right, y up, z toward the camera, from the object to the light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import EMPTY_MASK, CaptureError
from photostereo.lights.ball.geometry import VIEW
from photostereo.lights.geometry import light_geometry, require_directions, row_lengths
from photostereo.lights.source import LightSource, SourceKind, source_of
from photostereo.photographs.framing import Framing
from photostereo.runtime.illumination import PixelLights, turns_to_z

#: Lights whose smallest singular value is below this share of the largest lie in a plane, and least squares cannot
#: determine a normal. Real lights are above 0.05; the exact value does not matter.
COPLANAR_RATIO = 1e-3


class Lights:
    """Directions and strengths of d lights.

    Parameters
    ----------
    directions : (d, 3) array, optional
        From the object to each light; normalized to unit length. By default those of ``positions``, if given.
        Without either, the lights are not known yet (see :attr:`known`).
    positions : (d, 3) array, optional
        Positions of near lights: in pixels from the middle of the frame, or in widths of the object from its middle.
    strengths : (d,) or (d, 3) array, optional
        Relative strengths, optionally per color channel. By default all lights are equally strong.
    expected_error : (d,) array, optional
        Expected error of each direction, in degrees; NaN if unknown.
    source : str or LightSource, or a sequence of them
        Source of each direction. Words are shown to people; code asks for the kind of a
        :class:`~photostereo.lights.source.LightSource` (see :attr:`sources`).
    strengths_source : str or LightSource
        Source of the strengths; "" if there are none.
    position_unit : ``"pixels"`` or ``"widths"``
    distances : (d,) array, optional
        Distances at which the strengths of near lights hold; by default those from the origin of the positions.
    camera : (3,) array, optional
        For near lights: position of the camera, in pixels from the middle of the frame; by default infinitely far.
    depth : (H, W) array, optional
        For near lights: depth of the object toward the camera, in pixels from the origin of the positions.
    count : int, optional
        Number of lights, if nothing else is known about them.

    Examples
    --------
    >>> lights = Lights([[0, 0, 2.0], [1, 0, 1], [0, 1, 1]], source="file")
    >>> lights
    Lights(3 distant lights: from file; equally strong)
    >>> lights.matrix.shape, lights.at(np.zeros((5, 2))).shape
    ((3, 3), (5, 3, 3))
    >>> near = Lights(positions=[[0, 0, 100.0]])
    >>> near.over(np.array([0, 0]), np.array([0, 100]), (1, 1)).fall_off.round(3).tolist()
    [[1.0], [0.5]]
    >>> Lights(count=3).known
    False
    """

    def __init__(
        self,
        directions: ArrayLike | None = None,
        *,
        positions: ArrayLike | None = None,
        strengths: ArrayLike | None = None,
        expected_error: ArrayLike | None = None,
        source: str | LightSource | Sequence[str | LightSource] = "given",
        strengths_source: str | LightSource = "",
        position_unit: str = "pixels",
        distances: ArrayLike | None = None,
        camera: ArrayLike | None = None,
        depth: ArrayLike | None = None,
        count: int | None = None,
    ) -> None:
        self.positions = None if positions is None else _vectors(positions, "positions")
        given = self.positions if directions is None else directions
        self._directions = None if given is None else _unit(_vectors(given, "lights"))
        self._count = int(count or 0) if self._directions is None else len(self._directions)
        self._strengths = None if strengths is None else _frozen(strengths)
        unknown = np.full(self._count, np.nan)
        self.expected_error = _frozen(unknown if expected_error is None else expected_error)
        self.distances = None if distances is None else _frozen(distances)
        each = (source,) * self._count if isinstance(source, (str, LightSource)) else source
        self._source = tuple(source_of(value) for value in each)
        self._strengths_source = strengths_source
        self.position_unit = position_unit
        self.camera = None if camera is None else _frozen(camera)
        self.depth = None if depth is None else _frozen(depth)
        for values in (
            self.positions,
            self._strengths,
            self.expected_error,
            self.distances,
            self._source,
        ):
            if values is not None and len(values) != self._count:
                words = (
                    f"There are {self._count} light directions but {len(values)} values for them."
                )
                raise CaptureError(
                    words, code="lights-count", lights=self._count, found=len(values)
                )

    def __len__(self) -> int:
        """Return the number of lights."""
        return self._count

    def __repr__(self) -> str:
        return f"Lights({self.describe()})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the directions, for NumPy functions."""
        return np.array(self.directions, dtype=dtype)

    @property
    def known(self) -> bool:
        """Whether the directions are known."""
        return self._directions is not None

    @property
    def is_near(self) -> bool:
        """Whether the lights have positions, so that their directions differ between pixels."""
        return self.positions is not None

    @property
    def directions(self) -> FloatArray:
        """(d, 3), unit, read-only; for near lights, those at the origin of the positions."""
        if self._directions is None:
            words = "The light directions are not known. Give a light file or a ball, or estimate the lights."
            raise CaptureError(words, code="no-lights")
        return self._directions

    @property
    def matrix(self) -> FloatArray:
        """The directions as columns: a new array (3, d), as models expect it."""
        return np.ascontiguousarray(self.directions.T)

    @property
    def strengths(self) -> FloatArray:
        """(d,) or (d, 3), read-only."""
        if self._strengths is None:
            return np.ones(self._count)
        return self._strengths

    @property
    def sources(self) -> tuple[LightSource, ...]:
        """(d,) sources of the directions."""
        return self._source

    @property
    def source(self) -> tuple[str, ...]:
        """(d,) sources of the directions, in words."""
        return tuple(map(str, self._source))

    @property
    def are_estimated(self) -> bool:
        """Whether a direction was estimated from the photographs, without any ball."""
        return any(source.kind is SourceKind.ESTIMATED for source in self._source)

    @property
    def strengths_source(self) -> str:
        """Source of the strengths, in words; empty if there are none."""
        return str(self._strengths_source)

    @property
    def strengths_from(self) -> LightSource:
        """Source of the strengths."""
        return source_of(self._strengths_source)

    @property
    def has_strengths(self) -> bool:
        """Whether strengths were given; otherwise the lights are assumed to be equally strong."""
        return self._strengths is not None

    @property
    def condition(self) -> float:
        """Largest over smallest singular value of the directions: 1 is ideal, above 10 is poor."""
        return light_geometry(self.directions).condition

    def at(self, points: ArrayLike) -> FloatArray:
        """Return directions (N, d, 3) at points (N, 2) or (N, 3): x right, y up, z toward the camera, in pixels from the
        middle of the frame."""
        where = np.asarray(points, dtype=np.float64)
        if self.positions is None:
            return np.broadcast_to(self.directions, (len(where), self._count, 3))
        return np.stack([self._toward(where, number)[0] for number in range(self._count)], axis=1)

    def over(
        self, rows: NDArray[Any], columns: NDArray[Any], frame: tuple[int, int]
    ) -> PixelLights:
        """Return the lights at pixels of a frame of this height and width, as models use them.

        Near lights are exact at every pixel and its depth (:attr:`depth`; without one, the plane through the positions'
        origin).
        """
        if self.positions is None:
            return PixelLights(self.matrix)
        points = np.zeros((len(rows), 3))
        points[:, 0] = columns - 0.5 * (frame[1] - 1)
        points[:, 1] = 0.5 * (frame[0] - 1) - rows
        turn = None if self.camera is None else turns_to_z(self.camera - points)
        if self.depth is not None:
            height = np.nan_to_num(
                self.depth[np.rint(rows).astype(int), np.rint(columns).astype(int)]
            )
            along = VIEW if self.camera is None else (self.camera - points) / self.camera[2]
            points += height[:, None] * along
        matrix = np.empty((len(rows), 3, self._count), np.float32)
        fall_off = np.empty((len(rows), self._count), np.float32)
        for number in range(self._count):
            toward, distance = self._toward(points, number)
            matrix[:, :, number] = toward if turn is None else (turn @ toward[:, :, None])[..., 0]
            fall_off[:, number] = (self._strong_at[number] / distance) ** 2
        return PixelLights(matrix, fall_off, turn)

    def turn_over(self, frame: tuple[int, ...]) -> float:
        """Return the degrees by which the direction of the nearest light changes from the middle of a frame to the end of
        its longer side; 0 for distant lights.

        >>> round(Lights(positions=[[0, 0, 500.0]]).turn_over((100, 100)), 1)
        5.7
        """
        if self.positions is None:
            return 0.0
        return float(np.degrees(np.arctan2(0.5 * max(frame), row_lengths(self.positions).min())))

    def take(self, chosen: Sequence[int] | NDArray[Any]) -> Lights:
        """Return some of the lights."""
        index = np.asarray(chosen)
        if not self.known:
            return Lights(count=len(index))
        return self.changed(
            directions=self.directions[index],
            positions=None if self.positions is None else self.positions[index],
            strengths=None if self._strengths is None else self._strengths[index],
            expected_error=self.expected_error[index],
            source=[self._source[int(k)] for k in index],
            distances=None if self.distances is None else self.distances[index],
        )

    def moved(self, to: Mapping[int, Sequence[float]]) -> Lights:
        """Return the same lights, some of them in other directions (by number); near lights keep their distance."""
        directions = self.directions.copy()
        error = self.expected_error.copy()
        source = list(self._source)
        positions = None if self.positions is None else self.positions.copy()
        for number, toward in to.items():
            directions[number] = np.asarray(toward) / np.linalg.norm(toward)
            error[number] = np.nan
            source[number] = LightSource(SourceKind.HAND)
            if positions is not None:
                positions[number] = np.linalg.norm(positions[number]) * directions[number]
        return self.changed(
            directions=directions, positions=positions, expected_error=error, source=source
        )

    def changed(self, **changes: Any) -> Lights:
        """Return the same lights with other values of the parameters above."""
        same = {name.removeprefix("_"): value for name, value in vars(self).items()}
        return Lights(**{**same, **changes})

    def as_distant(self) -> Lights:
        """Return distant lights in the same directions."""
        return self.changed(positions=None, distances=None, camera=None, depth=None)

    def framed(self, framing: Framing, full: tuple[int, int]) -> Lights:
        """Return the same lights with positions in pixels of a part of the frame; ``full`` is its full height and width."""
        if self.positions is None:
            return self
        camera = None if self.camera is None else framing.positions(self.camera[None], full)[0]
        if self.position_unit != "pixels":
            return self.changed(camera=camera)
        return self.changed(
            positions=framing.positions(self.positions, full),
            distances=framing.scale * self._strong_at,
            camera=camera,
        )

    def lowered(self, height: float) -> Lights:
        """Return the same near lights as seen from this many pixels above the origin of their positions."""
        assert self.positions is not None
        return self.changed(
            positions=self.positions - [0.0, 0.0, height], distances=self._strong_at
        )

    def thinned(self, step: int, frame: tuple[int, int]) -> Lights:
        """Return the same lights over every n-th pixel, from the first, of a frame of this height and width."""
        if self.positions is None or step == 1:
            return self
        sides = np.array([-(-frame[1] // step), -(-frame[0] // step)])
        # The middle of the smaller frame, relative to that of the larger one.
        x, y = 0.5 * (step * (sides - 1) - (np.array(frame[::-1]) - 1)) * [1, -1]
        middle = np.array([x, y, 0.0])
        return self.changed(
            positions=(self.positions - middle) / step,
            distances=self._strong_at / step,
            camera=None if self.camera is None else (self.camera - middle) / step,
            depth=None if self.depth is None else self.depth[::step, ::step] / step,
        )

    def in_pixels(self, mask: BoolArray) -> Lights:
        """Return the same lights with positions in pixels of the frame, if they are in widths of the object (the mask)."""
        if self.positions is None or self.position_unit == "pixels":
            return self
        cols = np.flatnonzero(mask.any(axis=0))
        rows = np.flatnonzero(mask.any(axis=1))
        if not len(cols):
            raise CaptureError(
                f"The mask of the object {EMPTY_MASK}", code="empty-mask", name="the object"
            )
        x = cols[0] + cols[-1] + 1 - mask.shape[1]
        y = mask.shape[0] - rows[0] - rows[-1] - 1
        middle = 0.5 * np.array([x, y, 0])
        scaled = float(cols[-1] - cols[0] + 1) * self.positions
        return self.changed(
            positions=scaled + middle, distances=row_lengths(scaled), position_unit="pixels"
        )

    def require_usable(self, count: int, name: str) -> Lights:
        """Return these lights if there is one for each of ``count`` photographs and they do not lie in a plane.

        Raises
        ------
        CaptureError
            ``"lights-count"``, ``"lights-coplanar"``
        """
        if len(self) != count:
            raise wrong_count(name, count, len(self))
        if not self.known:
            return self
        spread = np.linalg.svd(self.directions, compute_uv=False)
        if spread[-1] < COPLANAR_RATIO * spread[0]:
            share = float(spread[-1] / spread[0])
            raise CaptureError(
                f"The lights of {name} lie in a plane (smallest to largest singular value "
                f"{share:.1e}), so the normals cannot be determined. Add "
                "a photograph with the light well outside that plane, for instance from above.",
                code="lights-coplanar",
                name=name,
                share=share,
            )
        return self

    def describe(self) -> str:
        """Return one line with number, source, accuracy and strengths."""
        if not self.known:
            return f"{self._count} lights, directions not known"
        kind = "near" if self.is_near else "distant"
        words = f"{self._count} {kind} lights: from {', '.join(dict.fromkeys(self.source))}"
        if np.isfinite(self.expected_error).any():
            words += f", accurate to about {np.nanmax(self.expected_error):.1f}°"
        strong = "with strengths" if self.has_strengths else "equally strong"
        return (
            f"{words}; {'strengths: ' + self.strengths_source if self.strengths_source else strong}"
        )

    @property
    def _strong_at(self) -> FloatArray:
        """Return the distances (d,) at which the strengths hold."""
        assert self.positions is not None
        if self.distances is None:
            return row_lengths(self.positions)
        return self.distances

    def _toward(self, points: FloatArray, number: int) -> tuple[FloatArray, FloatArray]:
        """Return directions (N, 3) from points (N, 2) or (N, 3) to a near light, and its distances (N,)."""
        assert self.positions is not None
        if self.position_unit != "pixels":
            raise CaptureError(
                "The positions of the lights are in widths of the object; a mask is needed to "
                "convert them to pixels.",
                code="lights-need-mask",
            )
        toward = np.broadcast_to(self.positions[number], (len(points), 3)).copy()
        toward[:, : points.shape[1]] -= points
        distance = np.linalg.norm(toward, axis=1)
        return toward / distance[:, None], distance


def _vectors(value: ArrayLike, words: str) -> FloatArray:
    vectors = _frozen(value)
    if vectors.ndim != 2 or vectors.shape[1] != 3:
        raise CaptureError(
            f"The {words} have the shape {vectors.shape}; expected one row x y z per photograph, "
            "(d, 3).",
            code="lights-shape",
            shape=vectors.shape,
            words=words,
        )
    require_directions(vectors)
    return vectors


def _unit(vectors: FloatArray) -> FloatArray:
    length = row_lengths(vectors)
    # A vector that is already unit stays bit-identical, so that a capture that is read back has the same digest.
    length[np.abs(length - 1) < 1e-14] = 1.0
    return _frozen(vectors / length[:, None])


def _frozen(values: ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def wrong_count(
    name: str | Path, photographs: int, lights: int, file: Path | None = None
) -> CaptureError:
    """Return the error that the numbers of photographs and lights differ.

    Parameters
    ----------
    name : str or Path
        The capture.
    photographs, lights : int
        How many there are.
    file : Path, optional
        The light file.
    """
    return CaptureError(
        f"{name} has {photographs} photographs but {lights} light directions. Each photograph "
        "needs exactly one light, in the same order: add the missing ones or remove the extra ones.",
        code="lights-count",
        file=file,
        name=name,
        photographs=photographs,
        lights=lights,
    )
