"""Lights as a file gives them, and what must be true of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError

#: Strengths of lights that make sense in any unit: single precision holds what is divided by them.
STRENGTHS = (1e-20, 1e20)


@dataclass(frozen=True, eq=False)
class LightTable:
    """What a light file says.

    Attributes
    ----------
    path : the file
    vectors : (d, 3) directions as written, not normalized, none of them zero
    intensities : (d,) or (d, 3) strengths, or None
    files : base names of the photographs, one per light, or None
    positions : (d, 3) of near lamps in pixels from the middle of the frame, or None
    in_widths : the positions are in widths of the object from its middle instead
    balls : (column, row, radius) of balls in the photographs that the lights were found from
    """

    path: Path
    vectors: NDArray[np.float64]
    intensities: NDArray[np.float64] | None = None
    files: tuple[str, ...] | None = None
    positions: NDArray[np.float64] | None = None
    in_widths: bool = False
    balls: tuple[tuple[float, float, float], ...] = ()

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The norm of each vector as written; in some layouts it carries the strength of the light."""
        return row_lengths(self.vectors)

    def length_note(self) -> tuple[str, ...]:
        """A note for the user if the vectors are not unit and their lengths are not used."""
        low, high = self.lengths.min(), self.lengths.max()
        if high - 1 < 0.01 and 1 - low < 0.01:
            return ()
        return (
            f"the vectors in {self.path.name} have lengths from {low:.3g} to {high:.3g}; only their "
            "directions are used. Give strengths in columns of their own if the lengths mean strength",
        )

    def in_order_of(self, photographs: Sequence[Path]) -> LightTable:
        """The lights in the order of the photographs, where the file names them; as they stand where not."""
        if self.files is None:
            return self
        self.require_names_of(photographs)
        place = {name.casefold(): index for index, name in enumerate(self.files)}
        order = [place[photograph.name.casefold()] for photograph in photographs]
        strengths = None if self.intensities is None else self.intensities[order]
        positions = None if self.positions is None else self.positions[order]
        return replace(
            self,
            vectors=self.vectors[order],
            intensities=strengths,
            files=tuple(self.files[i] for i in order),
            positions=positions,
        )

    def require_names_of(self, photographs: Sequence[Path]) -> None:
        """Raise a :class:`CaptureError` unless the file names each of these photographs once, and no other."""
        assert self.files is not None
        named = [name.casefold() for name in self.files]
        present = [photograph.name.casefold() for photograph in photographs]
        for name, key in zip(self.files, named, strict=True):
            if key not in present:
                raise CaptureError(
                    f"{self.path} names {name}, which is not among the photographs. Correct the name, or restore "
                    "the photograph."
                )
            if named.count(key) > 1:
                raise CaptureError(
                    f"{self.path} names {name} twice. Each photograph has exactly one light: correct the file."
                )
        for photograph in photographs:
            if photograph.name.casefold() not in named:
                raise CaptureError(
                    f"{self.path} has no light for {photograph.name}. Each photograph needs exactly one: complete "
                    "the file, or remove the photograph."
                )


def checked(table: LightTable) -> LightTable:
    """The table itself if every vector has a direction and every strength is positive; else an error."""
    for number, vector in enumerate(table.vectors):
        label = f"light {number + 1}" + (f" ({table.files[number]})" if table.files else "")
        if not np.isfinite(vector).all():
            raise CaptureError(
                f"In {table.path} {label} has a value that is NaN or infinite. Correct that line."
            )
        if np.abs(vector).max() < 1e-12:
            raise CaptureError(
                f"In {table.path} {label} is the zero vector, which has no direction. Correct that line, or "
                "leave out the photograph together with its light."
            )
    if table.intensities is not None:
        require_strengths(table.intensities, table.path)
    if table.positions is not None and not (
        np.isfinite(table.positions).all() and (table.positions[:, 2] > 0).all()
    ):
        raise CaptureError(
            f"In {table.path} a lamp has no position above the table (its z is not positive, or not a number). "
            "Correct that line, or remove the columns of the positions."
        )
    return table


def require_strengths(values: NDArray[Any], path: Path) -> None:
    """Raise a :class:`CaptureError` unless every strength is positive and of a size that single precision holds."""
    low, high = STRENGTHS
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise CaptureError(
            f"In {path} the strength of light {row + 1} is not a positive number (from {low:g} to {high:g}). "
            "Correct that line, or leave out the photograph together with its light."
        )


def row_lengths(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The Euclidean norm of each row, also where its square would overflow.

    >>> [f"{length:.3g}" for length in row_lengths(np.array([[3.0, 0, 4], [3e200, 0, 4e200]]))]
    ['5', '5e+200']
    """
    top = np.abs(vectors).max(axis=1, initial=1e-300)
    far = np.where(top > 1e100, top, 1.0)
    return np.asarray(far * np.linalg.norm(vectors / far[:, None], axis=1))
