"""The progress of an integration, told to a control as steps of a stage."""

from __future__ import annotations

from collections.abc import Callable

from photostereo.core.control import Control

#: What the solvers of this folder call after every iteration: how far, of how far, and a measure of what is left.
Progress = Callable[[float, float, float], None]


def reporter(control: Control, method: str) -> Progress:
    """The integrator's progress, told to a control.

    Least squares wins digits at a steady pace: percents of those tell how long it will take. The tearing
    method counts its iterations. A part after the largest one, or a second start, begins anew.
    """
    name, total, done = "integrate (robust)", 0, 0
    if method != "robust":
        name, total = "integrate", 100
        control.stage(name, total)

    def report(won: float, wanted: float, measure: float) -> None:
        nonlocal done, total
        now = round(100 * won / wanted) if method != "robust" else round(won)
        if now < done or total == 0:
            total = total or round(wanted)
            control.stage(name, total)
            done = 0
        control.advance(now - done)
        done = now

    return report
