"""Photographs on disk as linear intensities, decoded on demand: one by one, or in bands of rows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray, gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.camera import Heads, changes, common_orientation, exposure_of, exposures
from photostereo.io.images import decode_image
from photostereo.io.spool import Kept, open_spool
from photostereo.photographs.alignment.warp import moved_back
from photostereo.photographs.brackets import merge_exposures
from photostereo.photographs.develop import (
    CONTAINED,
    as_rgb,
    develop_into,
    include_exposure,
    linear_part,
    upright,
)
from photostereo.photographs.faults import not_finite, require_alike
from photostereo.photographs.framing import Framing
from photostereo.photographs.source import Float32, Photographs, bad_values

#: Corners darker than this share of a flat field's mean are not amplified further.
DARKEST_FLAT = 0.05
#: Photographs that take no more bytes than this, as stored, stay in memory until they are read again.
HELD_BYTES = 200_000_000


class PhotographFiles(Photographs):
    """Photographs in files.

    Parameters
    ----------
    files : the photographs, in the order of the lights
    intensities : (d,) or (d, 3) strengths of the lights, positive, see :meth:`with_strengths`; by default ones
    color : keep three channels (gray photographs stay gray)
    srgb : undo the sRGB curve first (for photographs that a camera encoded for viewing); None to do so with JPEG files
        and those that are tagged as sRGB
    gray_limit : intensities are clipped from above so that the gray value is at most this; with ``color`` all
        three channels are scaled alike, so that the color stays and the gray value of the result is the
        clipped one
    framing : the part that is used
    ambient : a photograph with the lights off: subtracted in linear values, at the exposure of each
    flat : a photograph of an even surface: each photograph is divided by it, scaled to a mean of 1
    brackets : all exposures of a light, to be merged, by the photograph in ``files`` that stands for them
    heads : headers that have been read; the others are read once
    workers : threads; by default one per processor

    Raises
    ------
    CaptureError
        If a photograph is unreadable, differs in size from the first, is gray among color ones, or has NaN or infinite
        values; raised at once or when it is decoded. The message names it.
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        intensities: NDArray[Any] | None = None,
        color: bool = False,
        srgb: bool | None = False,
        gray_limit: float | None = None,
        framing: Framing | None = None,
        ambient: Path | None = None,
        flat: Path | None = None,
        brackets: Mapping[Path, Sequence[Path]] | None = None,
        heads: Heads | None = None,
        workers: int | None = None,
    ) -> None:
        self.files = tuple(files)
        self._brackets = dict(brackets or {})
        self.color, self._gray_limit = color, gray_limit
        self._heads = Heads() if heads is None else heads
        shots = [self._heads[file] for file in files]
        lit = [*shots, *([] if ambient is None else [self._heads[ambient]])]
        #: Whether the sRGB curve of each photograph is undone, and whether its file decided that.
        self.curved = tuple(shot.srgb if srgb is None else srgb for shot in shots)
        self.curved_by_file = srgb is None
        self._srgb = srgb
        #: How viewers turn the photographs, if all are turned alike.
        self.orientation = common_orientation(shots)
        exposed, self.camera_notes = exposures(lit)
        if (
            exposed is not None
            and intensities is not None
            and include_exposure(intensities, exposed[: len(files)])
        ):
            exposed, self.camera_notes = None, (*self.camera_notes[:-1], CONTAINED)
        if self._brackets:
            every = [self._heads[file] for group in self._brackets.values() for file in group]
            total = len(files) - len(self._brackets) + len(every)
            merged = Finding("brackets-merged", photographs=total, lights=len(files))
            self.camera_notes = tuple(dict.fromkeys((merged, *self.camera_notes, *changes(every))))
        self._framing = framing or Framing()
        self.place, self.workers = files[0].parent, workers
        #: SHA-256 of every file that has been read, by its path.
        self.digests: dict[Path, str] = {}
        first = self._decode(files[0])
        self.full_frame = (int(first.shape[0]), int(first.shape[1]))
        for path in files[1:]:  # before any is decoded
            declared = self._heads[path].frame
            if declared is not None:
                turned = declared[::-1] if self.orientation > 4 else declared
                require_alike(turned, path, self.full_frame, files[0])
        self.is_color = first.ndim == 3
        self._ambient = None if ambient is None else self._companion(ambient, srgb)
        self._flat = None if flat is None else self._companion(flat, srgb)
        if self._ambient is not None and exposed is not None:
            self._ambient /= np.float32(exposed[-1])
        if self._flat is not None:
            self._flat = np.maximum(self._flat / self._flat.mean(axis=(0, 1)), np.float32(DARKEST_FLAT))
        # A strength that differs per channel weighs the ambient light as it does the light's.
        self._exposed = np.ones(len(files)) if exposed is None else np.asarray(exposed[: len(files)])
        self._strengths = self._exposed[:, None] * np.ones(3)
        if intensities is not None:
            self._strengths = self._strengths * as_rgb(np.asarray(intensities, np.float64))
        #: Displacement and turn of each photograph, undone when it is read.
        self._moves = np.zeros((len(files), 3))
        #: The type in which each photograph is stored, once it has been decoded.
        self.kinds: dict[Path, np.dtype[Any]] = {files[0]: first.dtype}
        #: Decoded photographs on disk; shared with the parts and other views of these photographs.
        self._kept = Kept(first={files[0]: first})

    @property
    def shape(self) -> tuple[int, ...]:
        channels = (3,) if self.color and self.is_color else ()
        return len(self.files), *self._framing.frame(self.full_frame), *channels

    def keep_decoded(self) -> None:
        """From now on, decode every photograph only once and keep its numbers on disk, if there is room for them.

        They are kept as stored, two bytes for sixteen bits, and made linear whenever they are read.
        """
        if self._kept.spool is None:
            kind = next(iter(self.kinds.values()), np.dtype(np.uint16))
            channels = 3 if self.is_color else 1
            size = len(self.files) * math.prod(self.full_frame) * channels * kind.itemsize
            self._kept.spool = open_spool(size)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep photographs that are read within the block for their next use: small ones in memory, others on disk."""
        stored = next(iter(self.kinds.values())).itemsize * (3 if self.is_color else 1)
        if len(self.files) * math.prod(self.full_frame) * stored > HELD_BYTES:
            self.keep_decoded()
            yield
            return
        self._kept.holds = True
        try:
            yield
        finally:
            self._kept.holds = False

    def take(self, chosen: Sequence[int]) -> PhotographFiles:
        """Some of the photographs."""
        which = list(chosen)
        return self._view(
            files=tuple(self.files[k] for k in which),
            curved=tuple(self.curved[k] for k in which),
            _strengths=self._strengths[which],
            _exposed=self._exposed[which],
            _moves=self._moves[which],
        )

    def framed(self, framing: Framing) -> PhotographFiles:
        """Another part of the same photographs."""
        return self._view(_framing=framing)

    def with_strengths(self, strengths: NDArray[Any]) -> PhotographFiles:
        """The same photographs divided by further strengths (d,) or (d, 3), estimated from them as they are."""
        return self._view(_strengths=self._strengths * as_rgb(np.asarray(strengths, np.float64)))

    def moved_back(self, moves: FloatArray) -> PhotographFiles:
        """The same photographs with displacements and turns (d, 3) undone, see :class:`.alignment.motion.Motion`."""
        return self._view(_moves=np.array(moves))

    def in_color(self, color: bool) -> PhotographFiles:
        """The same photographs with three channels, if they have them, or in gray."""
        return self._view(color=color)

    def less_ambient(self, number: int) -> PhotographFiles:
        """The same photographs minus the light in one of them, which was taken with the lights off."""
        curved = self.curved[number] and self.files[number] not in self._brackets
        dark = linear_part(self._stored(number, slice(None)), srgb=curved)
        return self.less(dark / np.float32(self._exposed[number]))

    def less(self, ambient: Float32) -> PhotographFiles:
        """The same photographs minus ambient light: (H, W) or (H, W, 3), of the full frame, at an exposure of 1."""
        return self._view(_ambient=ambient)

    def undivided(self) -> PhotographFiles:
        """The same photographs at an exposure of 1, not divided by the strengths of the lights."""
        return self._view(_strengths=self._exposed[:, None] * np.ones(3))

    @property
    def can_subtract(self) -> bool:
        """Whether :meth:`less` can be used: nothing was subtracted, divided or moved yet."""
        return self._ambient is None and self._flat is None and not self._moves.any()

    def _view(self, **changes: Any) -> PhotographFiles:
        """The same photographs with other settings; views share what has been decoded."""
        part = PhotographFiles.__new__(PhotographFiles)
        part.__dict__.update(self.__dict__, **changes)
        return part

    def sample(self, most: int, *, color: bool) -> PhotographFiles:
        """At most ``most`` of the photographs, chosen with a fixed random seed, in color if requested and available.

        Regular steps would not do: lights often stand in rows, and every fourth photograph may be lit from the same side.
        """
        count = len(self.files)
        chosen = np.sort(np.random.default_rng(0).permutation(count)[:most])
        return self.take(chosen.tolist()).in_color(color)

    def develop(self, number: int, target: Float32, rows: slice = slice(None)) -> None:
        if self._moves[number].any():
            still = self._view(_moves=np.zeros_like(self._moves), _framing=Framing())
            whole = np.empty((*self.full_frame, *target.shape[2:]), dtype=np.float32)
            still.develop(number, whole)
            target[:] = self._framing.picture(moved_back(whole, self._moves[number]))[rows]
            return
        lines, columns = self._framing.box(self.full_frame)
        if self._framing.scale == 1.0:
            first, last, _ = rows.indices(lines.stop - lines.start)
            lines = slice(lines.start + first, lines.start + last)
        part = self._stored(number, lines)[:, columns]
        if self._framing.scale == 1.0:
            self._develop_part(target, part, number, lambda whole: whole[lines, columns])
        else:
            large = np.empty((*part.shape[:2], *target.shape[2:]), dtype=np.float32)
            self._develop_part(large, part, number, lambda whole: whole[lines, columns])
            target[:] = self._framing.shrink(large, self.full_frame)[rows]
        if part.dtype.kind == "f" and (bad := bad_values(target)):
            raise not_finite(self.files[number], bad)

    def _stored(self, number: int, rows: slice) -> NDArray[Any]:
        """These rows of a photograph as stored, decoded now or kept from before."""
        path = self.files[number]
        spool, place = self._kept.spool, self._kept.places.get(path)
        if spool is not None and place is not None:
            return spool.read(place, rows)
        if path in self._brackets:
            return self._merged(path)[rows]
        stored = self._kept.first.pop(path, None)
        if stored is None:
            stored = self._decode(path)
        if self._kept.holds:
            self._kept.first[path] = stored
        self._require_like_first(stored, path)
        self.kinds[path] = stored.dtype
        if spool is not None:
            try:
                self._kept.places[path] = spool.write(stored)
            except OSError:  # the disk is full after all
                self._kept.spool = None
        return stored[rows]

    def _decode(self, path: Path) -> NDArray[Any]:
        """Decode a file and record the digest of its bytes, so that it need not be read again for that."""

        def seen(data: bytes) -> None:
            self.digests[path] = hashlib.sha256(data).hexdigest()

        return upright(decode_image(path, seen=seen), self.orientation)

    def _merged(self, path: Path) -> Float32:
        """The exposures of a bracket as one linear photograph, at the exposure of ``path``, the shortest."""
        linear, full, times = [], [], []
        for file in self._brackets[path]:
            stored, shot = self._decode(file), self._heads[file]
            self._require_like_first(stored, file)
            full.append(linear_part(stored, srgb=False))
            curved = shot.srgb if self._srgb is None else self._srgb
            linear.append(linear_part(stored, srgb=True) if curved else full[-1])
            times.append(exposure_of(shot) or 1.0)
        self.kinds[path] = stored.dtype
        return merge_exposures(linear, times, full)

    def _require_like_first(self, stored: NDArray[Any], path: Path) -> None:
        """Raise if the size or mode of a photograph differs from that of the first."""
        require_alike(stored.shape[:2], path, self.full_frame, self.files[0])
        if (stored.ndim == 3) != self.is_color:
            own, usual = ("gray", "RGB") if self.is_color else ("RGB", "gray")
            raise CaptureError(code="mode-mismatch", file=path, own=own, name=self.files[0].name, usual=usual)

    def _develop_part(
        self, target: Float32, part: NDArray[Any], number: int, same: Callable[[Float32], Float32]
    ) -> None:
        """Make a part of a photograph linear; ``same`` cuts that part out of the ambient and the flat photograph."""
        strength = self._strengths[number]
        curved = self.curved[number] and self.files[number] not in self._brackets  # merged ones are linear
        develop_into(target, part, strength, curved, self._gray_limit)
        if self._ambient is not None:
            dark = np.empty_like(target)
            # The ambient light of an exposure of 1; the exposure is in the strength, which divides it out again.
            develop_into(dark, same(self._ambient), strength / self._exposed[number], False, None)
            np.maximum(target - dark, 0, out=target)
        if self._flat is not None:
            flat = same(self._flat)
            target /= flat if flat.ndim == target.ndim else gray_from_rgb(flat)

    def _companion(self, path: Path, srgb: bool | None) -> Float32:
        """A further photograph of the same frame, linear, full scale 1."""
        stored = upright(decode_image(path), self.orientation)
        if stored.shape[:2] != self.full_frame or (stored.ndim == 3) != self.is_color:
            raise CaptureError(code="companion-mismatch", file=path, name=self.files[0].name)
        return linear_part(stored, srgb=self._heads[path].srgb if srgb is None else srgb)
