"""The harm suite: whatever a prior does, it must not be worse than the model without it.

Every cell is a synthetic capture with exact truth: reliefs, coins, fabric, figures × 8, 12, 20, 48 lights × noise of 0
to 5 % of full scale × 16 bits, 8 bits, JPEG × shadows or none. A method with a prior passes a cell where

- its mean angular error is at most 1.05 × that of the same model with the same parameters alone, plus 0.05°;
- at noise of 0.5 % or less, the power of its normals above a quarter of the Nyquist frequency is at least 0.9 of the
  truth's: fine detail is kept. Where the model alone is below that already (a robust model that drops half of the
  photographs in shadows), the prior has not taken it; such cells are counted in brackets.

All surfaces are matte, so a model for every material can be held against the better of ls and sbl, too: at most 1.1 ×
its error plus 0.1°.

Run: python -m benchmarks.harm [--methods dlnv,dlsr,cbr+dictionary] [--size 96] [--cells 80] [--known FILE] [--rows]

``--cells 80`` takes 80 cells, spread over all axes; with ``--known`` a run goes on where it ended. The exit status is the
number of failures.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import astuple, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import photostereo as ps
from photostereo.capture.corruptions import add_gaussian
from photostereo.scenes import dome_lights, render_scene
from photostereo.solver.methods import find_method, method_names

SCENES = ("relief", "coin", "fabric", "figure")
LIGHTS = (8, 12, 20, 48)
NOISE = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05)
CODING = ("16 bits", "8 bits", "JPEG")
#: What a prior may cost: a share of the model's own error, and degrees.
FACTOR, DEGREES = 1.05, 0.05
#: Fine detail: the least share of the truth's power above this part of the Nyquist frequency, up to this noise.
DETAIL, FINE, QUIET = 0.9, 0.25, 0.005
#: All surfaces of the suite are matte: what a model for every material may cost beside the better of ls and sbl.
MATTE_FACTOR, MATTE_DEGREES = 1.1, 0.1


@dataclass(frozen=True)
class Cell:
    """One capture of the suite."""

    scene: str
    lights: int
    noise: float
    coding: str
    shadows: bool

    def __str__(self) -> str:
        shadows = "shadows" if self.shadows else "no shadows"
        return f"{self.scene}, {self.lights} lights, noise {self.noise:.1%}, {self.coding}, {shadows}"

    def capture(self, size: int) -> ps.Capture:
        """The photographs: rendered, disturbed, stored and read back."""
        # Without shadows: lights so near the camera's axis, and only pixels so turned to it, that all are lit.
        tilt = None if self.shadows else 55.0
        clean = render_scene(
            self.scene,
            size=size,
            lights=dome_lights(self.lights, **({} if self.shadows else {"max_angle": 35.0})),
            cast_shadows=self.shadows,
            max_tilt=tilt,
        )
        noisy = add_gaussian(clean, self.noise, rng=0) if self.noise else clean
        return replace(noisy, images=stored(noisy.images, self.coding))


def stored(images: np.ndarray, coding: str) -> np.ndarray:
    """Photographs as a file of this kind gives them back."""
    values = np.clip(images, 0.0, 1.0)
    if coding == "JPEG":
        # A camera's file: sRGB, quality 90; read back to linear intensities.
        bent = np.where(values <= 0.0031308, 12.92 * values, 1.055 * values ** (1 / 2.4) - 0.055)
        files = [
            cv2.imencode(".jpg", p, [cv2.IMWRITE_JPEG_QUALITY, 90])[1] for p in np.uint8(np.round(255 * bent))
        ]
        read = np.stack([cv2.imdecode(file, cv2.IMREAD_GRAYSCALE) for file in files]) / 255.0
        return np.where(read <= 0.04045, read / 12.92, ((read + 0.055) / 1.055) ** 2.4).astype(np.float32)
    top = 65535 if coding == "16 bits" else 255
    return (np.round(values * top) / top).astype(np.float32)


def cells() -> list[Cell]:
    """All cells, in an order whose every beginning is spread over all axes."""
    everything = [Cell(*axes) for axes in product(SCENES, LIGHTS, NOISE, CODING, (False, True))]
    # 0.618 of their number, and prime to it: each is met once.
    return [everything[355 * k % len(everything)] for k in range(len(everything))]


@dataclass(frozen=True)
class Figures:
    """What a method gave on a cell: mean error in degrees, and the share of the truth's fine detail."""

    error: float
    detail: float


@dataclass(frozen=True)
class Outcome:
    """A method with a prior on a cell, beside the same model alone and the better of the two matte fits."""

    cell: Cell
    method: str
    own: Figures
    alone: Figures
    matte: float

    @property
    def harm(self) -> bool:
        return self.own.error > FACTOR * self.alone.error + DEGREES

    @property
    def flat(self) -> bool:
        """Fine detail is missing that the model alone has."""
        return self.below and self.alone.detail >= DETAIL

    @property
    def below(self) -> bool:
        """Fine detail is missing, by the prior's or by the model's own fault."""
        return self.cell.noise <= QUIET and self.own.detail < DETAIL

    @property
    def beyond_matte(self) -> bool:
        """Worse on these matte surfaces than a general model may be."""
        return self.own.error > MATTE_FACTOR * self.matte + MATTE_DEGREES

    def __str__(self) -> str:
        verdict = ", ".join(word for word, bad in (("HARM", self.harm), ("DETAIL LOST", self.flat)) if bad)
        figures = f"{self.own.error:.2f}° alone {self.alone.error:.2f}° matte {self.matte:.2f}°"
        detail = f"detail {self.own.detail:.2f} ({self.alone.detail:.2f})"
        return f"{self.method:8s} {self.cell}: {figures} {detail} {verdict or 'ok'}"


class Suite:
    """The cells at one size; what was solved before is read from a file of lines and not solved again."""

    def __init__(self, size: int, known: Path | None = None) -> None:
        self._size, self._file = size, known
        self._known: dict[str, Figures] = {}
        if known is not None and known.exists():
            for line in known.read_text().splitlines():
                key, error, detail = json.loads(line)
                self._known[key] = Figures(error, detail)

    def run(self, cell: Cell, methods: tuple[str, ...]) -> list[Outcome]:
        """Every method on a cell, each beside its own model alone."""
        capture = None

        def figures(name: str, **values: Any) -> Figures:
            nonlocal capture
            key = f"{cell}, {self._size}: {name} {values or ''}".strip()
            if key not in self._known:
                capture = cell.capture(self._size) if capture is None else capture
                result = ps.solve(capture, name, **values)
                detail = fine_detail(result.normals, capture.truth, capture.mask)
                self._known[key] = Figures(result.angular_error.mean, detail)
                if self._file is not None:
                    with self._file.open("a") as file:
                        file.write(json.dumps([key, *astuple(self._known[key])]) + "\n")
            return self._known[key]

        matte = min(figures("ls").error, figures("sbl").error)
        return [
            Outcome(cell, name, figures(name), figures(*alone[:1], **alone[1]), matte)
            for name in methods
            for alone in [model_alone(name)]
        ]


def model_alone(name: str) -> tuple[str, dict[str, Any]]:
    """The model of a method and those of the method's parameters in which it differs from the model's own."""
    method = find_method(name)
    model = find_method(method.model.name)
    own = model.resolve({})
    values = method.of_model(method.resolve({}))
    return model.name, {k: v for k, v in values.items() if k in own and own[k] != v}


def fine_detail(normals: np.ndarray, truth: np.ndarray, mask: np.ndarray) -> float:
    """Power of the normals above a quarter of the Nyquist frequency, as a share of the truth's."""
    window = largest_square(mask)
    return fine_power(normals[window]) / max(fine_power(truth[window]), 1e-12)


def fine_power(normals: np.ndarray) -> float:
    """Power above a quarter of the Nyquist frequency, under a window that hides the frame's edges."""
    side = normals.shape[0]
    taper = np.hanning(side)[:, None, None] * np.hanning(side)[None, :, None]
    spectrum = np.abs(np.fft.fft2((normals - normals.mean(axis=(0, 1))) * taper, axes=(0, 1))) ** 2
    frequency = np.fft.fftfreq(side)
    high = np.hypot(frequency[:, None], frequency[None, :]) > FINE * 0.5
    return float(spectrum[high].sum())


def largest_square(mask: np.ndarray) -> tuple[slice, slice]:
    """The largest square of mask pixels."""
    reach = np.zeros(mask.shape, dtype=int)
    for row, column in np.argwhere(mask):
        if row and column:
            above = min(reach[row - 1, column], reach[row, column - 1], reach[row - 1, column - 1])
            reach[row, column] = above + 1
        else:
            reach[row, column] = 1
    row, column = np.unravel_index(reach.argmax(), mask.shape)
    side = reach[row, column]
    return slice(row - side + 1, row + 1), slice(column - side + 1, column + 1)


def table(outcomes: list[Outcome]) -> str:
    """Cells and failures of each method by scene and noise: mean ratio to the model alone (worst ratio)."""
    lines = [
        "| method | noise | "
        + " | ".join(SCENES)
        + " | worse than allowed | detail lost | beyond the matte fits |",
        "|---" * 9 + "|",
    ]
    for method in dict.fromkeys(o.method for o in outcomes):
        for noise in NOISE:
            rows = [o for o in outcomes if (o.method, o.cell.noise) == (method, noise)]
            if not rows:
                continue
            columns = []
            for scene in SCENES:
                ratios = [o.own.error / max(o.alone.error, 0.05) for o in rows if o.cell.scene == scene]
                columns.append(f"{np.mean(ratios):.2f} ({max(ratios):.2f})" if ratios else "")
            harm = sum(o.harm for o in rows)
            flat = f"{sum(o.flat for o in rows)} ({sum(o.below for o in rows)})"
            beyond = str(sum(o.beyond_matte for o in rows))
            words = " | ".join([method, f"{noise:.1%}", *columns, f"{harm} of {len(rows)}", flat, beyond])
            lines.append(f"| {words} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    with_prior = [name for name in method_names() if find_method(name).has_prior]
    parser.add_argument("--methods", default=",".join(with_prior))
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument(
        "--cells", type=int, default=None, help="the first so many only, spread over all axes"
    )
    parser.add_argument("--part", default="1/1", help="2/3: the second of three processes")
    parser.add_argument("--known", type=Path, help="a file of what was solved before; it grows")
    parser.add_argument("--rows", action="store_true", help="print every cell, not only the failures")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    suite = Suite(options.size, options.known)
    outcomes: list[Outcome] = []
    for cell in cells()[: options.cells][part - 1 :: parts]:
        for outcome in suite.run(cell, tuple(options.methods.split(","))):
            outcomes.append(outcome)
            if options.rows or outcome.harm or outcome.flat:
                print(outcome, flush=True)
    print(table(outcomes))
    failures = sum(o.harm or o.flat for o in outcomes)
    print(f"{failures} failures in {len(outcomes)} outcomes.")
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
