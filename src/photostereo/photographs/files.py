"""Photographs on disk as linear intensities, decoded when they are asked for: one by one, or in bands of rows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import gray_from_rgb
from photostereo.core.errors import CaptureError
from photostereo.io.camera import Heads, changes, exposure_of, exposures
from photostereo.io.images import decode_image
from photostereo.io.memory import require_memory
from photostereo.io.spool import Spool, Spooled, open_spool
from photostereo.photographs.brackets import merge_exposures
from photostereo.photographs.develop import as_rgb, develop_into, linear_part
from photostereo.photographs.framing import Framing
from photostereo.photographs.source import Float32
from photostereo.runtime.threads import processors

#: Corners darker than this share of a flat field's mean are not amplified further.
DARKEST_FLAT = 0.05


class PhotographFiles:
    """Photographs in files.

    Parameters
    ----------
    files : the photographs, in the order of the lights
    intensities : (d,) or (d, 3) strengths of the lights, positive; ones where missing
    color : keep three channels (gray photographs stay gray)
    srgb : undo the sRGB curve first (for photographs that a camera encoded for viewing); None to do so with JPEG files
        and those that are tagged as sRGB
    gray_limit : intensities are clipped from above so that the gray value is at most this; with ``color`` all
        three channels are scaled alike, so that the color stays and the gray value of the result is the
        clipped one
    framing : the part that is used
    ambient : a photograph with the lamps off: subtracted in linear values, at the exposure of each
    flat : a photograph of an even surface: each is divided by it, its mean being 1
    brackets : for a photograph that is one of several exposures of its light, all of them: they are merged
    heads : what is known of the files already; the others are looked at once
    workers : threads; as many as there are processors where missing

    Raises
    ------
    CaptureError
        At once or when it is decoded: if a photograph is unreadable, of another size than the first, gray among
        color ones, or has NaN or infinite values; the message names it.
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
        self._strengths = (
            np.ones((len(files), 3)) if intensities is None else as_rgb(np.asarray(intensities, np.float64))
        )
        self.color, self._gray_limit = color, gray_limit
        self._heads = Heads() if heads is None else heads
        shots = [self._heads[file] for file in files]
        lit = [*shots, *([] if ambient is None else [self._heads[ambient]])]
        #: Whether the sRGB curve of each photograph is undone, and whether its file decided that.
        self.curved = tuple(shot.srgb if srgb is None else srgb for shot in shots)
        self.curved_by_file = srgb is None
        #: What each exposure of a bracket has for its curve and its exposure.
        self._bracket_shots = {
            file: [self._heads[other] for other in group] for file, group in self._brackets.items()
        }
        self._srgb = srgb
        exposed, self.camera_notes = exposures(lit)
        if (
            exposed is not None
            and intensities is not None
            and _contain(self._strengths, exposed[: len(files)])
        ):
            exposed, self.camera_notes = None, (*self.camera_notes[:-1], _CONTAINED)
        if self._brackets:
            every = [shot for group in self._bracket_shots.values() for shot in group]
            total = len(files) - len(self._brackets) + len(every)
            told = f"the {total} photographs are several exposures of {len(files)} lights: merged, one for each light"
            self.camera_notes = tuple(dict.fromkeys((told, *self.camera_notes, *changes(every))))
        if exposed is not None:
            self._strengths = self._strengths * np.asarray(exposed[: len(files)])[:, None]
        self._framing = framing or Framing()
        self.workers = workers or processors()
        self._first: NDArray[Any] | None = decode_image(files[0])
        self.full_frame = (int(self._first.shape[0]), int(self._first.shape[1]))
        self._require_declared_alike()
        self.is_color = self._first.ndim == 3
        frame = self._framing.frame(self.full_frame)
        self.shape: tuple[int, ...] = (
            (len(files), *frame, 3) if color and self.is_color else (len(files), *frame)
        )
        self._ambient = None if ambient is None else self._companion(ambient, srgb)
        self._flat = None if flat is None else self._companion(flat, srgb)
        if self._ambient is not None and exposed is not None:
            self._ambient /= np.float32(exposed[-1])
        if self._flat is not None:
            self._flat = np.maximum(self._flat / self._flat.mean(axis=(0, 1)), np.float32(DARKEST_FLAT))
        # A strength that differs per channel weighs the ambient light as it does the lamp's.
        self._exposed = np.ones(len(files)) if exposed is None else np.asarray(exposed[: len(files)])
        #: The type in which each photograph is stored, once it has been decoded.
        self.kinds: dict[int, np.dtype[Any]] = {0: self._first.dtype}
        self._spool: Spool | None = None
        self._spooled: dict[int, Spooled] = {}

    def keep_decoded(self) -> None:
        """From now on decode every photograph once and keep its numbers on disk, where there is room for them.

        They are kept as they are stored, two bytes for sixteen bits, and made linear whenever they are read.
        """
        if self._spool is None:
            kind = self.kinds[min(self.kinds)] if self.kinds else np.dtype(np.uint16)
            channels = 3 if self.is_color else 1
            self._spool = open_spool(len(self.files) * math.prod(self.full_frame) * channels * kind.itemsize)

    def take(self, chosen: Sequence[int]) -> PhotographFiles:
        """Some of the photographs."""
        part = PhotographFiles.__new__(PhotographFiles)
        part.__dict__.update(self.__dict__)
        part.files = tuple(self.files[k] for k in chosen)
        part._strengths = self._strengths[list(chosen)]
        part._exposed = self._exposed[list(chosen)]
        part.curved = tuple(self.curved[k] for k in chosen)
        part._first = None
        part.shape = (len(part.files), *self.shape[1:])
        part.kinds = {}
        part._spool, part._spooled = None, {}
        return part

    def sample(self, most: int, *, color: bool) -> PhotographFiles:
        """At most so many of the photographs, drawn at random but always the same, in color if they have any.

        Lamps often stand in rows: every fourth photograph may show the same side of all of them.
        """
        count = len(self.files)
        chosen = np.sort(np.random.default_rng(0).permutation(count)[:most])
        part = self.take(chosen.tolist())
        part.color = color
        part.shape = (*part.shape[:3], *((3,) if color and self.is_color else ()))
        return part

    def develop(self, number: int, target: Float32, rows: slice = slice(None)) -> None:
        """Decode one photograph and write these rows of it."""
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
        if part.dtype.kind == "f" and not np.isfinite(target.sum(dtype=np.float64)):
            bad = int((~np.isfinite(part)).sum())
            raise CaptureError(
                f"{self.files[number]} has {bad} values that are NaN or infinite. Export it again without undefined "
                "pixels, or leave it out together with its light."
            )

    def _stored(self, number: int, rows: slice) -> NDArray[Any]:
        """These rows of a photograph as they are stored, decoded or as they were kept."""
        spool, place = self._spool, self._spooled.get(number)
        if spool is not None and place is not None:
            return spool.read(place, rows)
        path = self.files[number]
        if path in self._brackets:
            return self._merged(path)[rows]
        stored = self._first if number == 0 and self._first is not None else decode_image(path)
        if number == 0:
            self._first = None  # it was only kept because it had to be looked at
        self._require_like_first(stored, path)
        self.kinds[number] = stored.dtype
        if spool is not None:
            try:
                self._spooled[number] = spool.write(stored)
            except OSError:  # the disk is full after all: decode again what is not there
                self._spool, self._spooled = None, {}
        return stored[rows]

    def _merged(self, path: Path) -> Float32:
        """The exposures of a bracket as one linear photograph, at the exposure of ``path``, the shortest."""
        linear, full, times = [], [], []
        for file, shot in zip(self._brackets[path], self._bracket_shots[path], strict=True):
            stored = decode_image(file)
            self._require_like_first(stored, file)
            full.append(linear_part(stored, srgb=False))
            curved = shot.srgb if self._srgb is None else self._srgb
            linear.append(linear_part(stored, srgb=True) if curved else full[-1])
            times.append(exposure_of(shot) or 1.0)
        self.kinds[self.files.index(path)] = stored.dtype
        return merge_exposures(linear, times, full)

    def _require_declared_alike(self) -> None:
        """An error where a header declares another size: before the large one of them is developed."""
        for path in self.files[1:]:
            frame = self._heads[path].frame
            if frame is not None and frame != self.full_frame:
                raise self._unlike_first(frame, path)

    def _unlike_first(self, frame: tuple[int, int], path: Path) -> CaptureError:
        return CaptureError(
            f"{path} measures {frame[0]} × {frame[1]} pixels (rows × columns) but "
            f"{self.files[0].name} {self.full_frame[0]} × {self.full_frame[1]}. All photographs must come "
            "from the same camera position and have the same size: export them again without cropping or "
            "rotating."
        )

    def _require_like_first(self, stored: NDArray[Any], path: Path) -> None:
        """An error where a photograph has another size or mode than the first."""
        if stored.shape[:2] != self.full_frame:
            raise self._unlike_first((stored.shape[0], stored.shape[1]), path)
        if (stored.ndim == 3) != self.is_color:
            here, there = ("RGB", "gray") if not self.is_color else ("gray", "RGB")
            raise CaptureError(
                f"{path} is {here} but {self.files[0].name} is {there}. Export all photographs in the same mode."
            )

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
        stored = decode_image(path)
        if stored.shape[:2] != self.full_frame or (stored.ndim == 3) != self.is_color:
            raise CaptureError(
                f"{path} has the shape {' × '.join(map(str, stored.shape))}, but {self.files[0].name} another. Take it "
                "with the same camera settings as the photographs, or move it out of the folder."
            )
        return linear_part(stored, srgb=self._heads[path].srgb if srgb is None else srgb)

    def frames(self) -> Iterator[Float32]:
        """Every photograph in turn; the next ones are decoded meanwhile, one for each thread."""

        def read(number: int) -> Float32:
            target = np.empty(self.shape[1:], dtype=np.float32)
            self.develop(number, target)
            return target

        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            waiting = deque(pool.submit(read, k) for k in range(min(self.workers, len(self.files))))
            following = len(waiting)
            try:
                while waiting:
                    frame = waiting.popleft().result()
                    if following < len(self.files):
                        waiting.append(pool.submit(read, following))
                        following += 1
                    yield frame
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def rows(self, first: int, last: int, which: slice = slice(None)) -> Float32:
        """These rows of all photographs, or of some, decoded in parallel."""
        chosen = range(len(self.files))[which]
        images = np.empty((len(chosen), last - first, *self.shape[2:]), dtype=np.float32)
        self._develop_all(images, slice(first, last), chosen)
        return images

    def all(self) -> Float32:
        """The whole stack."""
        height, width = self.shape[1:3]
        require_memory(
            4 * math.prod(self.shape),
            f"The {len(self.files)} photographs of {width} × {height} pixels in {self.files[0].parent}",
            "Scale them down, crop them, or use fewer.",
        )
        images = np.empty(self.shape, dtype=np.float32)
        self._develop_all(images, slice(None), range(len(self.files)))
        return images

    def _develop_all(self, images: Float32, rows: slice, chosen: Sequence[int]) -> None:
        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            pending = [
                pool.submit(self.develop, k, image, rows) for k, image in zip(chosen, images, strict=True)
            ]
            try:
                for job in pending:  # in the order of the files: the first bad one is named
                    job.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


#: What is said where the strengths of a light file follow the exposures.
_CONTAINED = (
    "the exposure changes between the photographs, and the strengths in the light file change with it: they are taken to "
    "contain the exposure, which is not compensated once more"
)


def _contain(strengths: NDArray[Any], exposed: Sequence[float]) -> bool:
    """Whether strengths (d, 3) follow the exposures: dividing by both would count these twice.

    >>> _contain(np.array([[1.1], [2.0], [3.9]]), [0.5, 1.0, 2.0]), _contain(np.ones((3, 1)), [0.5, 1.0, 2.0])
    (True, False)
    """
    exposure = np.log(np.asarray(exposed))
    rest = np.log(strengths.mean(axis=1)) - exposure
    return bool(np.std(rest) < 0.35 * np.std(exposure))
