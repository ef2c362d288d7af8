"""Contact sheet of the input photographs: small pictures, lights in words, and a map from the method for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray, gray_from_rgb
from photostereo.diagnosis.exposure import matte_fit
from photostereo.lights.geometry import FRONTAL_DEGREES, compass_word
from photostereo.report import pictures
from photostereo.report.pictures import Frame, Picture, paint, small_map
from photostereo.solver.reconstruction import Reconstruction

#: Approximate bytes of the page for all photographs, and for the method's maps of them.
BYTE_BUDGET, VERDICT_BUDGET = 2_400_000, 900_000
#: Limits of the longest side in pixels (a few photographs are large enough to show beside the view); JPEG quality.
LARGEST, SMALLEST, QUALITY = 900, 110, 82
#: Longest side of the method's map of a photograph; it is only shown small.
VERDICT_SIDE = 294
#: Maximum number of photographs shown; from more, an even selection is taken.
MAX_PHOTOGRAPHS = 144
#: Maps per photograph that methods return, with their ranges.
OWN_MAPS = {"inliers": (0.0, 1.0), "errors": (-0.5, 0.5)}


@dataclass(frozen=True)
class Verdicts:
    """Maps of the photographs, all on one scale."""

    kind: (
        str  #: of the maps; the template has its title and the labels of the two ends of the scale
    )
    #: low, high: range of the scale
    low: float
    high: float
    maps: Sequence[FloatArray]  #: a small map for each photograph shown; NaN outside the object


def find_verdicts(
    result: Reconstruction,
    capture: Capture,
    chosen: Sequence[int],
    photographs: Sequence[FloatArray],
    frame: Frame,
    control: Control = SILENT,
) -> Verdicts:
    """Return the method's own weights or errors or, if it has none, differences from the best-fitting matte surface with
    its normals, relative to each pixel's brightness."""
    for name, ends in OWN_MAPS.items():
        own = result.maps.get(name)
        if own is not None and own.shape[-1] == len(capture):
            maps = [pictures.shrink_map(own[..., j], capture.mask, frame) for j in chosen]
            return Verdicts(name, *ends, maps)
    small = [pictures.resize(photograph, frame.height, frame.width) for photograph in photographs]
    gray = np.stack([gray_from_rgb(one) if one.ndim == 3 else one for one in small])
    control.check()
    normals, known = pictures.shrink_normals(result.normals, result.mask, frame)
    # Pixels that are partly background cannot be compared.
    known &= (
        pictures.resize(frame.cut(result.mask).astype(np.float32), frame.height, frame.width) > 0.99
    )
    control.check()
    seen = capture.lights.take(list(chosen)).over(*frame.places(known), result.mask.shape)
    values = seen.even(gray[:, known].T).T
    normals = normals[known]
    fit = matte_fit(values, normals, seen, np.ones(len(normals), bool))
    control.check()
    level = np.where(fit.brightness > 0, fit.brightness, 1.0)
    differences = np.full(gray.shape, np.nan, dtype=np.float32)
    differences[:, known] = (
        values - fit.amplitude * np.maximum(seen.shading(normals).T, 0)
    ) / level
    return Verdicts("model", -0.75, 0.75, list(differences))


def contact_sheet(
    capture: Capture,
    result: Reconstruction,
    saturation: FloatArray | None,
    control: Control = SILENT,
) -> tuple[list[Picture], Verdicts]:
    """Return at most ``MAX_PHOTOGRAPHS`` photographs, small, and the method's maps of them."""
    count = len(capture)
    chosen = np.unique(
        np.linspace(0, count - 1, min(count, MAX_PHOTOGRAPHS)).round().astype(int)
    ).tolist()
    frame = pictures.frame_around(result.mask, max_pixels=1 << 30)
    # One exposure for all, so that dark photographs look dark.
    white = _white_level(capture)
    side = _side_within_budget(capture, frame, white, chosen)
    smalls = []
    for index in chosen:
        control.check()
        smalls.append(small_map(frame.cut(capture.images[index]) / white, side))
    verdicts = find_verdicts(
        result, capture, chosen, smalls, _verdict_frame(capture, frame, len(chosen), side), control
    )
    names = capture.origin.files if capture.origin and len(capture.origin.files) == count else ()
    photographs = []
    for index, small, verdict in zip(chosen, smalls, verdicts.maps, strict=True):
        control.check()
        words = light_words(capture.lights.directions[index])
        if saturation is not None and saturation[index] > 0:
            words += f" {100 * saturation[index]:.2g} % saturated."
        # A few colors are enough and keep the pictures small.
        painting = paint(verdict, verdicts.low, verdicts.high, "weight", levels=17)
        photographs.append(
            {
                **pictures.shown(pictures.to_srgb(small), partial(pictures.jpeg, quality=QUALITY)),
                "number": index + 1,
                "name": f"Photograph {index + 1}" + (f": {names[index]}" if names else ""),
                "light": [round(float(value), 4) for value in capture.lights.directions[index]],
                "words": words,
                "verdict": pictures.png(painting),
            }
        )
    return photographs, verdicts


def light_words(light: FloatArray) -> str:
    """Describe a light direction in a sentence."""
    elevation = float(np.degrees(np.arcsin(np.clip(light[2], -1, 1))))
    side = compass_word(float(np.degrees(np.arctan2(light[1], light[0])) % 360))
    side = "front" if elevation > 90 - FRONTAL_DEGREES else side
    return f"Light from the {side}, {elevation:.0f}° above the image plane."


def _side_within_budget(capture: Capture, frame: Frame, white: float, chosen: list[int]) -> int:
    """Longest side at which all photographs fit the budget, estimated from about three of them."""
    trial = chosen[:: max(1, len(chosen) // 3)]
    smalls = [small_map(frame.cut(capture.images[index]) / white, LARGEST) for index in trial]
    length = sum(len(pictures.jpeg(pictures.to_srgb(small), QUALITY)) for small in smalls)
    expected = length / len(trial) * len(chosen)
    return int(np.clip(LARGEST * np.sqrt(BYTE_BUDGET / expected), SMALLEST, LARGEST))


def _white_level(capture: Capture) -> float:
    index = np.flatnonzero(capture.mask)
    index = index[:: max(1, len(index) // 4000)]
    flat = capture.images.reshape(len(capture), -1, *capture.images.shape[3:])
    white = float(np.percentile(flat[:, index], 99.3))
    return white if white > 0 else 1.0


def _verdict_frame(capture: Capture, frame: Frame, count: int, side: int) -> Frame:
    """Frame at which all maps fit their budget, assuming half a byte per object pixel."""
    height, width = frame.box
    within_budget = np.sqrt(VERDICT_BUDGET / 0.5 / count / capture.pixel_count)
    factor = min(min(0.7 * side, VERDICT_SIDE) / max(height, width), float(within_budget), 1.0)
    return Frame(frame.rows, frame.cols, *pictures.scaled_size(height, width, factor))
