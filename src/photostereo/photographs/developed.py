"""Stored photographs as linear intensities, decoded on demand: one by one, or in bands of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32, FloatArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, distinct
from photostereo.io.camera import changes, common_orientation, exposure_of, exposures
from photostereo.io.spool import Kept, open_spool
from photostereo.photographs.brackets import merge_exposures
from photostereo.photographs.develop import (
    as_rgb,
    develop_into,
    include_exposure,
    linear_part,
    upright,
)
from photostereo.photographs.frames import Frames, require_finite
from photostereo.photographs.framing import Framing, moved_back
from photostereo.photographs.protocol import PhotographFiles, Pictures

#: Corners darker than this share of a flat field's mean are not amplified further.
DARKEST_FLAT = 0.05
#: Photographs that take no more bytes than this, as stored, stay in memory until they are read again.
HELD_BYTES = 200_000_000


@dataclass(frozen=True, eq=False)
class DevelopedFrames(Frames):
    """Stored photographs as linear intensities, from :func:`open_files`.

    ``dataclasses.replace`` makes views; they share what was decoded.
    """

    files: tuple[Path, ...]  #: paths of the photographs in use, in the order of the lights
    pictures: Pictures  #: the pictures by their paths, as they are stored
    orientation: int  #: how viewers turn the photographs, if all are turned alike
    #: whether the sRGB curve is undone; None to do so with JPEG files and those tagged as sRGB
    srgb: bool | None
    exposed: FloatArray  #: (d,) relative exposures
    strengths: FloatArray  #: (d, 3) that are divided out: strengths of the lights times exposures
    moves: FloatArray  #: (d, 3) displacement and turn of each photograph, undone when it is read
    color: bool = False  #: keep three channels, if there are any
    #: Intensities are clipped so that the gray value is at most this. In color all three channels are scaled alike.
    gray_limit: float | None = None
    framing: Framing = field(default_factory=Framing)  #: the part that is used
    ambient: Float32 | None = (
        None  #: whole picture of the light to subtract, linear, at an exposure of 1
    )
    flat: Float32 | None = None  #: whole picture to divide by
    #: all exposures, by the one in ``files``
    brackets: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    camera_notes: tuple[Finding, ...] = ()  #: what the camera recorded
    bits: int = 0  #: bits per channel, if the stored numbers do not show it
    workers: int | None = None  #: threads; None for one per processor
    full_frame: tuple[int, int] = (0, 0)  #: height and width of the whole photographs
    is_color: bool = False  #: whether the files have three channels
    #: stored type of each decoded photograph
    kinds: dict[Path, np.dtype[Any]] = field(default_factory=dict)
    _kept: Kept = field(default_factory=lambda: Kept(first={}))  #: decoded photographs

    @property
    def place(self) -> Path:  # type: ignore[override]
        return self.files[0].parent

    @property
    def shape(self) -> tuple[int, ...]:
        channels = (3,) if self.color and self.is_color else ()
        return len(self.files), *self.framing.frame(self.full_frame), *channels

    @property
    def curved(self) -> tuple[bool, ...]:
        """Whether the sRGB curve of each photograph is undone."""
        return tuple(self._is_curved(file, merged=False) for file in self.files)

    @property
    def bit_depth(self) -> int:  # type: ignore[override]
        """Bits per channel of the photographs that have been decoded; the largest if they differ."""
        return self.bits or max(kind.itemsize * 8 for kind in self.kinds.values())

    @property
    def notes(self) -> tuple[Finding, ...]:  # type: ignore[override]
        """Notes on bit depth, color and tone curve, and on what the camera recorded."""
        notes = []
        curved = self.curved
        known = {self.kinds[file]: file.name for file in reversed(self.files) if file in self.kinds}
        if len(known) > 1:
            (other, another), (kind, one) = list(known.items())[-2:]
            notes.append(
                Finding("bit-depths-differ", one=f"{one} is {kind}", another=f"{another} {other}")
            )
        if self.srgb is None and any(curved):
            notes.append(Finding("srgb-undone", some="" if all(curved) else f"{sum(curved)} of "))
        return (*notes, *self.camera_notes)

    def keep_decoded(self) -> None:
        """From now on, keep the stored numbers of every decoded photograph on disk, if there is room for them."""
        if self._kept.spool is None:
            self._kept.spool = open_spool(self._stored_bytes)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep photographs that are read within the block for their next use: small ones in memory, others on disk."""
        if self._stored_bytes > HELD_BYTES:
            self.keep_decoded()
            yield
            return
        self._kept.holds = True
        try:
            yield
        finally:
            self._kept.holds = False

    @property
    def _stored_bytes(self) -> int:
        channels = 3 if self.is_color else 1
        kind = next(iter(self.kinds.values()))
        return len(self.files) * math.prod(self.full_frame) * channels * kind.itemsize

    def take(self, chosen: Sequence[int]) -> DevelopedFrames:
        each = {
            name: getattr(self, name)[list(chosen)] for name in ("exposed", "strengths", "moves")
        }
        return replace(self, files=tuple(self.files[k] for k in chosen), **each)

    def with_strengths(self, strengths: NDArray[Any]) -> DevelopedFrames:
        """The same photographs divided by further strengths (d,) or (d, 3), estimated from them as they are."""
        return replace(self, strengths=self.strengths * as_rgb(strengths))

    def less_ambient(self, number: int) -> DevelopedFrames:
        """The same photographs minus the light in one of them, which was taken with the lights off."""
        dark = linear_part(
            self._stored(number, slice(None)), srgb=self._is_curved(self.files[number])
        )
        return replace(self, ambient=dark / np.float32(self.exposed[number]))

    def sample(self, most: int) -> DevelopedFrames:
        """At most ``most`` of the photographs, chosen with a fixed random seed, in color if available.

        Regular steps would not do: lights often stand in rows, and every fourth photograph may be lit from the same side.
        """
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.files))[:most])
        return replace(self.take(chosen.tolist()), color=True)

    def develop(self, number: int, target: Float32, rows: slice = slice(None)) -> None:
        framing = self.framing
        move = self.moves[number]
        lines = slice(None)
        columns = slice(None)
        large = target
        if framing.scale == 1.0 and not move.any():
            box, columns = framing.box(self.full_frame)
            first, last, _ = rows.indices(box.stop - box.start)
            lines = slice(box.start + first, box.start + last)
        else:
            large = np.empty((*self.full_frame, *target.shape[2:]), dtype=np.float32)
        part = self._stored(number, lines)[:, columns]
        self._develop_part(large, part, number, (lines, columns))
        if large is not target:
            target[:] = framing.picture(moved_back(large, move))[rows]
        if part.dtype.kind == "f":
            require_finite(target, self.files[number])

    def _stored(self, number: int, rows: slice) -> NDArray[Any]:
        """These rows of a photograph as stored, decoded now or kept from before."""
        path = self.files[number]
        kept = self._kept
        if kept.spool is not None and path in kept.places:
            return kept.spool.read(kept.places[path], rows)
        if path in self.brackets:
            return self._merged(path)[rows]
        stored = kept.first.pop(path, None)
        if stored is None:
            stored = self._decode(path)
        if kept.holds:
            kept.first[path] = stored
        if kept.spool is not None:
            try:
                kept.places[path] = kept.spool.write(stored)
            except OSError:  # the disk is full after all
                kept.spool = None
        return stored[rows]

    def _decode(self, path: Path) -> NDArray[Any]:
        """Read a photograph that must be like the first, and record its type."""
        stored = upright(self.pictures.read(path), self.orientation)
        if self.full_frame != (0, 0):
            self._require_frame(stored.shape[:2], path)
            if (stored.ndim == 3) != self.is_color:
                own, usual = ("gray", "RGB") if self.is_color else ("RGB", "gray")
                first = self.files[0].name
                raise CaptureError(
                    f"{path} is {own} but {first} is {usual}. Export all photographs in the same "
                    "mode.",
                    code="mode-mismatch",
                    file=path,
                    own=own,
                    name=first,
                    usual=usual,
                )
        self.kinds[path] = stored.dtype
        return stored

    def _merged(self, path: Path) -> Float32:
        """The exposures of a bracket as one linear photograph, at the exposure of ``path``, the shortest."""
        linear = []
        full = []
        times = []
        for file in self.brackets[path]:
            stored = self._decode(file)
            full.append(linear_part(stored, srgb=False))
            linear.append(
                linear_part(stored, srgb=True) if self._is_curved(file, merged=False) else full[-1]
            )
            times.append(exposure_of(self.pictures.head(file)) or 1.0)
        return merge_exposures(linear, times, full)

    def _is_curved(self, path: Path, *, merged: bool = True) -> bool:
        """Whether the sRGB curve of a file is to be undone; merged exposures are linear."""
        if merged and path in self.brackets:
            return False
        if self.srgb is None:
            return self.pictures.head(path).srgb
        return self.srgb

    def _require_frame(self, frame: tuple[int, ...], path: Path) -> None:
        """Raise if the height and width of a photograph differ from those of the first."""
        if frame != self.full_frame:
            own, usual = (f"{width} × {height}" for height, width in (frame, self.full_frame))
            raise CaptureError(
                f"{path} is {own} pixels (width × height) but {self.files[0].name} is {usual}. "
                "All photographs must be taken from the same position and have the same size: "
                "export them again without cropping or rotating.",
                code="size-mismatch",
                file=path,
                name=self.files[0].name,
                own=own,
                usual=usual,
            )

    def _develop_part(
        self, target: Float32, part: NDArray[Any], number: int, where: tuple[slice, slice]
    ) -> None:
        """Make a part of a photograph linear."""
        strength = self.strengths[number]
        develop_into(target, part, strength, self._is_curved(self.files[number]), self.gray_limit)
        if self.ambient is not None:
            dark = np.empty_like(target)
            # The ambient light of an exposure of 1; the exposure is in the strength, which divides it out again.
            develop_into(dark, self.ambient[where], strength / self.exposed[number], False, None)
            np.maximum(target - dark, 0, out=target)
        if self.flat is not None:
            flat = self.flat[where]
            target /= flat if flat.ndim == target.ndim else gray_from_rgb(flat)

    def _companion(self, path: Path) -> Float32:
        """A further photograph of the same frame, linear, full scale 1."""
        stored = upright(self.pictures.read(path), self.orientation)
        if stored.shape[:2] != self.full_frame or (stored.ndim == 3) != self.is_color:
            raise CaptureError(
                f"{path} does not have the size or the color mode of {self.files[0].name}. Take "
                "it with the same camera settings as the photographs, or move it out of the "
                "folder.",
                code="companion-mismatch",
                file=path,
                name=self.files[0].name,
            )
        return linear_part(stored, srgb=self._is_curved(path))


def open_files(
    files: Sequence[Path],
    *,
    intensities: NDArray[Any] | None = None,
    srgb: bool | None = False,
    ambient: Path | None = None,
    flat: Path | None = None,
    pictures: Pictures | None = None,
    **settings: Any,
) -> DevelopedFrames:
    """Open photographs: read their headers, and decode the first.

    ``intensities`` are the strengths of the lights, (d,) or (d, 3). ``ambient`` is a photograph with the lights off, which
    is subtracted at the exposure of each; ``flat`` one of an even surface, scaled to a mean of 1. A photograph that is
    unreadable or unlike the first raises a :class:`CaptureError` now or when it is decoded.
    """
    if pictures is None:
        pictures = Pictures(PhotographFiles(files))
    shots = [pictures.head(file) for file in files]
    companions = [] if ambient is None else [pictures.head(ambient)]
    exposed, notes = exposures([*shots, *companions])
    if (
        exposed is not None
        and intensities is not None
        and include_exposure(intensities, exposed[: len(files)])
    ):
        exposed = None
        notes = (*notes[:-1], Finding("exposure-in-strengths"))
    if brackets := settings.get("brackets"):
        every = [pictures.head(file) for group in brackets.values() for file in group]
        total = len(files) - len(brackets) + len(every)
        merged = Finding("brackets-merged", photographs=total, lights=len(files))
        notes = distinct((merged, *notes, *changes(every)))
    each = np.ones(len(files)) if exposed is None else np.asarray(exposed[: len(files)])
    # A strength that differs per channel weighs the ambient light as it does the light's.
    strengths = as_rgb(each) * (1.0 if intensities is None else as_rgb(intensities))
    source = DevelopedFrames(
        files=tuple(files),
        pictures=pictures,
        orientation=common_orientation(shots),
        srgb=srgb,
        exposed=each,
        strengths=strengths,
        moves=np.zeros((len(files), 3)),
        camera_notes=notes,
        **settings,
    )
    first = source._decode(files[0])
    source._kept.first[files[0]] = first
    source = replace(source, full_frame=first.shape[:2], is_color=first.ndim == 3)
    for path in files[1:]:  # before any is decoded
        if (declared := pictures.head(path).frame) is not None:
            source._require_frame(declared[::-1] if source.orientation > 4 else declared, path)
    if ambient is not None:
        dark = source._companion(ambient) / np.float32(1.0 if exposed is None else exposed[-1])
        source = replace(source, ambient=dark)
    if flat is not None:
        even = source._companion(flat)
        even = np.maximum(even / even.mean(axis=(0, 1)), np.float32(DARKEST_FLAT))
        source = replace(source, flat=even)
    return source
