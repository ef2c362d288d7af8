"""What a layout returns, always: photographs, and whatever lies beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture.capture import Capture, require_count
from photostereo.core.conventions import BoolArray, Float64, FloatArray
from photostereo.core.findings import Finding, Subject
from photostereo.io.camera import Shot, focal_in_pixels
from photostereo.lights.files.table import LightTable
from photostereo.lights.lights import wrong_count
from photostereo.masks.reading import mask_from_values, read_mask
from photostereo.photographs.faults import Fault
from photostereo.photographs.protocol import Photographs, PhotographsOfFrames, Pictures

if TYPE_CHECKING:
    from photostereo.capture.options import ReadOptions


@dataclass(frozen=True, eq=False)
class Source:
    """Photographs and what lies beside them, before any photograph is decoded.

    A layout gives either ``files`` or ``photographs``: pictures of any kind, such as the frames of a video. All stages of
    reading work with either.

    Examples
    --------
    >>> import numpy as np
    >>> from photostereo.photographs.protocol import PhotographsInMemory
    >>> slides = PhotographsInMemory(np.zeros((3, 4, 5), np.uint8), ["a", "b", "c"])
    >>> source = Source(Path("box"), "slides", "box", photographs=slides)
    >>> source.names, source.without({1: "blurred"}).names
    (['a', 'b', 'c'], ['a', 'c'])
    """

    path: Path  #: the capture's folder or file
    layout: str  #: the name of the format
    name: str  #: the name of the capture
    #: the photographs in use, in the order of the lights; one that is no file has the path of its source and its name
    files: Sequence[Path] = ()
    lights: LightTable | None = None  #: the light file, in the order of the photographs, or None
    photographs: Photographs | None = None  #: photographs that are not files, or None
    #: a folder with photographs of a ball under the same lights, if the user gave one
    ball: Path | None = None
    mask: Path | BoolArray | None = None  #: the mask: a picture, or an array, or None
    #: ``"full"``, ``"auto"`` or ``"bright"``, if there is no mask
    mask_default: str = "full"
    gray_limit: float | None = None  #: upper limit of gray intensities, or None
    #: for each known ground truth of :class:`Capture`, its file and its values
    truths: Mapping[str, tuple[Path, NDArray[Any]]] = field(default_factory=dict)
    expected_bits: int = 0  #: usual bit depth of the layout, or 0; less gives a note
    bit_depth: int = 0  #: bits per channel, if the numbers of the photographs do not show it
    ambient: Path | None = None  #: a photograph with the lights off, or None
    flat: Path | None = None  #: a photograph of an even surface, or None
    #: all exposures of a light, by the one among ``files``, if there are several
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()  #: notes from the layout
    every_file: Sequence[Path] = ()  #: all photographs, if some were removed from ``files``
    faults: tuple[Fault, ...] = ()  #: photographs left out, with reasons
    camera: FloatArray | None = None  #: position of the camera with near lights, if it is known

    def __post_init__(self) -> None:
        if self.photographs is not None and not self.files:
            object.__setattr__(self, "files", self.pictures.paths)

    @cached_property
    def pictures(self) -> Pictures:
        """The pictures by their paths."""
        return Pictures(self.photographs, self.path)

    @property
    def names(self) -> list[str]:
        """The names of the photographs in use."""
        return [file.name for file in self.files]

    @property
    def shots(self) -> list[Shot]:
        """The settings of the photographs in use."""
        return [self.pictures.head(file) for file in self.files]

    @property
    def directions(self) -> FloatArray | None:
        """Directions (d, 3) in the light file, NaN where it has none; None if it does not match the photographs."""
        table = self.lights
        if table is None or len(table.vectors) != len(self.files):
            return None
        directions = table.vectors.copy()
        if table.open_directions is not None:
            directions[table.open_directions] = np.nan
        return directions

    @property
    def mask_file(self) -> Path | None:
        """The picture of the mask, if there is one."""
        return self.mask if isinstance(self.mask, Path) else None

    def changed(self, **changes: Any) -> Source:
        """The same source with other fields; what is known of its pictures is kept."""
        source = replace(self, **changes)
        if source.photographs is self.photographs:
            vars(source)["pictures"] = self.pictures
        return source

    def without(self, faults: Mapping[int, Fault | str]) -> Source:
        """Leave out photographs and their lights, by their place in ``files``; each has a fault, or the code of a reason."""
        places = [place for place in range(len(self.files)) if place not in faults]
        table = self.lights
        if table is not None and len(table.vectors) == len(self.files):
            table = table.take(places)
        further = []
        for place, fault in faults.items():
            if isinstance(fault, str):
                fault = Fault(self.files[place].name, fault)
            further.append(fault)
        return self.changed(
            files=[self.files[place] for place in places],
            lights=table,
            every_file=self.every_file or self.files,
            faults=(*self.faults, *further),
        )

    def focal(
        self, options: ReadOptions, frame: tuple[int, ...], files: Sequence[Path] = ()
    ) -> float | None:
        """Focal length in pixels.

        Parameters
        ----------
        options : ReadOptions
            The focal length that the user gave comes first.
        frame : tuple of int
            Height and width of the photographs.
        files : sequence of path
            The photographs whose settings count; by default those of the object.
        """
        if options.focal:
            return options.focal
        shots = [self.pictures.head(file) for file in files or self.files]
        return focal_in_pixels(shots, (frame[0], frame[1]))

    def whole_mask(self, full: tuple[int, int], orientation: int) -> BoolArray | None:
        """The mask at the size of the photographs, turned like them; None if there is none."""
        if self.mask is None:
            return None
        if isinstance(self.mask, Path):
            return read_mask(self.mask, full, orientation)[0]
        return mask_from_values(self.mask, f"The mask of {self.name}", full)[0]

    def require_matching(self) -> None:
        """Check that there are at least three photographs, and one light for each if there is a light file."""
        table = self.lights
        require_count(len(self.files), self.name, self.path)
        if table is not None and len(self.files) != len(table.vectors):
            name = f"{self.path} (with {table.path.name})"
            raise wrong_count(name, len(self.files), len(table.vectors), table.path)


def source_of(capture: Capture, path: Path, layout: str) -> Source:
    """The source of a capture that was read at once, or that is in memory.

    Its photographs can then be examined, aligned and left out like those of a folder. They are linear, and divided by the
    strengths of the lights, already.

    Parameters
    ----------
    capture : Capture
        Whole, neither cropped nor scaled.
    path : path
        The file or folder that it was read from.
    layout : str
        The name of the format, if the capture does not name its own.
    """
    origin = capture.origin
    names: Sequence[str] = ()
    notes: tuple[Finding, ...] = ()
    bit_depth = 0
    if origin is not None:
        layout = origin.layout
        names = origin.files
        bit_depth = origin.bit_depth
        # The mask is chosen again.
        notes = tuple(note for note in origin.notes if note.subject is not Subject.MASK)
    truths = {
        label: (path, truth)
        for label in ("truth", "truth_depth", "truth_albedo")
        if (truth := getattr(capture, label)) is not None
    }
    return Source(
        path=path,
        layout=layout,
        name=capture.name,
        photographs=PhotographsOfFrames(capture.photographs, names),
        lights=_table_of(capture, path),
        mask=None if capture.mask.all() else capture.mask,
        truths=truths,
        bit_depth=bit_depth,
        notes=notes,
        camera=capture.lights.camera,
    )


def _table_of(capture: Capture, path: Path) -> LightTable | None:
    """The lights of a capture as those of a file; None if they are not known."""
    lights = capture.lights
    if not lights.known:
        return None
    errors = lights.expected_error
    return LightTable(
        path,
        _doubles(lights.directions),
        positions=None if lights.positions is None else _doubles(lights.positions),
        unit=lights.position_unit,
        distances=None if lights.distances is None else _doubles(lights.distances),
        errors=_doubles(errors) if np.isfinite(errors).any() else None,
    )


def _doubles(values: FloatArray) -> Float64:
    return np.array(values, dtype=np.float64)
