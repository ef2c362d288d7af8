"""Detection of common mistakes before a solve, on the shared captures and scenes, each with every mistake.

Named: the right kind of mistake is reported. Mended: the recommended options restore the right directions. There must be
no warning for an unchanged capture.

Run: python -m benchmarks.mistakes [-v]       Needs the shared captures (PHOTOSTEREO_DATA or ../shared/data).
     python -m benchmarks.mistakes --unseen   On captures not used to set thresholds (benchmarks/unseen.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import photostereo as ps
from benchmarks.captures import ABSENT, diligent_folder
from benchmarks.unseen import Unseen, unseen
from photostereo.core.conventions import srgb_from_linear
from photostereo.core.findings import Finding
from photostereo.diagnosis.checks import find_mistakes
from photostereo.lights.geometry import axes_matrix
from photostereo_lab import scenes

OBJECTS = ("ball", "bear", "cat", "cow", "pot2", "reading")
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Falsification:
    """The change to images, lights and mask, and the codes of mistakes that describe it correctly."""

    name: str
    codes: tuple[str, ...]
    change: Callable[[np.ndarray, np.ndarray, np.ndarray], Parts]


def with_lights(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Parts]:
    return lambda images, lights, mask: (images, change(lights), mask)


def curved(images, lights, mask) -> Parts:
    top = np.percentile(images[:, mask], 99.5)
    return srgb_from_linear((images / top).astype(np.float32)), lights, mask


WAYS = (
    Falsification("y downwards", ("light-axes",), with_lights(lambda n: n * [1, -1, 1])),
    Falsification("x to the left", ("light-axes",), with_lights(lambda n: n * [-1, 1, 1])),
    Falsification("x and y exchanged", ("light-axes",), with_lights(lambda n: n[:, [1, 0, 2]])),
    Falsification(
        "turned by 90°", ("light-axes",), with_lights(lambda n: n[:, [1, 0, 2]] * [-1, 1, 1])
    ),
    Falsification("y and z exchanged", ("light-axes",), with_lights(lambda n: n[:, [0, 2, 1]])),
    Falsification("from light to object", ("lights-reversed",), with_lights(lambda n: -n)),
    Falsification("shifted by one", ("light-order",), with_lights(lambda n: np.roll(n, 1, axis=0))),
    Falsification("from the last", ("light-order",), with_lights(lambda n: n[::-1])),
    Falsification(
        "shuffled",
        ("light-order",),
        with_lights(lambda n: n[np.random.default_rng(7).permutation(len(n))]),
    ),
    Falsification(
        "mask inverted", ("mask-inverted",), lambda images, lights, mask: (images, lights, ~mask)
    ),
    Falsification("sRGB as linear", ("tone-curve",), curved),
)


def telling() -> Iterator[tuple[str, ps.Capture]]:
    """Captures whose shape and material reveal mistakes: matte or glossy objects, no mirrors, no planes."""
    folder = diligent_folder()
    assert folder is not None
    for name in OBJECTS:
        yield f"DiLiGenT {name}", ps.load(folder / "pmsData" / f"{name}PNG")
    for name in ("cat", "hippo"):
        yield f"Harvard {name}", ps.load(folder.parent / "harvard" / name)
    for name in ("cat", "gray"):
        uw = folder.parent / "uw"
        yield f"UW {name}", ps.load(uw / name, lights=uw / "lights.txt")
    for shape in ("figure", "vase", "sphere", "coin", "relief"):
        for reflectance, lights in (
            ("lambertian", scenes.dome_lights(20)),
            ("ggx", scenes.random_lights(12, rng=3)),
        ):
            capture = scenes.render_scene(shape, size=128, lights=lights, reflectance=reflectance)
            yield f"{shape} {reflectance}", capture


def others() -> Iterator[tuple[str, ps.Capture]]:
    """Further captures that must cause no warning: a mirror, planes and steps, fewer photographs, rings of lights."""
    folder = diligent_folder()
    assert folder is not None
    uw = folder.parent / "uw"
    yield "UW chrome", ps.load(uw / "chrome", lights=uw / "lights.txt")
    for name in OBJECTS:
        for seed in range(3):
            yield f"20 of {name}", ps.load(folder / "pmsData" / f"{name}PNG").take(20, rng=seed)
    for shape in scenes.scene_names():
        for reflectance in ("lambertian", "blinn-phong", "ggx", "oren-nayar"):
            for lights in (
                scenes.ring_lights(10),
                scenes.dome_lights(30),
                scenes.random_lights(16, rng=1),
            ):
                capture = scenes.render_scene(
                    shape, size=96, lights=lights, reflectance=reflectance
                )
                yield f"{shape} {reflectance}", capture


def held_out() -> Iterator[tuple[str, Unseen]]:
    """Random captures with seeds that were not used before the thresholds were set."""
    for capture in unseen(range(100, 148)):
        yield capture.name, capture


def mends(found: tuple[Finding, ...], falsified: np.ndarray, right: np.ndarray) -> bool:
    """Whether the recommended options restore the right directions."""
    lights = falsified
    for mistake in found:
        if mistake.remedy == "reverse-lights":
            lights = -lights
        elif mistake.remedy == "lights-axes":
            lights = lights @ axes_matrix(mistake.values["axes"])
    return bool(np.allclose(lights, right))


def main() -> None:
    if "--unseen" not in sys.argv and diligent_folder() is None:
        print(f"Skipped, {ABSENT}.")
        return
    named = {way.name: [] for way in WAYS}
    mended = {way.name: [] for way in WAYS}
    alarms, unfalsified, seconds = [], 0, []
    for name, capture in held_out() if "--unseen" in sys.argv else telling():
        capture = capture.gray()
        directions = (
            capture.lights.directions if isinstance(capture, ps.Capture) else capture.lights
        )
        parts = capture.images, directions, capture.mask
        unfalsified += 1
        alarms += [f"{name}: {mistake}" for mistake in find_mistakes(*parts)]
        for way in WAYS:
            if "mask-inverted" in way.codes and capture.mask.all():
                continue
            falsified = way.change(*parts)
            began = time.perf_counter()
            found = find_mistakes(*falsified)
            seconds.append(time.perf_counter() - began)
            named[way.name].append(any(mistake.code in way.codes for mistake in found))
            if way.codes[0] in ("light-axes", "lights-reversed"):
                mended[way.name].append(mends(found, falsified[1], directions))
            if "-v" in sys.argv or not named[way.name][-1]:
                print(
                    f"{name}, {way.name}: {' '.join(map(str, found)) or 'nothing said'}", flush=True
                )
    for name, capture in () if "--unseen" in sys.argv else others():
        unfalsified += 1
        gray = capture.gray()
        alarms += [
            f"{name}: {mistake}"
            for mistake in find_mistakes(gray.images, gray.lights.directions, gray.mask)
        ]
    print("\n| mistake | captures | named | mended by the option |\n|---|---|---|---|")
    for way in WAYS:
        good, mend = named[way.name], mended[way.name]
        print(
            f"| {way.name} | {len(good)} | {np.mean(good):.0%} | {f'{np.mean(mend):.0%}' if mend else ''} |"
        )
    every = [hit for hits in named.values() for hit in hits]
    print(
        f"\n{sum(every)} of {len(every)} falsified captures named ({np.mean(every):.1%}); ", end=""
    )
    print(
        f"{len(alarms)} false alarms on {unfalsified} unfalsified; median {1e3 * np.median(seconds):.0f} ms"
    )
    print("\n".join(alarms))


if __name__ == "__main__":
    main()
