"""EXR, HEIC and camera RAW: formats with libraries of their own, loaded when needed. Those of EXR and RAW are optional."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32
from photostereo.core.errors import MissingDependencyError
from photostereo.io.headers import Declared, damaged_image, image_shape, require_plausible
from photostereo.io.memory import require_memory
from photostereo.io.safe import explained

HEIC_SUFFIXES = frozenset({".heic", ".heif"})
#: Formats that LibRaw develops; the suffix decides, because many RAW formats look like TIFF internally.
_RAW = "3fr arw cr2 cr3 crw dcr dng erf iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl sr2 srf srw x3f"
RAW_SUFFIXES = frozenset(f".{name}" for name in _RAW.split())


@contextmanager
def _library(name: str, path: Path, kind: str, extra: str) -> Iterator[Any]:
    """The optional library that decodes a file; anything it raises is reported as a damaged file."""
    try:
        library = import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{path} is {kind} file, and the library that reads them is not installed. Install it "
            f"with: pip install 'photostereo[{extra}]', or export the photographs in another "
            "format.",
            code=f"missing-{extra}",
            file=path,
        ) from error

    with explained(partial(damaged_image, path)):
        yield library


def read_heic(path: Path) -> NDArray[Any]:
    """Stored values of an HEIC file, as phones write them: (H, W, 3), 8 or 16 bits, upright, with the sRGB curve."""
    with _library("pillow_heif", path, "an HEIC", "heic") as pillow_heif:
        file = pillow_heif.open_heif(path, convert_hdr_to_8bit=False)
        width, height = file.size
        require_plausible(Declared(width, height, 6), path.stat().st_size, path)
        return np.asarray(file)[..., :3]


def read_exr(path: Path) -> Float32:
    """Linear values of an EXR file: (H, W) or (H, W, 3) float32, as they are stored."""
    with _library("OpenEXR", path, "an EXR", "exr") as library:
        with library.File(str(path), header_only=True) as file:
            low, high = file.header()["dataWindow"]
        width, height = (int(side) for side in high - low + 1)
        # Four channels of four bytes: red, green, blue, alpha.
        require_plausible(Declared(width, height, 16), path.stat().st_size, path)
        with library.File(str(path)) as file:
            channels = {
                name: np.asarray(channel.pixels) for name, channel in file.channels().items()
            }
    for whole in ("RGB", "RGBA"):
        if whole in channels:
            return np.asarray(channels[whole][..., :3], dtype=np.float32)
    if all(name in channels for name in "RGB"):
        return np.stack([channels[name] for name in "RGB"], axis=-1).astype(np.float32)
    if "Y" in channels or len(channels) == 1:
        return np.asarray(channels.get("Y", next(iter(channels.values()))), dtype=np.float32)
    raise image_shape(path, f"the channels {', '.join(sorted(channels))}")


def read_raw(path: Path) -> NDArray[Any]:
    """A camera RAW file developed linearly: (H, W, 3) uint16.

    No gamma, no automatic brightness, and the same fixed white balance (all gains one) for every photograph:
    a camera that balances each photograph anew would change the ratios that photometric stereo relies on.
    Highlights are clipped, not reconstructed, and the orientation flag is ignored, as for all other formats.
    """
    with _library("rawpy", path, "a camera RAW", "raw") as rawpy, rawpy.imread(str(path)) as raw:
        require_memory(16 * raw.sizes.raw_width * raw.sizes.raw_height, str(path), "Scale it down.")
        return np.asarray(
            raw.postprocess(
                gamma=(1, 1),
                no_auto_bright=True,
                no_auto_scale=False,  # sensor range to 16 bits: the same factor for each photograph
                adjust_maximum_thr=0.0,  # otherwise the white level follows each photograph's own maximum
                use_camera_wb=False,
                use_auto_wb=False,
                user_wb=[1.0, 1.0, 1.0, 1.0],
                output_color=rawpy.ColorSpace.raw,
                output_bps=16,
                highlight_mode=rawpy.HighlightMode.Clip,
                user_flip=0,
            )
        )


#: The functions that read these formats, by suffix.
READERS = {
    ".exr": read_exr,
    **dict.fromkeys(HEIC_SUFFIXES, read_heic),
    **dict.fromkeys(RAW_SUFFIXES, read_raw),
}
