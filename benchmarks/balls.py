"""Accuracy of lights found from balls, on random rendered captures with exact truth.

Each case draws the kind, number, size and place of the balls (some reach beyond the frame), the lights, the room, the
table (black cloth, plain or patterned) and the camera (some in perspective, with known focal length). Cases in which no
ball is found are counted, not left out. So are misleading ones: more than a degree off, more than twice the stated error,
and no warning. Seeds below 9600 were used during development, and the worst of them studied; the figures in
benchmarks/README.md are for seeds 12000 to 12099; any others are new.

Run: python -m benchmarks.balls [count] [first seed] [-v]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from photostereo.core.errors import CaptureError
from photostereo.lights.ball.calibration import Calibration, calibrate_lights
from photostereo.lights.geometry import angles_between
from photostereo_lab.scenes import random_lights
from tests.ball_scenes.balls import Shoot, shoot_table
from tests.ball_scenes.studio import KINDS, Ball, Studio

SIZES = ((20, 28), (28, 45), (45, 90), (90, 150))
#: Shares of the captures with several balls, a ball cut by the frame, and perspective.
SEVERAL, CUT, PERSPECTIVE = 0.25, 0.15, 0.25
#: A table of a lower albedo is black cloth.
BLACK = 0.03


@dataclass(frozen=True)
class Case:
    """A capture and the lights found in it; NaN if none were found."""

    seed: int
    balls: tuple[Ball, ...]
    words: str
    mean: float = np.nan
    worst: float = np.nan
    strength: float = np.nan
    center: float = np.nan
    radius: float = np.nan
    stated: float = np.nan
    table: float = np.nan
    warned: bool = False
    failure: str = ""

    @property
    def misleads(self) -> bool:
        """Whether the result is wrong and there was no warning."""
        return self.mean > max(1.0, 2.0 * self.stated) and not self.warned


def draw(seed: int, kinds: Sequence[str] = KINDS) -> tuple[Shoot, str, float | None, float]:
    """A random capture, its description, its focal length and the brightness of its table."""
    rng = np.random.default_rng(seed)
    several = rng.random() < SEVERAL
    chosen = (
        list(rng.permutation(kinds))[: rng.integers(2, 4)] if several else [str(rng.choice(kinds))]
    )
    low, high = SIZES[rng.integers(len(SIZES))]
    radii = rng.uniform(low, high, len(chosen))
    if several:
        radii = np.minimum(radii, 90.0 / len(chosen))
    gaps = rng.uniform(0.25, 0.6) * radii  # above each ball
    height = max(240, int(2.3 * radii.max()), int((2 * radii + gaps).sum()) + 12)
    width = 240 + int(2.3 * radii.max()) + 40
    cut = not several and rng.random() < CUT
    balls, top = [], 0.0
    for kind, radius in zip(chosen, radii, strict=True):
        room_left = height - top - 2 * radii[len(balls) :].sum()
        y = (
            top
            + radius
            + (rng.uniform(2, max(room_left - 2, 3)) if not several else gaps[len(balls)])
        )
        x = rng.uniform(240 + radius + 3, width - radius - 3)
        if cut:
            x = width - rng.uniform(0.4, 0.95) * radius
        balls.append(Ball(str(kind), x, y, radius))
        top = y + radius
    focal = float(rng.uniform(1.2, 3.0) * width) if rng.random() < PERSPECTIVE else None
    studio = Studio(
        lamp_width=rng.uniform(1, 6),
        radiance=10 ** rng.uniform(1, 2),
        window=rng.choice([0.0, rng.uniform(0.2, 1.0)]),
        second=rng.choice([0.0, rng.uniform(0.02, 0.12)]),
        blur=rng.uniform(0.4, 1.3),
        glare=rng.choice([0.0, rng.uniform(0.0, 0.05)]),
        haze=rng.choice([0.0, 0.0, rng.uniform(1.0, 4.0)]),
        table=float(
            rng.choice([rng.uniform(0.0, 0.02), rng.uniform(0.02, 0.4), rng.uniform(0.02, 0.4)])
        ),
        texture=float(rng.choice([0.0, rng.uniform(0.0, 0.6), rng.uniform(0.0, 0.6)])),
        read_noise=10 ** rng.uniform(-3.3, -2),
        shot_noise=10 ** rng.uniform(-2.5, -1.5),
        bits=int(rng.choice([8, 16])),
    )
    shoot = shoot_table(
        balls,
        size=(height, width),
        scene=str(rng.choice(["figure", "vase", "coin", "relief"])),
        lights=random_lights(20, max_angle=rng.uniform(40, 60), rng=rng),
        strengths=rng.uniform(0.6, 1.4, 20),
        focal=focal,
        studio=studio,
        rng=rng,
    )
    words = " ".join(f"{b.kind} r={b.radius:.0f}" for b in balls)
    words += f" table={studio.table:.2f} blur={studio.blur:.1f} lamp={studio.lamp_width:.0f}° haze={studio.haze:.0f}"
    words += f" noise={studio.read_noise:.4f} glare={studio.glare:.2f} second={studio.second:.2f} bits={studio.bits}"
    words += (
        f" texture={studio.texture:.1f}"
        + (" cut" if cut else "")
        + (f" focal={focal:.0f}" if focal else "")
    )
    return shoot, words, focal, studio.table


def judge(seed: int, kinds: Sequence[str] = KINDS) -> Case:
    """Find the lights of one capture and compare them with the truth."""
    shoot, words, focal, ground = draw(seed, kinds)
    try:
        found = calibrate_lights(shoot.images, focal=focal)
    except CaptureError as error:
        return Case(seed, shoot.balls, words, table=ground, failure=str(error)[:90])
    apart = angles_between(found.lights.directions, shoot.lights)
    strength = np.abs(found.lights.strengths / shoot.strengths - 1).max()
    center, radius = _circles(found, shoot)
    return Case(
        seed,
        shoot.balls,
        words,
        float(apart.mean()),
        float(apart.max()),
        float(strength),
        center,
        radius,
        float(np.median(found.lights.expected_error)),
        ground,
        bool(found.warnings),
    )


def _circles(found: Calibration, shoot: Shoot) -> tuple[float, float]:
    """The largest error of a center and of a radius, in pixels."""
    pairs = [
        (
            min(shoot.balls, key=lambda b: np.hypot(b.x - ball.circle.x, b.y - ball.circle.y)),
            ball.circle,
        )
        for ball in found.balls
    ]
    return (
        max(float(np.hypot(b.x - c.x, b.y - c.y)) for b, c in pairs),
        max((abs(b.radius - c.radius) for b, c in pairs)),
    )


def _alone(case: Case, *, kind: str, low: float, high: float) -> bool:
    return (
        len(case.balls) == 1 and case.balls[0].kind == kind and low <= case.balls[0].radius < high
    )


def table(cases: Sequence[Case]) -> str:
    """Percentiles by kind and size; captures on black cloth, which hides outlines, are counted separately."""
    lines = [
        "| balls | radius | captures | not found | mean error: median, 90 %, 95 % | within 0.5° | worst light: median, 95 % "
        "| stated: median | strengths: median, 90 % | within 3 % | wrong, nothing said |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups: list[tuple[str, str, Callable[[Case], bool]]] = [
        (kind, f"{low}-{high}", partial(_alone, kind=kind, low=low, high=high))
        for kind in KINDS
        for low, high in SIZES
    ]
    groups += [
        ("several", "", lambda case: len(case.balls) > 1),
        ("on black cloth", "", lambda case: case.table < BLACK),
        ("all others", "", lambda case: case.table >= BLACK),
    ]
    for kind, size, belongs in groups:
        chosen = [
            case
            for case in cases
            if belongs(case) and (case.table >= BLACK or kind == "on black cloth")
        ]
        good = [case for case in chosen if not case.failure]
        if not good:
            continue
        mean, worst, strength = (
            np.array([getattr(c, name) for c in good]) for name in ("mean", "worst", "strength")
        )
        lines.append(
            f"| {kind} | {size} | {len(chosen)} | {len(chosen) - len(good)} | "
            + ", ".join(f"{v:.2f}°" for v in np.percentile(mean, [50, 90, 95]))
            + f" | {(mean < 0.5).sum() / len(chosen):.0%} | "
            + ", ".join(f"{v:.2f}°" for v in np.percentile(worst, [50, 95]))
            + f" | {np.median([case.stated for case in good]):.2f}° | "
            + ", ".join(f"{100 * v:.1f} %" for v in np.percentile(strength, [50, 90]))
            + f" | {(strength < 0.03).sum() / len(chosen):.0%} | {sum(case.misleads for case in good)} |"
        )
    return "\n".join(lines)


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    count, first = (numbers + [100, 0][len(numbers) :])[:2]
    cases = []
    for seed in range(first, first + count):
        case = judge(seed)
        cases.append(case)
        if "-v" in sys.argv or case.failure or case.mean > 1:
            print(
                f"{seed}: {case.words}: {case.failure or ''} mean {case.mean:.2f}° worst {case.worst:.2f}° strength "
                f"{100 * case.strength:.1f} % center {case.center:.2f} px radius {case.radius:.2f} px",
                flush=True,
            )
    print(table(cases))


if __name__ == "__main__":
    main()
