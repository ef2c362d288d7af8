"""Write measurements of a result, such as slope or curvature, as 16-bit TIFF and as EXR.

TIFF is for programs that read 16 bits only; EXR has the numbers themselves, and is written if the
extra ``exr`` is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float64
from photostereo.results.formats.format import Job
from photostereo.results.maps import write_exr, write_tiff

#: Largest code of a picture; 0 means unknown, so values start at 1.
TOP = 65535
#: A signed scale ends at this percentile of the sizes: a few pixels at edges would take most of it.
PERCENTILE = 99.9


def write_measures(
    job: Job,
    name: str,
    pictures: Mapping[str, tuple[Float64, str]],
    limits: tuple[float, float] | None = None,
) -> dict[str, str]:
    """Write pictures of numbers as ``NAME_KEY.tiff`` each, and all of them as ``NAME.exr``.

    Parameters
    ----------
    job : Job
        Where to.
    name : str
        Beginning of the file names.
    pictures : mapping
        Key → picture (H, W), NaN where unknown, and what it is. The key of a single picture is
        left out of the name.
    limits : pair of float, optional
        The values of the codes 1 and 65535; others are clipped. By default zero is in the middle,
        and one pixel in 1,000 is clipped.

    Returns
    -------
    dict
        File name → meaning of its numbers.
    """
    meanings: dict[str, str] = {}
    for key, (picture, meaning) in pictures.items():
        file = f"{name}_{key}.tiff" if len(pictures) > 1 else f"{name}.tiff"
        low, high = limits or symmetric_limits(picture)
        meanings[file] = (
            f"{meaning} value = low + (code - 1) / {TOP - 1} * (high - low), clipped; "
            f"low = {low:.9g}, high = {high:.9g}; 0 is unknown."
        )
        codes = encode(picture, low, high)
        write_tiff(job.folder / file, codes, size=job.size, comment=meanings[file])
        job.files.append(file)
    if find_spec("OpenEXR") is not None:
        file = f"{name}.exr"
        meanings[file] = " ".join(meaning for _, meaning in pictures.values()) + " NaN is unknown."
        channels: dict[str, NDArray[Any]] = {key: picture for key, (picture, _) in pictures.items()}
        write_exr(job.folder / file, channels, size=job.size, comment=meanings[file])
        job.files.append(file)
    return meanings


def symmetric_limits(picture: Float64) -> tuple[float, float]:
    """Return limits with zero in the middle that clip few pixels of a picture."""
    sizes = np.abs(picture[np.isfinite(picture)])
    top = float(np.percentile(sizes, PERCENTILE)) if sizes.size else 0.0
    if top == 0.0:
        top = 1.0  # a plane
    return -top, top


def encode(picture: Float64, low: float, high: float) -> NDArray[np.uint16]:
    """Encode numbers as 16 bits: 1 is ``low``, 65535 is ``high``, 0 is unknown.

    Parameters
    ----------
    picture : (H, W) array
        The numbers; not finite where unknown.
    low, high : float
        The limits; numbers outside are clipped.
    """
    usable: BoolArray = np.isfinite(picture)
    share = (np.clip(picture[usable], low, high) - low) / (high - low)
    codes = np.zeros(picture.shape, dtype=np.uint16)
    codes[usable] = 1 + np.rint(share * (TOP - 1))
    return codes
