"""The harm suite: a prior must not make results worse than those of the model alone.

Every cell is a synthetic capture with exact truth: reliefs, coins, fabric, figures × 8, 12, 20, 48 lights × noise of 0
to 5 % of full scale × 16 bits, 8 bits, JPEG × shadows or none. A method with a prior passes a cell if

- its mean angular error is at most 1.05 × that of the same model with the same parameters alone, plus 0.05°;
- at noise of 0.5 % or less, the power of its normals above a quarter of the Nyquist frequency is at least 0.9 of the
  truth's: fine detail is kept. If the model alone is already below that (a robust model that ignores half of the
  photographs in shadows), the prior has not lost it; such cells are counted in a separate column.

All surfaces are matte, so a model for every material is also compared with the better of ls and sbl: its error may be at
most 1.1 times as large, plus 0.1°.

Run: python -m benchmarks.harm [--methods dlnv,dlsr,cbr+dictionary] [--size 128] [--cells 80] [--known FILE] [--rows]

``--cells 80`` runs 80 cells, spread over all axes; ``--processes 15`` runs 15 at a time; ``--minutes 8`` stops after eight
minutes. With ``--known`` a run continues an earlier one, and ``--minutes 0`` only prints its results. The exit status is
the number of failures (at most 100).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

import cv2
import numpy as np

import photostereo as ps
from photostereo.solver.methods import find_method, method_names
from photostereo_lab.corruptions import add_gaussian
from photostereo_lab.scenes import dome_lights, render_scene

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
        return (
            f"{self.scene}, {self.lights} lights, noise {self.noise:.1%}, {self.coding}, {shadows}"
        )

    def capture(self, size: int) -> ps.Capture:
        """The photographs: rendered, with noise, stored and read back."""
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
    """Photographs after storing them in a file of this kind."""
    values = np.clip(images, 0.0, 1.0)
    if coding == "JPEG":
        # A camera's file: sRGB, quality 90; read back to linear intensities.
        bent = np.where(values <= 0.0031308, 12.92 * values, 1.055 * values ** (1 / 2.4) - 0.055)
        files = [
            cv2.imencode(".jpg", p, [cv2.IMWRITE_JPEG_QUALITY, 90])[1]
            for p in np.uint8(np.round(255 * bent))
        ]
        read = np.stack([cv2.imdecode(file, cv2.IMREAD_GRAYSCALE) for file in files]) / 255.0
        return np.where(read <= 0.04045, read / 12.92, ((read + 0.055) / 1.055) ** 2.4).astype(
            np.float32
        )
    top = 65535 if coding == "16 bits" else 255
    return (np.round(values * top) / top).astype(np.float32)


def cells() -> list[Cell]:
    """All cells, ordered so that the first N are spread over all axes."""
    everything = [Cell(*axes) for axes in product(SCENES, LIGHTS, NOISE, CODING, (False, True))]
    # 0.618 of their number, and prime to it: each is met once.
    return [everything[355 * k % len(everything)] for k in range(len(everything))]


@dataclass(frozen=True)
class Figures:
    """Results of a method on a cell: mean error in degrees, and the share of the truth's fine detail."""

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
    def ratio(self) -> float:
        """The error relative to that of the model alone, which counts as at least 0.05°."""
        return self.own.error / max(self.alone.error, 0.05)

    @property
    def harm(self) -> bool:
        return self.own.error > FACTOR * self.alone.error + DEGREES

    @property
    def flat(self) -> bool:
        """Whether fine detail is missing that the model alone has."""
        return self.below and self.alone.detail >= DETAIL

    @property
    def below(self) -> bool:
        """Whether fine detail is missing, because of the prior or the model."""
        return self.cell.noise <= QUIET and self.own.detail < DETAIL

    @property
    def beyond_matte(self) -> bool:
        """Whether the error is larger than a general model may have on matte surfaces."""
        return self.own.error > MATTE_FACTOR * self.matte + MATTE_DEGREES

    def __str__(self) -> str:
        verdict = ", ".join(
            word
            for word, bad in (
                ("HARM", self.harm),
                ("DETAIL LOST", self.flat),
                ("MATTE", self.beyond_matte),
            )
            if bad
        )
        figures = f"{self.own.error:.2f}° alone {self.alone.error:.2f}° matte {self.matte:.2f}°"
        detail = f"detail {self.own.detail:.2f} ({self.alone.detail:.2f})"
        return f"{self.method:8s} {self.cell}: {figures} {detail} {verdict or 'ok'}"


class Suite:
    """The cells at one size; earlier results are read from a file and not computed again."""

    def __init__(self, size: int, known: Path | None = None) -> None:
        self._size, self._file = size, known
        self._known: dict[str, Figures] = {}
        if known is not None and known.exists():
            for line in known.read_text().splitlines():
                key, error, detail = json.loads(line)
                self._known[key] = Figures(error, detail)

    def _key(self, cell: Cell, name: str, values: dict[str, Any]) -> str:
        return f"{cell}, {self._size}: {name} {values or ''}".strip()

    def knows(self, cell: Cell, methods: tuple[str, ...]) -> bool:
        """Whether all results of a cell are known."""
        asked = [
            ("ls", {}),
            ("sbl", {}),
            *((name, {}) for name in methods),
            *map(model_alone, methods),
        ]
        return all(self._key(cell, *one) in self._known for one in asked)

    def run(self, cell: Cell, methods: tuple[str, ...]) -> list[Outcome]:
        """Run every method on a cell, and its model alone."""
        capture = None

        def figures(name: str, **values: Any) -> Figures:
            nonlocal capture
            key = self._key(cell, name, values)
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
    """The model of a method, and the parameters in which the method differs from the model's defaults."""
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
    """Power above a quarter of the Nyquist frequency, under a window that suppresses the edges of the frame."""
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
    """Outcomes of each method, and its mean (and worst) error relative to the model alone, by axis."""
    methods = dict.fromkeys(outcome.method for outcome in outcomes)
    lines = [
        "| method | cells | mean | worst | worse than allowed | detail lost | had none | beyond the matte fits |",
        "|---" * 8 + "|",
    ]
    for method in methods:
        rows = [o for o in outcomes if o.method == method]
        quiet = [o for o in rows if o.cell.noise <= QUIET]
        flat, below = sum(o.flat for o in quiet), sum(o.below for o in quiet)
        mean, worst = np.mean([o.ratio for o in rows]), max(o.ratio for o in rows)
        harm, beyond = sum(o.harm for o in rows), sum(o.beyond_matte for o in rows)
        words = f"{len(rows)} | {mean:.2f} | {worst:.2f} | {harm} | {flat} of {len(quiet)} | {below - flat} | {beyond}"
        lines.append(f"| `{method}` | {words} |")
    axes: list[tuple[str, Callable[[Cell], bool]]] = [
        *((scene, lambda cell, scene=scene: cell.scene == scene) for scene in SCENES),
        *((f"{count} lights", lambda cell, count=count: cell.lights == count) for count in LIGHTS),
        *((f"{noise:.1%}", lambda cell, noise=noise: cell.noise == noise) for noise in NOISE),
        *((coding, lambda cell, coding=coding: cell.coding == coding) for coding in CODING),
        ("no shadows", lambda cell: not cell.shadows),
        ("shadows", lambda cell: cell.shadows),
    ]
    lines += [
        "",
        "| | " + " | ".join(f"`{method}`" for method in methods) + " |",
        "|---" * (len(methods) + 1) + "|",
    ]
    for name, belongs in axes:
        columns = []
        for method in methods:
            ratios = [o.ratio for o in outcomes if o.method == method and belongs(o.cell)]
            columns.append(f"{np.mean(ratios):.2f} ({max(ratios):.2f})" if ratios else "")
        lines.append(f"| {name} | " + " | ".join(columns) + " |")
    return "\n".join(lines)


def outcomes_of(
    suite: Suite, chosen: list[Cell], methods: tuple[str, ...], processes: int, minutes: float
) -> Iterator[Outcome]:
    """Yield outcomes as they arrive, until the time is up."""
    end = monotonic() + 60.0 * minutes
    known = [cell for cell in chosen if suite.knows(cell, methods)]
    for cell in known:
        yield from suite.run(cell, methods)
    chosen = [] if minutes <= 0 else [cell for cell in chosen if cell not in known]
    if processes == 1:
        for cell in chosen:
            if monotonic() < end:
                yield from suite.run(cell, methods)
        return
    # Leaving the pool ends the cells that are still at work.
    with get_context("spawn").Pool(processes) as pool:
        for found in pool.imap_unordered(partial(suite.run, methods=methods), chosen):
            yield from found
            if monotonic() > end:
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    with_prior = [name for name in method_names() if find_method(name).has_prior]
    parser.add_argument("--methods", default=",".join(with_prior))
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument(
        "--cells", type=int, default=None, help="run only N cells, spread over all axes"
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="cells to run at a time; limit each to one thread"
    )
    parser.add_argument("--minutes", type=float, default=np.inf, help="time limit")
    parser.add_argument("--known", type=Path, help="file of earlier results; new ones are appended")
    parser.add_argument(
        "--rows", action="store_true", help="print every cell, not only the failures"
    )
    options = parser.parse_args()
    suite, methods = Suite(options.size, options.known), tuple(options.methods.split(","))
    outcomes: list[Outcome] = []
    for outcome in outcomes_of(
        suite, cells()[: options.cells], methods, options.processes, options.minutes
    ):
        outcomes.append(outcome)
        if options.rows or outcome.harm or outcome.flat or outcome.beyond_matte:
            print(outcome, flush=True)
    print(table(outcomes))
    failures = sum(o.harm or o.flat for o in outcomes)
    print(f"{failures} failures in {len(outcomes)} outcomes.")
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
