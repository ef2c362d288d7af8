"""The harm suite: whatever a prior does, it must not be worse than the model without it.

Every cell is a synthetic capture with exact truth: reliefs, coins, fabric, figures × 8, 12, 20, 48 lights × noise of 0
to 5 % of full scale × 16 bits, 8 bits, JPEG × shadows or none. A method with a prior passes a cell where

- its mean angular error is at most 1.05 × that of the same model with the same parameters alone, plus 0.05°;
- at noise of 0.5 % or less, the power of its normals above a quarter of the Nyquist frequency is at least 0.9 of the
  truth's, or of the model's alone where that has lost some already (a matte model in shadows): fine detail is kept.

Run: python -m benchmarks.harm [--methods dlnv,dlsr,cbr+dictionary] [--size 96] [--every 1] [--first 0] [--rows]

``--every 9`` takes every ninth cell, spread over all axes. The exit status is the number of failures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

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


def cells(every: int = 1, first: int = 0) -> Iterator[Cell]:
    """All cells, or every so-many-th."""
    everything = product(SCENES, LIGHTS, NOISE, CODING, (False, True))
    return (Cell(*axes) for k, axes in enumerate(everything) if k % every == first % every)


@dataclass(frozen=True)
class Outcome:
    """What a method did on a cell: errors in degrees, and the share of fine detail that is left; the same alone."""

    cell: Cell
    method: str
    error: float
    alone: float
    detail: float
    detail_alone: float

    @property
    def harm(self) -> bool:
        return self.error > FACTOR * self.alone + DEGREES

    @property
    def flat(self) -> bool:
        return self.cell.noise <= QUIET and self.detail < DETAIL * min(1.0, self.detail_alone)

    def __str__(self) -> str:
        verdict = ", ".join(word for word, bad in (("HARM", self.harm), ("DETAIL LOST", self.flat)) if bad)
        figures = (
            f"{self.error:.2f}° alone {self.alone:.2f}° detail {self.detail:.2f} ({self.detail_alone:.2f})"
        )
        return f"{self.method:8s} {self.cell}: {figures} {verdict or 'ok'}"


def run_cell(cell: Cell, methods: tuple[str, ...], size: int) -> list[Outcome]:
    """Every method on a cell, each beside its own model alone."""
    capture = cell.capture(size)
    outcomes, known = [], {}
    for name in methods:
        method = find_method(name)
        model = find_method(method.model.name)
        taken = {parameter.name for parameter in model.parameters}
        values = {k: v for k, v in method.of_model(method.resolve({})).items() if k in taken}
        key = (model.name, tuple(sorted(values.items())))
        if key not in known:
            own = ps.solve(capture, model, **values)
            known[key] = own.angular_error.mean, fine_detail(own.normals, capture.truth, capture.mask)
        result = ps.solve(capture, method)
        detail = fine_detail(result.normals, capture.truth, capture.mask)
        alone, detail_alone = known[key]
        outcomes.append(Outcome(cell, name, result.angular_error.mean, alone, detail, detail_alone))
    return outcomes


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
        "| method | noise | " + " | ".join(SCENES) + " | worse than allowed | detail lost |",
        "|---" * 8 + "|",
    ]
    for method in dict.fromkeys(o.method for o in outcomes):
        for noise in NOISE:
            rows = [o for o in outcomes if (o.method, o.cell.noise) == (method, noise)]
            if not rows:
                continue
            columns = []
            for scene in SCENES:
                ratios = [o.error / max(o.alone, 0.05) for o in rows if o.cell.scene == scene]
                columns.append(f"{np.mean(ratios):.2f} ({max(ratios):.2f})" if ratios else "")
            harm, flat = sum(o.harm for o in rows), sum(o.flat for o in rows)
            words = " | ".join([method, f"{noise:.1%}", *columns, f"{harm} of {len(rows)}", str(flat)])
            lines.append(f"| {words} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    with_prior = [name for name in method_names() if find_method(name).has_prior]
    parser.add_argument("--methods", default=",".join(with_prior))
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", action="store_true", help="print every cell, not only the failures")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    for cell in cells(options.every, options.first):
        for outcome in run_cell(cell, tuple(options.methods.split(",")), options.size):
            outcomes.append(outcome)
            if options.rows or outcome.harm or outcome.flat:
                print(outcome, flush=True)
    print(table(outcomes))
    failures = sum(o.harm or o.flat for o in outcomes)
    print(f"{failures} failures in {len(outcomes)} outcomes.")
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
