"""Decide whether to hold the photographs of a capture in memory, and how much memory is left for solving it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ParameterError
from photostereo.core.wording import amount
from photostereo.io.memory import available_memory, parse_memory
from photostereo.pipeline.settings import Settings
from photostereo.results.choice import SurfaceChoice
from photostereo.solver.near import every_nth
from photostereo.solver.tiles import OF_THE_PROGRAM, row_of

if TYPE_CHECKING:
    from photostereo.pipeline.plan import Plan

# Peak memory of the steps after a solve, measured at 6 megapixels. A change of 20 % moves the size at which a solve is
# refused or divided by the same amount.

#: Bytes per pixel of the frame for integrating the surface, with the arrays of the result.
OF_A_SURFACE = {"poisson": 83, "simchony": 83, "robust": 140}
#: The same for the arrays and pictures of the result.
OF_A_RESULT = 50
#: The same for the full mesh.
OF_A_MESH = 45
#: The same for the textured mesh, which is made before the full one.
OF_A_TEXTURE = 80
#: The same for the page, which is made last.
OF_A_PAGE = 75
#: Bytes per triangle of a mesh.
OF_A_TRIANGLE = 100
#: Photographs up to this many bytes are loaded, so that the page can show them; larger ones are read in bands as fast.
LOADED = 1_500_000_000
#: Bytes per pixel for diagnosing the capture (measured).
OF_A_DIAGNOSIS = 80
#: Number of pixels beyond which the diagnosis looks at every n-th: shares and medians over 24 million do not change
#: with more.
DIAGNOSED = 24_000_000
#: Memory limit, in bytes, for the photographs and their diagnosis if a capture is only examined.
EXAMINED = 800_000_000
#: Pixels along the longer side of a glance. The diagnosis needs shares and medians, which change by less than a percent
#: with more.
SIDE = 512
#: Frames with more pixels use a glance for the second opinion: at 6 megapixels, for an error of 6.1°, it estimates 6.3°
#: in a fifteenth of the time; all pixels give 5.5°.
ENOUGH = 2_000_000


def budget_of(memory: int | str | None) -> int:
    """Return the limit in bytes; half of the free memory if none is given."""
    if memory is None:
        return available_memory() // 2
    if isinstance(memory, str):
        return parse_memory(memory)
    return memory


def is_diagnosed_whole(capture: Capture, budget: int) -> bool:
    """Whether a capture in memory can be diagnosed from all of its pixels."""
    pixels = capture.mask.size
    return pixels <= DIAGNOSED and capture.stack_bytes + OF_A_DIAGNOSIS * pixels <= budget


def require_feasible(plan: Plan, capture: Capture, settings: Settings) -> None:
    """Raise a :class:`ParameterError` up front if solving or writing needs more than the available memory."""
    whole = settings.solves_at_once
    height, width = capture.frame
    at_once = height * (
        row_of(capture, plan.method) + width * OF_A_RESULT
    )  # in addition to the photographs
    if whole and OF_THE_PROGRAM + capture.stack_bytes + at_once > plan.budget:
        name = capture.name
        budget = amount(plan.budget)
        remedy = "state-needs-memory"
        raise ParameterError(
            f"{name} does not fit into {budget} and is solved in parts, which have no state to "
            "save or resume.",
            code="no-state-in-parts",
            remedy=remedy,
            name=name,
            budget=budget,
        )
    need = OF_THE_PROGRAM + plan.writing
    if need > plan.budget:
        size = f"{width} × {height}"
        words = amount(need)
        left = amount(max(plan.budget, 0))
        remedy = "less-to-write" if settings.surface or settings.report else "more-memory"
        raise ParameterError(
            f"Writing the results of {size} pixels needs {words} of memory, but only {left} may "
            "be used.",
            code="no-memory-for-results",
            remedy=remedy,
            size=size,
            need=words,
            budget=left,
        )


def bytes_of_results(
    frame: tuple[int, int], channels: int, surface: SurfaceChoice | None, *, report: bool
) -> int:
    """Bytes needed to write a result, once the photographs are solved.

    >>> bytes_of_results((4000, 6000), 1, SurfaceChoice(), report=True) // 10**6
    1992
    """
    area = frame[0] * frame[1]
    need = area * (OF_A_PAGE if report else OF_A_RESULT)
    if surface is not None:
        from photostereo.surface.mesh import MOST_TRIANGLES

        need = max(need, area * OF_A_SURFACE[surface.method])
        triangles = 2 * area if surface.full else min(2 * area, MOST_TRIANGLES)
        if surface.formats:
            need = max(need, area * OF_A_TEXTURE, area * OF_A_MESH + OF_A_TRIANGLE * triangles)
    return need + area * 4 * (channels - 1)


def glance(capture: Capture, control: Control = SILENT) -> Capture:
    """Load every n-th pixel of a capture into memory as a small capture; each photograph is decoded once."""
    return every_nth(capture, max(1, max(capture.frame) // SIDE), control)
